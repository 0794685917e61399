// Sorts the objects of a configuration directory: Secrets to refer to, UpstreamClusters to check, and others to ignore.

import type { FieldError } from '../../../../kit/api/json/field-error.ts'
import { isRecord, recordOf } from '../../../../kit/api/json/object-shape.ts'
import { FieldErrors, reportable, shown } from '../../../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../../../kit/api/validation/nearest-name.ts'
import type { PemChecks } from '../../../../kit/api/validation/pem-checks.ts'
import type { ResolvedCluster, SourceError } from '../../../api/resource-source.ts'
import type { ClusterCheckOptions } from '../../../api/upstream-cluster/checks.ts'
import { UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND } from '../../../api/upstream-cluster/upstream-cluster.ts'
import { asWritten, type Resolved, readSecret, secretName } from '../../secrets/secret-references.ts'
import { type CheckedCluster, checkCluster, secretsOf } from '../objects/check-cluster.ts'
import type { SourceObject } from './parse.ts'
import { resolveReferences, type SecretFiles } from './secret-files.ts'

/** A valid cluster and its location. */
export interface LoadedCluster extends ResolvedCluster {
  /** Relative to the directory. */
  readonly file: string
  readonly line: number
}

/** A cluster defined in a file, valid or not. */
export interface FoundCluster {
  readonly name: string
  readonly source: SourceObject
  /** undefined if there are errors. */
  readonly loaded: LoadedCluster | undefined
}

interface SortedObjects {
  readonly secrets: ReadonlyMap<string, ReadonlyMap<string, Buffer>>
  readonly clusters: readonly SourceObject[]
}

/** By kind; other kinds are ignored, with a warning. */
export function sortObjects(
  objects: readonly SourceObject[],
  problems: SourceError[],
  brokenFiles: Set<string>,
): SortedObjects {
  const secrets = new Map<string, ReadonlyMap<string, Buffer>>()
  const clusters: SourceObject[] = []
  for (const source of objects) {
    const { value } = source
    const out = new FieldErrors()
    if (!isRecord(value)) {
      out.invalid('', 'is not an object', `write a map with apiVersion, kind, metadata and spec`)
      brokenFiles.add(source.file)
    } else if (value['kind'] === UPSTREAM_CLUSTER_KIND) {
      clusters.push(source)
    } else if (value['kind'] === 'Secret' && value['apiVersion'] === 'v1') {
      const metadata = recordOf(value['metadata'])
      const name = secretName(metadata['namespace'], metadata['name'])
      const data = readSecret(value, out)
      if (secrets.has(name)) out.invalid('metadata.name', `Secret ${name} is defined twice`, 'keep one of the two')
      else secrets.set(name, data)
    } else if (!isForeign(value, out)) brokenFiles.add(source.file)
    for (const problem of reportable(out.found)) problems.push(located(source, problem))
  }
  return { secrets, clusters }
}

/** Whether the object is definitely not one of ours, as opposed to one with a misspelt or missing kind. */
function isForeign({ apiVersion, kind }: Readonly<Record<string, unknown>>, out: FieldErrors): boolean {
  const near = typeof kind === 'string' ? nearestName(kind, [UPSTREAM_CLUSTER_KIND, 'Secret']) : ''
  const fix = near !== '' ? `did you mean ${near}?` : `the directory is for ${UPSTREAM_CLUSTER_KIND} and Secret`
  if (kind === undefined || (apiVersion === UPSTREAM_CLUSTER_API_VERSION && near !== '')) {
    out.invalid('kind', `is ${shown(kind)}`, fix)
    return false
  }
  out.warning('kind', `${shown(kind)} of ${shown(apiVersion)} is ignored`, fix)
  return true
}

/** Checks objects, and caches results of unchanged ones: reading keys and certificates is slow. */
export class ClusterLoader {
  readonly #pem: PemChecks
  readonly #checks: ClusterCheckOptions
  readonly #followsReferences: boolean
  readonly #checked = new WeakMap<object, CheckedCluster>()

  constructor(pem: PemChecks, checks: ClusterCheckOptions, followsReferences: boolean) {
    this.#followsReferences = followsReferences
    this.#pem = pem
    this.#checks = checks
  }

  /** undefined if the object has no name. */
  async load(
    source: SourceObject,
    secrets: SortedObjects['secrets'],
    files: SecretFiles,
    problems: SourceError[],
  ): Promise<FoundCluster | undefined> {
    const resolved = this.#followsReferences
      ? await resolveReferences(source.value, secrets, files)
      : asWritten(source.value)
    const checked = this.#check(source.value, resolved)
    for (const problem of [...resolved.problems, ...checked.problems]) problems.push(located(source, problem))
    const metadata = isRecord(source.value) ? source.value['metadata'] : undefined
    const name = isRecord(metadata) ? metadata['name'] : undefined
    if (typeof name !== 'string' || name === '') return undefined
    if (checked.good === undefined || resolved.problems.length > 0) return { name, source, loaded: undefined }
    return { name, source, loaded: { ...checked.good, file: source.file, line: source.line } }
  }

  #check(value: unknown, resolved: Resolved): CheckedCluster {
    const known = isRecord(value) ? this.#checked.get(value) : undefined
    if (known?.secrets === secretsOf(resolved)) return known
    const checked = checkCluster(resolved, this.#pem, this.#checks)
    if (isRecord(value)) this.#checked.set(value, checked)
    return checked
  }
}

/** A field problem with its file and line. */
export function located(source: SourceObject, problem: FieldError): SourceError {
  return { file: source.file, line: source.lineOf(problem.path), ...problem }
}
