// Installs CRDs in a cluster: creates them if absent, updates them if an older version wrote them or fields are missing, and leaves them alone if a
// newer version wrote them, so that the older of two versions never removes fields. Without write permission it only checks them.

import { setTimeout as sleep } from 'node:timers/promises'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../kit/api/json/object-shape.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { ObjectClient } from '../api/object-client.ts'
import { VERSION_LABEL } from '../api/own-names.ts'
import type { ResourceKind } from '../api/resource-kind.ts'
import { StatusError } from '../api/status.ts'

export interface InstallCrdsOptions {
  readonly client: ObjectClient
  /** As built by upstreamClusterCrd(). */
  readonly crds: readonly JsonObject[]
  readonly log: Logger
  /** Deadline for the API server to serve them, milliseconds. Default 30 s. */
  readonly timeoutMs?: number
  /** The command an operator runs instead. Default `kubectl apply --server-side -f deploy/crds`. */
  readonly command?: string
}

const CRDS: ResourceKind = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  categories: [],
  namespaced: false,
  hasStatus: true,
  hasGeneration: true,
  schema: { type: 'object' },
  columns: [],
  selectableFields: [],
  check: () => [],
}
const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_COMMAND = 'kubectl apply --server-side -f deploy/crds'
const POLL_MS = 100
const SEMVER = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-|$)/

/**
 * Resolves when the API server serves every CRD with all fields.
 * @throws {UserError} (rejects) if one is missing or too old and must not be written: names the command to run
 * @throws {Error} (rejects) if the server does not respond
 */
export async function installCrds(options: InstallCrdsOptions): Promise<void> {
  for (const crd of options.crds) {
    const wanted = await put(options, crd)
    if (wanted) await established(options, nameOf(crd))
  }
}

/** @throws {UserError} if it no longer serves what this version reads */
function leaveAlone({ log }: InstallCrdsOptions, crd: JsonObject, found: JsonObject): true {
  const name = nameOf(crd)
  const version = versionOf(found)
  for (const { name: wanted } of versionsOf(crd)) {
    if (versionsOf(found).some((one) => one['name'] === wanted && one['served'] === true)) continue
    throw new UserError(
      `CustomResourceDefinition ${name} is of version ${version} of Portcullis, and no longer serves ${String(wanted)}`,
      `run version ${version}, or one that is newer`,
    )
  }
  log.info('CustomResourceDefinition belongs to a newer version of Portcullis, and is left unchanged', {
    name,
    version,
  })
  return true
}

/** False if the CRD cannot be read, but its objects can. */
async function put(options: InstallCrdsOptions, crd: JsonObject): Promise<boolean> {
  const { client, log, command = DEFAULT_COMMAND } = options
  const name = nameOf(crd)
  const at = { namespace: '', name }
  for (let attempt = 1; ; attempt++) {
    let doing = 'read'
    try {
      const found = await client.get(CRDS, at).catch((error: unknown) => {
        if (error instanceof StatusError && error.code === 404) return undefined
        throw error
      })
      if (found === undefined) {
        doing = 'create'
        await client.create(CRDS, crd)
        log.info('CustomResourceDefinition created', { name })
        return true
      }
      const missing = missingFields(crd, found)
      const age = compareVersions(versionOf(found), versionOf(crd))
      if (age > 0) return leaveAlone(options, crd, found)
      if (missing.length === 0 && age === 0) return true
      doing = missing.length === 0 ? 'update' : `add ${missing.slice(0, 5).join(', ')} to`
      await client.update(CRDS, renewed(found, crd))
      log.info('CustomResourceDefinition updated', { name, added: missing })
      return true
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      // A concurrent write by another replica won.
      if ((error.reason === 'Conflict' || error.reason === 'AlreadyExists') && attempt < 10) continue
      if (error.code !== 403) throw error
      if (doing === 'read') return await isServed(options, crd)
      throw new UserError(
        `may not ${doing} CustomResourceDefinition ${name}: ${error.message}`,
        `run, as an administrator of the cluster: ${command}`,
      )
    }
  }
}

/** Without permission to read CRDs: tries to list its objects. */
async function isServed(
  { client, log, command = DEFAULT_COMMAND }: InstallCrdsOptions,
  crd: JsonObject,
): Promise<false> {
  const name = nameOf(crd)
  try {
    await client.list(rowOf(crd), '', 'portcullis.io/none=none')
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const message =
      error.code === 404 ? `CustomResourceDefinition ${name} is missing` : `${name} cannot be read: ${error.message}`
    throw new UserError(message, `run, as an administrator of the cluster: ${command}`)
  }
  log.warn('the gateway may not read the CustomResourceDefinition, so it is unknown whether it has all fields', {
    name,
    fix: command,
  })
  return false
}

async function established(options: InstallCrdsOptions, name: string): Promise<void> {
  const deadline = performance.now() + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS)
  for (;;) {
    const crd = await options.client.get(CRDS, { namespace: '', name })
    const conditions = conditionsOf(crd)
    if (conditions.get('Established')?.['status'] === 'True') return
    const names = conditions.get('NamesAccepted')
    if (names?.['status'] === 'False') {
      throw new UserError(
        `CustomResourceDefinition ${name} is refused: ${String(names['message'])}`,
        'another CRD has its names; remove that one',
      )
    }
    if (performance.now() > deadline) {
      throw new UserError(
        `CustomResourceDefinition ${name} is not established yet`,
        `see: kubectl describe customresourcedefinition ${name}`,
      )
    }
    await sleep(POLL_MS)
  }
}

