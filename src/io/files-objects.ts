// The objects of a configuration directory: Secrets to refer to, UpstreamClusters to check, and others to leave alone.

import { createHash } from 'node:crypto'
import { type FieldProblem, ProblemList, shown } from '../api/field-errors.ts'
import { nearestName } from '../api/nearest-name.ts'
import { isRecord } from '../api/object-shape.ts'
import type { PemChecks, Problem, ResolvedCluster } from '../api/ports.ts'
import { UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND, type UpstreamCluster } from '../api/upstream-cluster.ts'
import { checkUpstreamCluster, normalizeUpstreamCluster } from '../api/upstream-cluster-checks.ts'
import type { SourceObject } from './files-parse.ts'
import { type Resolved, readSecret, resolveReferences, type SecretFiles, secretName } from './secret-files.ts'

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

export interface Sorted {
  readonly secrets: ReadonlyMap<string, ReadonlyMap<string, Buffer>>
  readonly clusters: readonly SourceObject[]
}

/** By kind; other kinds are left alone, with a warning. */
export function sortObjects(objects: readonly SourceObject[], problems: Problem[], brokenFiles: Set<string>): Sorted {
  const secrets = new Map<string, ReadonlyMap<string, Buffer>>()
  const clusters: SourceObject[] = []
  for (const source of objects) {
    const { value } = source
    const out = new ProblemList()
    if (!isRecord(value)) {
      out.error('', 'is no object', `write a map with apiVersion, kind, metadata and spec`)
      brokenFiles.add(source.file)
    } else if (value['kind'] === UPSTREAM_CLUSTER_KIND) {
      clusters.push(source)
    } else if (value['kind'] === 'Secret' && value['apiVersion'] === 'v1') {
      const metadata = isRecord(value['metadata']) ? value['metadata'] : {}
      const name = secretName(metadata['namespace'], metadata['name'])
      const data = readSecret(value, out)
      if (secrets.has(name)) out.error('metadata.name', `Secret ${name} is defined twice`, 'keep one of the two')
      else secrets.set(name, data)
    } else if (!isForeign(value, out)) brokenFiles.add(source.file)
    problems.push(...out.problems.map((problem) => located(source, problem)))
  }
  return { secrets, clusters }
}

/** Whether the object is none of ours for certain: not one of ours with its kind misspelt or missing. */
function isForeign({ apiVersion, kind }: Readonly<Record<string, unknown>>, out: ProblemList): boolean {
  const near = typeof kind === 'string' ? nearestName(kind, [UPSTREAM_CLUSTER_KIND, 'Secret']) : ''
  const fix = near !== '' ? `did you mean ${near}?` : `the directory is for ${UPSTREAM_CLUSTER_KIND} and Secret`
  if (kind === undefined || (apiVersion === UPSTREAM_CLUSTER_API_VERSION && near !== '')) {
    out.error('kind', `is ${shown(kind)}`, fix)
    return false
  }
  out.warning('kind', `${shown(kind)} of ${shown(apiVersion)} is ignored`, fix)
  return true
}

/** What the checks said about one object with the secrets it refers to. */
interface Checked {
  /** The references that were followed, and the bytes they led to. */
  readonly secrets: string
  readonly problems: readonly FieldProblem[]
  /** Undefined when there are errors. */
  readonly good: ResolvedCluster | undefined
}

/** Checks objects, and remembers what it said about those that did not change: reading keys and certificates is slow. */
export class ClusterLoader {
  readonly #pem: PemChecks
  readonly #checked = new WeakMap<object, Checked>()

  constructor(pem: PemChecks) {
    this.#pem = pem
  }

  /** Undefined when the object does not even say its name. */
  async load(
    source: SourceObject,
    secrets: Sorted['secrets'],
    files: SecretFiles,
    problems: Problem[],
  ): Promise<FoundCluster | undefined> {
    const resolved = await resolveReferences(source.value, secrets, files)
    const checked = this.#check(source.value, resolved)
    for (const problem of [...resolved.problems, ...checked.problems]) problems.push(located(source, problem))
    const metadata = isRecord(source.value) ? source.value['metadata'] : undefined
    const name = isRecord(metadata) ? metadata['name'] : undefined
    if (typeof name !== 'string' || name === '') return undefined
    if (checked.good === undefined || resolved.problems.length > 0) return { name, source, loaded: undefined }
    return { name, source, loaded: { ...checked.good, file: source.file, line: source.line } }
  }

  #check(value: unknown, { object, origins, bytes }: Resolved): Checked {
    const secrets = [...origins.keys(), ...bytes].join(' ')
    const known = isRecord(value) ? this.#checked.get(value) : undefined
    if (known?.secrets === secrets) return known
    const problems = checkUpstreamCluster(object, this.#pem).map((problem) => {
      return { ...problem, path: origins.get(problem.path) ?? problem.path }
    })
    const isGood = problems.every((problem) => problem.severity !== 'error')
    const checked = { secrets, problems, good: isGood ? resolvedCluster(object) : undefined }
    if (isRecord(value)) this.#checked.set(value, checked)
    return checked
  }
}

function resolvedCluster(object: unknown): ResolvedCluster {
  const cluster = normalizeUpstreamCluster(object)
  return { object: cluster, revision: revisionOf(cluster) }
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
