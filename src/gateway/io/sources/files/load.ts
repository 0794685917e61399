// Reads a configuration directory once: its UpstreamClusters, which of them are valid, and every error. Independent of earlier reads; decide.ts
// decides what stays in force despite errors.

import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { errorMessage } from '../../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../../kit/api/validation/field-errors.ts'
import type { PemChecks } from '../../../../kit/api/validation/pem-checks.ts'
import type { SourceError } from '../../../api/resource-source.ts'
import type { ClusterCheckOptions } from '../../../api/upstream-cluster/checks.ts'
import { UPSTREAM_CLUSTER_KIND } from '../../../api/upstream-cluster/upstream-cluster.ts'
import { ClusterLoader, type FoundCluster, sortObjects } from './objects.ts'
import { FileParser, type SourceObject } from './parse.ts'
import { SecretFiles } from './secret-files.ts'

export interface DirectoryReading {
  /** Sorted by file name, then line. */
  readonly clusters: readonly FoundCluster[]
  readonly problems: readonly SourceError[]
  /** Files that may define more than could be parsed. */
  readonly brokenFiles: ReadonlySet<string>
  /** Equal for two reads exactly if, according to the file system, nothing has changed in between. */
  readonly signature: string
  /** Directories in which a change may affect a cluster. */
  readonly directories: ReadonlySet<string>
}

const MAX_FILE_BYTES = 3 * 1024 * 1024
const EXTENSIONS = /\.(yaml|yml|json)$/

export class DirectoryReader {
  readonly #dir: string
  readonly #loader: ClusterLoader
  readonly #parser = new FileParser()
  readonly #only: string
  #secretPaths: readonly string[] = []

  /**
   * @param followsReferences false: references are not resolved, for checks only
   * @param only name of the only file to read; '' = all
   */
  constructor(dir: string, pem: PemChecks, checks: ClusterCheckOptions = {}, followsReferences = true, only = '') {
    this.#dir = dir
    this.#only = only
    this.#loader = new ClusterLoader(pem, checks, followsReferences)
  }

  /** @throws {UserError} if the directory itself cannot be read */
  async read(): Promise<DirectoryReading> {
    const signature = await this.signature()
    const names = await this.#names()
    const problems: SourceError[] = []
    const brokenFiles = new Set<string>()
    const objects: SourceObject[] = []
    for (const file of names) {
      const text = await readText(join(this.#dir, file))
      if ('error' in text) {
        problems.push({ file, line: 0, path: '', ...text.error })
        brokenFiles.add(file)
        continue
      }
      const parsed = this.#parser.parse(file, text.text)
      for (const object of parsed.objects) objects.push(object)
      for (const problem of parsed.problems) problems.push(problem)
      if (parsed.broken) brokenFiles.add(file)
    }
    this.#parser.endReading()
    const files = new SecretFiles(this.#dir)
    const { secrets, clusters: candidates } = sortObjects(objects, problems, brokenFiles)
    const clusters: FoundCluster[] = []
    for (const source of candidates) {
      const found = await this.#loader.load(source, secrets, files, problems)
      if (found === undefined) brokenFiles.add(source.file)
      else clusters.push(found)
    }
    if (candidates.length === 0 && brokenFiles.size === 0) problems.push(NO_CLUSTER)
    this.#secretPaths = [...files.paths]
    return { clusters, problems, brokenFiles, signature, directories: await this.#directories(names) }
  }

  /** Computed from names and times of all relevant files, without reading them. */
  async signature(): Promise<string> {
    const names = await this.#names().catch(() => [])
    const paths = [this.#dir, ...names.map((name) => join(this.#dir, name)), ...this.#secretPaths]
    const parts = await Promise.all(
      paths.map(async (path) => {
        const facts = await stat(path).catch(() => undefined)
        if (facts === undefined) return `${path} -`
        // Only a directory's identity: irrelevant files come and go in it.
        if (facts.isDirectory()) return `${path} ${facts.ino}`
        return `${path} ${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}`
      }),
    )
    return parts.join('\n')
  }

  /** Configuration files, sorted. Skips dot-files: they belong to editors and ConfigMap volumes (`..data`). */
  async #names(): Promise<string[]> {
    try {
      if (this.#only !== '') return [this.#only]
      const names = await readdir(this.#dir)
      return names.filter((name) => !name.startsWith('.') && EXTENSIONS.test(name)).sort()
    } catch (error) {
      const reason = error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'does not exist' : ''
      throw new UserError(
        `configuration directory ${this.#dir} ${reason || `cannot be read: ${errorMessage(error)}`}`,
        'name a directory of UpstreamCluster files that the gateway may read',
      )
    }
  }

  /** A mounted ConfigMap or Secret is replaced through a symbolic link in its directory; other links lead elsewhere. */
  async #directories(names: readonly string[]): Promise<ReadonlySet<string>> {
    const paths = [...names.map((name) => join(this.#dir, name)), ...this.#secretPaths]
    const real = await Promise.all(paths.map((path) => realpath(path).catch(() => path)))
    return new Set([this.#dir, ...this.#secretPaths.map(dirname), ...real.map(dirname)])
  }
}

const NO_CLUSTER: SourceError = {
  reason: 'FieldValueInvalid',
  file: '',
  line: 0,
  path: '',
  message: `the directory holds no ${UPSTREAM_CLUSTER_KIND}`,
  fix: 'add a *.yaml, *.yml or *.json file with one',
  severity: 'warning',
}

type Text = { readonly text: string } | { readonly error: Omit<FieldError, 'path'> }

async function readText(path: string): Promise<Text> {
  const failed = (message: string, fix: string, severity: SourceError['severity'] = 'error'): Text => {
    return { error: { reason: 'FieldValueInvalid', message, fix, severity } }
  }
  try {
    const facts = await stat(path)
    if (facts.isDirectory()) return { text: '\n' }
    if (!facts.isFile()) return failed('is not a regular file', 'remove it')
    if (facts.size > MAX_FILE_BYTES) return failed('is larger than 3 MiB', 'split the file')
    const bytes = await readFile(path)
    if (bytes.length === 0) {
      // An interrupted writer leaves an empty file behind; that does not mean "no clusters".
      return failed(
        'is empty; the objects that it defined before stay in force',
        'delete the file to remove its clusters',
        'warning',
      )
    }
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (error) {
    if (error instanceof TypeError) return failed('is not UTF-8 text', 'save the file as UTF-8')
    return failed(`cannot be read: ${errorMessage(error)}`, 'make it readable for the gateway, or remove it')
  }
}
