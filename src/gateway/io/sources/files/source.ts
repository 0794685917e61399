// UpstreamClusters from a watched directory of YAML and JSON files. An error never takes down what is in force: the last good version stays until the
// error is fixed (see decide.ts for the rules). Changes are detected with fs.watch, and by slow polling where that fails (network file systems,
// exhausted watch limits, links to elsewhere).

import { type FSWatcher, statSync, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Logger } from '../../../../kit/api/ports.ts'
import { errorMessage } from '../../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../../kit/api/validation/field-errors.ts'
import type { PemChecks } from '../../../../kit/api/validation/pem-checks.ts'
import type { ResourceSource, SourceChange, SourceError } from '../../../api/resource-source.ts'
import type { ClusterCheckOptions } from '../../../api/upstream-cluster/checks.ts'
import { decideFiles, type FilesDecision } from './decide.ts'
import { DirectoryReader } from './load.ts'
import type { LoadedCluster } from './objects.ts'

interface FilesSourceOptions {
  readonly dir: string
  readonly pem: PemChecks
  readonly log: Logger
  /** Features of this gateway, for checks. Default: all. */
  readonly checks?: ClusterCheckOptions
  /** Quiet period in milliseconds before the directory is reread. Default 50. */
  readonly debounceMs?: number
}

const DEFAULT_DEBOUNCE_MS = 50
/** Under constant change it is reread after this many debounce periods. */
const MAX_DEBOUNCES = 5
const POLL_MS = 2000
/** Editors replace a file by deleting it, and writers by truncating it: only what is missing for this long is gone. */
const VANISH_MS = 300

/** `start` rejects with a UserError if the directory cannot be read. Afterwards only `stop` ends the source. */
export function createFilesSource(options: FilesSourceOptions): ResourceSource {
  return new FilesSource(options)
}

/**
 * Reads a directory once: its valid clusters by name, in the order of files and lines, and all problems.
 * @throws {UserError} if the directory cannot be read
 */
export async function loadDirectory(
  dir: string,
  pem: PemChecks,
  checks: ClusterCheckOptions = {},
  followsReferences = true,
  only = '',
): Promise<{ clusters: Map<string, LoadedCluster>; problems: readonly SourceError[] }> {
  const reading = await new DirectoryReader(dir, pem, checks, followsReferences, only).read()
  const { clusters, problems } = decideFiles(reading, new Map(), () => true)
  return { clusters: new Map(clusters), problems }
}

/**
 * Reads a directory, or one file, without the Secrets it refers to: for callers that evaluate decisions without connecting.
 * @throws {UserError} if it cannot be read
 */
export async function loadWithoutSecrets(
  path: string,
  pem: PemChecks,
): Promise<{ clusters: Map<string, LoadedCluster>; problems: readonly SourceError[] }> {
  const isFile = await stat(path).then(
    (facts) => facts.isFile(),
    () => false,
  )
  const [dir, only] = isFile ? [dirname(path), basename(path)] : [path, '']
  return await loadDirectory(dir, pem, { recovery: true }, false, only)
}

class FilesSource implements ResourceSource {
  readonly #log: Logger
  readonly #debounceMs: number
  readonly #reader: DirectoryReader
  /** Watchers by directory and inode, so that a replaced directory gets a new watcher. */
  readonly #watchers = new Map<string, FSWatcher>()
  /** When each missing cluster disappeared, monotonic. */
  readonly #missingSince = new Map<string, number>()
  #onChange: (change: SourceChange) => void = () => undefined
  #inForce: ReadonlyMap<string, LoadedCluster> = new Map()
  #problems: readonly SourceError[] = []
  #delivered = ''
  #signature = ''
  #debounce: NodeJS.Timeout | undefined
  #firstEventAt = 0
  #settle: NodeJS.Timeout | undefined
  #poll: NodeJS.Timeout | undefined
  #reading: Promise<void> | undefined
  #readAgain = false
  #stopped = false
  #watchFailed = false

  constructor({ dir, pem, log, checks, debounceMs = DEFAULT_DEBOUNCE_MS }: FilesSourceOptions) {
    this.#log = log
    this.#debounceMs = debounceMs
    this.#reader = new DirectoryReader(dir, pem, checks)
  }

