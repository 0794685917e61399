// One reading of a configuration directory: which UpstreamClusters are in it, which of them are good, and every mistake.
// Knows nothing of earlier readings; what stays in force despite mistakes is decided in files-decide.ts.

import { createHash } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type FieldProblem, ProblemList, shown, UserError } from '../api/field-errors.ts'
import { nearestName } from '../api/nearest-name.ts'
import { isRecord } from '../api/object-shape.ts'
import type { PemChecks, Problem, ResolvedCluster } from '../api/ports.ts'
import { UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND, type UpstreamCluster } from '../api/upstream-cluster.ts'
import { checkUpstreamCluster, normalizeUpstreamCluster } from '../api/upstream-cluster-checks.ts'
import { FileParser, type SourceObject } from './files-parse.ts'
import { readSecret, resolveReferences, SecretFiles, secretName } from './secret-files.ts'

/** A good cluster and where it was found. */
export interface LoadedCluster extends ResolvedCluster {
  /** Relative to the directory. */
  readonly file: string
  readonly line: number
}

/** A cluster that a file defines, good or not. */
export interface FoundCluster {
  readonly name: string
  readonly source: SourceObject
  /** Undefined when there are errors. */
  readonly loaded: LoadedCluster | undefined
}

export interface Reading {
  /** By file name, then line. */
  readonly clusters: readonly FoundCluster[]
  readonly problems: readonly Problem[]
  /** Files that may define more than could be understood. */
  readonly brokenFiles: ReadonlySet<string>
  /** Equal for two readings exactly when, as far as the file system tells, nothing changed in between. */
  readonly signature: string
  /** Directories in which a change may mean a change of a cluster. */
  readonly directories: ReadonlySet<string>
}

const MAX_FILE_BYTES = 3 * 1024 * 1024
const EXTENSIONS = /\.(yaml|yml|json)$/

export class DirectoryReader {
  readonly #dir: string
  readonly #pem: PemChecks
  readonly #parser = new FileParser()
  #secretPaths: readonly string[] = []

  constructor(dir: string, pem: PemChecks) {
    this.#dir = dir
    this.#pem = pem
  }