function conditionsOf(crd: JsonObject): ReadonlyMap<unknown, JsonObject> {
  const status = recordOf(crd['status'])
  const list: readonly unknown[] = Array.isArray(status['conditions']) ? status['conditions'] : []
  return new Map(list.filter(isRecord).map((condition) => [condition['type'], condition]))
}

/** The existing CRD with our versions and names; other metadata and versions are kept. */
function renewed(found: JsonObject, crd: JsonObject): JsonObject {
  const theirs = specOf(found)
  const ours = specOf(crd)
  const names = new Set(versionsOf(crd).map(({ name }) => name))
  const others = versionsOf(found).filter(({ name }) => !names.has(name))
  const versions = [...versionsOf(crd), ...others.map((version) => ({ ...version, storage: false }))]
  const metadata = recordOf(found['metadata'])
  const labels = { ...recordOf(metadata['labels']), ...recordOf(recordOf(crd['metadata'])['labels']) }
  return { ...found, metadata: { ...metadata, labels }, spec: { ...theirs, ...ours, versions } }
}

/** The Portcullis version that wrote it; '' = unknown: written by hand, or before versions were recorded. */
function versionOf(crd: JsonObject): string {
  const version = recordOf(recordOf(crd['metadata'])['labels'])[VERSION_LABEL]
  return typeof version === 'string' && SEMVER.test(version) ? version : ''
}

/** Less than 0: `a` is older; 0 also if one is unknown. A pre-release counts as its release. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => SEMVER.exec(version)?.slice(1).map(Number))
  for (const [i, part] of (left ?? []).entries()) {
    const other = right?.[i] ?? part
    if (part !== other) return part - other
  }
  return 0
}

/** Paths of fields that `found` lacks: `v1alpha1 spec.degrade`. `v1alpha1` alone: the version is not served. */
function missingFields(crd: JsonObject, found: JsonObject): readonly string[] {
  const missing: string[] = []
  for (const version of versionsOf(crd)) {
    const name = String(version['name'])
    const other = versionsOf(found).find((one) => one['name'] === name && one['served'] === true)
    if (other === undefined) missing.push(name)
    else {
      collectMissing(schemaOf(version), schemaOf(other), '', name, missing)
      const subresources = recordOf(other['subresources'])
      const wanted = recordOf(version['subresources'])
      for (const key of Object.keys(wanted)) if (!Object.hasOwn(subresources, key)) missing.push(`${name} /${key}`)
    }
  }
  return missing
}

function collectMissing(ours: unknown, theirs: unknown, path: string, version: string, missing: string[]): void {
  if (!isRecord(ours)) return
  const other = recordOf(theirs)
  // A schema that preserves unknown fields lacks none.
  if (other['x-kubernetes-preserve-unknown-fields'] === true) return
  if (isRecord(ours['items'])) collectMissing(ours['items'], other['items'], `${path}[]`, version, missing)
  const known = recordOf(other['properties'])
  const wanted = recordOf(ours['properties'])
  for (const [key, schema] of Object.entries(wanted)) {
    const at = path === '' ? key : `${path}.${key}`
    // Every CRD has these, declared or not.
    if (path === '' && key !== 'spec' && key !== 'status') continue
    if (!Object.hasOwn(known, key)) missing.push(`${version} ${at}`)
    else collectMissing(schema, known[key], at, version, missing)
  }
}

function rowOf(crd: JsonObject): ResourceKind {
  const { group, names, scope } = specOf(crd)
  const { plural, kind } = recordOf(names)
  const [version] = versionsOf(crd)
  return {
    ...CRDS,
    group: String(group),
    version: String(version?.['name']),
    kind: String(kind),
    plural: String(plural),
    namespaced: scope === 'Namespaced',
  }
}

function specOf(crd: JsonObject): JsonObject {
  return recordOf(crd['spec'])
}

function versionsOf(crd: JsonObject): readonly JsonObject[] {
  const { versions } = specOf(crd)
  return Array.isArray(versions) ? versions.filter(isRecord) : []
}

function schemaOf(version: JsonObject): unknown {
  return isRecord(version['schema']) ? version['schema']['openAPIV3Schema'] : undefined
}

// Creates and updates the CustomResourceDefinitions at startup; in the background if the API server is down and the gateway starts with the last good
// state.

const RETRY_MS = 10_000

export class CrdInstallation {
  readonly #options: InstallCrdsOptions
  readonly #stopping = new AbortController()

  constructor(options: InstallCrdsOptions) {
    this.#options = options
  }

  /**
   * @param withinMs afterwards, or after a failure, it continues in the background; absent = it must succeed now
   * @throws {UserError} (rejects) only without `withinMs`
   */
  async done(withinMs?: number): Promise<void> {
    const first = installCrds(this.#options)
    if (withinMs === undefined) {
      await first
      return
    }
    void this.#untilInstalled(first)
    const { signal } = this.#stopping
    const late = sleep(withinMs, undefined, { signal }).catch(() => undefined)
    await Promise.race([first.catch(() => undefined), late])
  }

  /** A pending call ends with the client. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Never rejects. */
  async #untilInstalled(first: Promise<void>): Promise<void> {
    const { signal } = this.#stopping
    const { log } = this.#options
    let said = ''
    let attempt: Promise<void> | undefined = first
    while (!signal.aborted) {
      try {
        await (attempt ?? installCrds(this.#options))
        return
      } catch (error) {
        // Retrying does not help if only an operator can fix it.
        if (error instanceof UserError) {
          log.warn('CustomResourceDefinitions are not up to date', { why: error.message, fix: error.fix })
          return
        }
        const why = errorMessage(error)
        if (why !== said && !signal.aborted) {
          log.warn('CustomResourceDefinitions cannot be brought up to date yet; tried again every 10 s', { why })
        }
        said = why
      }
      attempt = undefined
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}