  async start(onChange: (change: SourceChange) => void): Promise<void> {
    this.#onChange = onChange
    await this.#read()
    if (this.#stopped) return
    this.#poll = setInterval(() => void this.#pollOnce(), POLL_MS)
    this.#poll.unref()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#debounce)
    clearTimeout(this.#settle)
    clearInterval(this.#poll)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
    await this.#reading
  }

  /** Something may have changed: reads after a quiet debounce period. */
  #schedule(): void {
    if (this.#stopped) return
    const now = performance.now()
    if (this.#debounce === undefined) this.#firstEventAt = now
    clearTimeout(this.#debounce)
    const latest = this.#firstEventAt + MAX_DEBOUNCES * this.#debounceMs
    const delay = Math.max(0, Math.min(this.#debounceMs, latest - now))
    this.#debounce = setTimeout(() => {
      this.#debounce = undefined
      this.#readNow()
    }, delay)
  }

  /** One read at a time; a change during one triggers another. */
  #readNow(): void {
    if (this.#reading !== undefined) {
      this.#readAgain = true
      return
    }
    this.#reading = this.#read()
      .catch((error: unknown) => this.#keepAll(error))
      .finally(() => {
        this.#reading = undefined
        if (this.#readAgain) this.#schedule()
        this.#readAgain = false
      })
  }

  async #pollOnce(): Promise<void> {
    if (this.#reading === undefined && (await this.#reader.signature()) !== this.#signature) this.#schedule()
  }

  async #read(): Promise<void> {
    const reading = await this.#reader.read()
    if (this.#stopped) return
    this.#signature = reading.signature
    this.#watch(reading.directories)
    const now = performance.now()
    const mayVanish = (name: string): boolean => now - (this.#missingSince.get(name) ?? now) >= VANISH_MS
    const decision = decideFiles(reading, this.#inForce, mayVanish)
    for (const name of this.#missingSince.keys()) if (!decision.vanishing.has(name)) this.#missingSince.delete(name)
    for (const name of decision.vanishing) if (!this.#missingSince.has(name)) this.#missingSince.set(name, now)
    this.#deliver(decision)
    clearTimeout(this.#settle)
    if (decision.vanishing.size > 0) {
      this.#settle = setTimeout(() => this.#readNow(), VANISH_MS + this.#debounceMs)
    }
  }

  /** The directory is missing or unreadable: what is in force stays. */
  #keepAll(error: unknown): void {
    const message = errorMessage(error)
    const fix = error instanceof UserError ? error.fix : 'see the log'
    const problem: SourceError = {
      reason: 'FieldValueInvalid',
      file: '',
      line: 0,
      path: '',
      message,
      fix,
      severity: 'error',
    }
    this.#signature = ''
    const kept = new Set(this.#inForce.keys())
    this.#deliver({ clusters: this.#inForce, problems: [problem], kept, vanishing: new Set() })
  }

  #deliver({ clusters, problems, kept }: FilesDecision): void {
    this.#logProblems(problems, clusters, kept)
    this.#inForce = clusters
    this.#problems = problems
    const state = JSON.stringify([[...clusters].map(([name, { revision }]) => [name, revision]), problems])
    if (state === this.#delivered) return
    this.#delivered = state
    try {
      this.#onChange({ clusters, problems })
    } catch (error) {
      // The source must survive for the next change.
      this.#log.error('the configuration could not be applied', { error })
    }
  }

  /** Logs each problem once, for as long as it lasts. */
  #logProblems(
    problems: readonly SourceError[],
    clusters: ReadonlyMap<string, LoadedCluster>,
    kept: ReadonlySet<string>,
  ): void {
    const known = new Set(this.#problems.map(keyOf))
    for (const problem of problems) {
      if (known.has(keyOf(problem))) continue
      const { file, line, path, message, fix, severity } = problem
      const fields = { file, line, path, problem: message, fix }
      if (severity === 'warning') {
        this.#log.warn('configuration warning', fields)
        continue
      }
      const lastGood = [...kept].filter((name) => file === '' || clusters.get(name)?.file === file)
      this.#log.error('invalid configuration; the previous one stays in force', { ...fields, lastGood })
    }
    if (this.#problems.length > 0 && problems.length === 0) this.#log.info('the configuration has no more problems')
  }

  #watch(directories: ReadonlySet<string>): void {
    const wanted = new Map<string, string>()
    for (const directory of directories) {
      const facts = statSync(directory, { throwIfNoEntry: false })
      if (facts !== undefined) wanted.set(`${facts.dev} ${facts.ino} ${directory}`, directory)
    }
    for (const [key, watcher] of this.#watchers) {
      if (wanted.has(key)) continue
      watcher.close()
      this.#watchers.delete(key)
    }
    for (const [key, directory] of wanted) {
      if (this.#watchers.has(key)) continue
      try {
        const watcher = watch(directory, { persistent: false }, () => this.#schedule())
        watcher.on('error', (error) => this.#watchError(directory, error))
        this.#watchers.set(key, watcher)
        // Changes between the read and now went unnoticed.
        this.#schedule()
      } catch (error) {
        this.#watchError(directory, error)
      }
    }
  }

  #watchError(directory: string, error: unknown): void {
    if (this.#watchFailed) return
    this.#watchFailed = true
    this.#log.warn('cannot watch for changes; polling instead', { directory, everyMs: POLL_MS, error })
  }
}

/** Excludes the line: a problem stays the same if text before it changes. */
function keyOf({ file, path, message }: SourceError): string {
  return JSON.stringify([file, path, message])
}