  /** @throws {UserError} when the directory itself cannot be read */
  async read(): Promise<Reading> {
    const signature = await this.signature()
    const names = await this.#names()
    const problems: Problem[] = []
    const brokenFiles = new Set<string>()
    const objects: SourceObject[] = []
    for (const file of names) {
      const text = await readText(join(this.#dir, file))
      if ('mistake' in text) {
        problems.push({ file, line: 0, path: '', ...text.mistake })
        brokenFiles.add(file)
        continue
      }
      const parsed = this.#parser.parse(file, text.text)
      objects.push(...parsed.objects)
      problems.push(...parsed.problems)
      if (parsed.broken) brokenFiles.add(file)
    }
    this.#parser.endReading()
    const files = new SecretFiles(this.#dir)
    const { secrets, clusters: candidates } = sort(objects, problems)
    const clusters: FoundCluster[] = []
    for (const source of candidates) {
      const found = await loadCluster(source, secrets, files, this.#pem, problems)
      if (found === undefined) brokenFiles.add(source.file)
      else clusters.push(found)
    }
    if (candidates.length === 0 && brokenFiles.size === 0) problems.push(NO_CLUSTER)
    this.#secretPaths = [...files.paths]
    return { clusters, problems, brokenFiles, signature, directories: await this.#directories(names) }
  }

  /** From names and times of all files that matter, without reading them. */
  async signature(): Promise<string> {
    const names = await this.#names().catch(() => [])
    const paths = [this.#dir, ...names.map((name) => join(this.#dir, name)), ...this.#secretPaths]
    const parts = await Promise.all(
      paths.map(async (path) => {
        const facts = await stat(path).catch(() => undefined)
        if (facts === undefined) return `${path} -`
        // Of a directory only whether it is the same one: files that do not matter come and go in it.
        if (facts.isDirectory()) return `${path} ${facts.ino}`
        return `${path} ${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}`
      }),
    )
    return parts.join('\n')
  }

  /** Files that configure, sorted. Dot-files are not: editors' and ConfigMap volumes' own (`..data`). */
  async #names(): Promise<string[]> {
    try {
      const names = await readdir(this.#dir)
      return names.filter((name) => !name.startsWith('.') && EXTENSIONS.test(name)).sort()
    } catch (error) {
      const reason = error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'does not exist' : ''
      throw new UserError(
        `configuration directory ${this.#dir} ${reason || `cannot be read: ${messageOf(error)}`}`,
        'name a directory of UpstreamCluster files that the gateway may read',
      )
    }
  }

  /** A mounted ConfigMap or Secret changes by a symbolic link, in its directory; other links lead elsewhere. */
  async #directories(names: readonly string[]): Promise<ReadonlySet<string>> {
    const paths = [...names.map((name) => join(this.#dir, name)), ...this.#secretPaths]
    const real = await Promise.all(paths.map((path) => realpath(path).catch(() => path)))
    return new Set([this.#dir, ...this.#secretPaths.map(dirname), ...real.map(dirname)])
  }
}

const NO_CLUSTER: Problem = {
  file: '',
  line: 0,
  path: '',
  message: `the directory holds no ${UPSTREAM_CLUSTER_KIND}`,
  fix: 'add a *.yaml, *.yml or *.json file with one',
  severity: 'warning',
}

type Text = { readonly text: string } | { readonly mistake: Pick<Problem, 'message' | 'fix' | 'severity'> }

async function readText(path: string): Promise<Text> {
  const mistake = (message: string, fix: string, severity: Problem['severity'] = 'error'): Text => {
    return { mistake: { message, fix, severity } }
  }
  try {
    const facts = await stat(path)
    if (facts.isDirectory()) return { text: '\n' }
    if (!facts.isFile()) return mistake('is no regular file', 'remove it')
    if (facts.size > MAX_FILE_BYTES) return mistake('is larger than 3 MiB', 'split the file')
    const bytes = await readFile(path)
    if (bytes.length === 0) {
      // A writer that truncated the file and was cut short leaves this behind; nobody means "no clusters" by it.
      return mistake(
        'is empty; what it defined before stays in force',
        'delete the file to remove its clusters',
        'warning',
      )
    }
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (error) {
    if (error instanceof TypeError) return mistake('is not UTF-8 text', 'save the file as UTF-8')
    return mistake(`cannot be read: ${messageOf(error)}`, 'make it readable for the gateway, or remove it')
  }
}

interface Sorted {
  readonly secrets: ReadonlyMap<string, ReadonlyMap<string, Buffer>>
  readonly clusters: readonly SourceObject[]
}

/** By kind; other kinds are left alone, with a warning. */
function sort(objects: readonly SourceObject[], problems: Problem[]): Sorted {
  const secrets = new Map<string, ReadonlyMap<string, Buffer>>()
  const clusters: SourceObject[] = []
  for (const source of objects) {
    const { value } = source
    const out = new ProblemList()
    if (!isRecord(value)) {
      out.error('', 'is no object', `write a map with apiVersion, kind, metadata and spec`)
    } else if (value['kind'] === UPSTREAM_CLUSTER_KIND) {
      clusters.push(source)
    } else if (value['kind'] === 'Secret' && value['apiVersion'] === 'v1') {
      const metadata = isRecord(value['metadata']) ? value['metadata'] : {}
      const name = secretName(metadata['namespace'], metadata['name'])
      const data = readSecret(value, out)
      if (secrets.has(name)) out.error('metadata.name', `Secret ${name} is defined twice`, 'keep one of the two')
      else secrets.set(name, data)
    } else warnOfKind(value, out)
    problems.push(...out.problems.map((problem) => located(source, problem)))
  }
  return { secrets, clusters }
}

function warnOfKind({ apiVersion, kind }: Readonly<Record<string, unknown>>, out: ProblemList): void {
  const near = typeof kind === 'string' ? nearestName(kind, [UPSTREAM_CLUSTER_KIND, 'Secret']) : ''
  const isOurs = apiVersion === UPSTREAM_CLUSTER_API_VERSION
  const fix = near !== '' ? `did you mean ${near}?` : `the directory is for ${UPSTREAM_CLUSTER_KIND} and Secret`
  if (kind === undefined || (isOurs && near !== '')) out.error('kind', `is ${shown(kind)}`, fix)
  else out.warning('kind', `${shown(kind)} of ${shown(apiVersion)} is ignored`, fix)
}

/** Undefined when the object does not even say its name. */
async function loadCluster(
  source: SourceObject,
  secrets: Sorted['secrets'],
  files: SecretFiles,
  pem: PemChecks,
  problems: Problem[],
): Promise<FoundCluster | undefined> {
  const { object, problems: unresolved, origins } = await resolveReferences(source.value, secrets, files)
  const found = [
    ...unresolved,
    ...checkUpstreamCluster(object, pem).map((one) => ({ ...one, path: origins.get(one.path) ?? one.path })),
  ]
  problems.push(...found.map((problem) => located(source, problem)))
  const metadata = isRecord(source.value) ? source.value['metadata'] : undefined
  const name = isRecord(metadata) ? metadata['name'] : undefined
  if (typeof name !== 'string' || name === '') return undefined
  if (found.some((problem) => problem.severity === 'error')) return { name, source, loaded: undefined }
  const cluster = normalizeUpstreamCluster(object)
  const loaded = { object: cluster, revision: revisionOf(cluster), file: source.file, line: source.line }
  return { name, source, loaded }
}

/** A field problem with its file and line. */
export function located(source: SourceObject, problem: FieldProblem): Problem {
  return { file: source.file, line: source.lineOf(problem.path), ...problem }
}

function revisionOf({ metadata, spec }: UpstreamCluster): string {
  const { name, labels, annotations } = metadata
  const content = JSON.stringify({ name, labels, annotations, spec }, sortedKeys)
  return createHash('sha256').update(content).digest('hex').slice(0, 16)
}

/** For JSON.stringify: the order in which fields were written makes no difference. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
