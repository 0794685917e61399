// `portcullis degrade`: sets the degrade mode of a cluster, and shows whether it is in force everywhere.

import { UPSTREAM_CLUSTERS } from '../api/kinds/scheme.ts'
import type { JsonObject } from '../api/kube/json-object.ts'
import type { ObjectClient } from '../api/ports/object-client.ts'
import { DEFAULT_DEGRADE_MODE, DEGRADE_MODES, type DegradeMode } from '../api/upstream-cluster/degrade-modes.ts'
import { parseFeatureGates } from '../api/upstream-cluster/feature-gates.ts'
import { type Degrade, FEATURE_GATES_ANNOTATION } from '../api/upstream-cluster/upstream-cluster.ts'
import { UserError } from '../api/validation/field-errors.ts'
import { nearestName } from '../api/validation/nearest-name.ts'
import { parseDuration } from '../core/text/duration.ts'
import { metaTime } from '../core/text/meta-time.ts'
import {
  type ControlPlaneOptions,
  getCluster,
  metadataOf,
  readPositiveDuration,
  withControlPlane,
} from './client/control-plane.ts'
import { waitApplied } from './client/wait-applied.ts'

export interface DegradeOptions extends ControlPlaneOptions {
  readonly cluster: string
  /** A DegradeMode, case-insensitive; default: unchanged. */
  readonly mode?: string
  /** Required with every mode but Off. */
  readonly reason?: string
  /** A Go duration; default: until it is switched off. */
  readonly ttl?: string
  /** With a mode: refuse nothing, only count and warn. Default false, which ends shadow mode. */
  readonly shadow?: boolean
  /** Wait until it is in force everywhere, and show where. */
  readonly status: boolean
  /** How long to wait. Default 30s. */
  readonly timeout?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const MANAGER = 'portcullis-degrade'

/**
 * Resolves with the exit code: 1 after an error, when the effective mode differs from the mode set, or with `status` when a replica does
 * not have it in force in time, or only in shadow mode.
 */
export function degrade(options: DegradeOptions): Promise<number> {
  return withControlPlane(options, async (client) => {
    const { cluster, status, now, out, err } = options
    const change = readChange(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const before = await getCluster(client, cluster)
    const after = change === undefined ? before : await throwSwitch(client, cluster, change)
    out(`${describe(after, now())}\n`)
    if (change !== undefined && change.mode !== 'Off' && change.expiresAt === null) {
      err('warning: without --ttl the mode stays until somebody switches it off\n')
    }
    if (change !== undefined && !status) out('written; --status shows where it is in force\n')
    const inForce = inForceText(after, now())
    const code = status ? await waitApplied({ client, timeoutMs, now, out, err, inForce }, cluster) : 0
    const faults = faultsOf(after, change)
    for (const fault of faults) err(`error: ${fault}\n`)
    return faults.length > 0 ? 1 : code
  })
}

/** In a merge patch, null removes a field. */
interface Change {
  readonly mode: DegradeMode
  readonly reason: string | null
  readonly expiresAt: string | null
  /** Always written: a shadow mode left over from an earlier trial must not disarm this mode. */
  readonly shadow: true | null
}

function readChange({ mode: text, reason = '', ttl, shadow = false, status, now }: DegradeOptions): Change | undefined {
  if (text === undefined) {
    if (reason !== '' || ttl !== undefined || shadow)
      throw new UserError('--reason, --ttl and --shadow need --mode', `name one: ${DEGRADE_MODES.join(', ')}`)
    if (!status) throw new UserError('nothing to do', 'give --mode MODE to set the mode, or --status to see it')
    return undefined
  }
  const mode = DEGRADE_MODES.find((known) => known.toLowerCase() === text.toLowerCase())
  if (mode === undefined) {
    const meant = nearestName(text, DEGRADE_MODES)
    const fix = `${meant === '' ? '' : `did you mean ${meant}? `}modes are ${DEGRADE_MODES.join(', ')}`
    throw new UserError(`${JSON.stringify(text)} is not a mode`, fix)
  }
  if (mode === 'Off') {
    if (ttl !== undefined) throw new UserError('Off has no end', 'leave --ttl out')
    if (shadow) throw new UserError('Off refuses nothing', 'leave --shadow out')
    return { mode, reason: reason === '' ? null : reason, expiresAt: null, shadow: null }
  }
  if (reason.trim() === '')
    throw new UserError(`${mode} needs a reason`, 'give --reason TEXT: every refused client reads it')
  const ttlMs = ttl === undefined ? undefined : readPositiveDuration('--ttl', ttl, parseDuration)
  const expiresAt = ttlMs === undefined ? null : expiryOf(now() + ttlMs)
  return { mode, reason, expiresAt, shadow: shadow ? true : null }
}

function expiryOf(atMs: number): string {
  // RFC 3339 ends with the year 9999.
  if (atMs >= Date.UTC(10_000, 0)) throw new UserError('--ttl is too long', 'leave it out: then the mode has no end')
  return metaTime(atMs)
}

async function throwSwitch(client: ObjectClient, name: string, change: Change): Promise<JsonObject> {
  const patch = { spec: { degrade: change } }
  const options = { fieldManager: MANAGER }
  return await client.patch(UPSTREAM_CLUSTERS, { namespace: '', name }, 'application/merge-patch+json', patch, options)
}

function degradeOf(object: JsonObject): Degrade {
  return (object['spec'] as { degrade?: Degrade } | undefined)?.degrade ?? {}
}

function describe(object: JsonObject, nowMs: number): string {
  const { name, generation = 1 } = metadataOf(object)
  const { mode = DEFAULT_DEGRADE_MODE, reason = '', expiresAt, shadow = false } = degradeOf(object)
  const what = `${name}: degrade mode ${mode}`
  const why = reason === '' ? '' : `: ${reason}`
  if (mode === 'Off') return `${what} (generation ${generation})${why}`
  const how = shadow ? `${what} in shadow, nothing is refused,` : what
  if (expiresAt === undefined) return `${how} without an end (generation ${generation})${why}`
  const over = isOver(object, nowMs) ? `, which ended at ${expiresAt}` : ` until ${expiresAt}`
  return `${how}${over} (generation ${generation})${why}`
}

function isOver(object: JsonObject, nowMs: number): boolean {
  const { expiresAt } = degradeOf(object)
  return expiresAt !== undefined && Date.parse(expiresAt) <= nowMs
}

/** What a replica with the object in force does. */
function inForceText(object: JsonObject, nowMs: number): string {
  const { mode = DEFAULT_DEGRADE_MODE, shadow = false } = degradeOf(object)
  if (mode === 'Off' || deniesAll(object)) return 'in force'
  if (isOver(object, nowMs)) return 'ended'
  return shadow ? 'in shadow' : 'in force'
}

/** Why the effective mode differs from the mode set. */
function faultsOf(object: JsonObject, change: Change | undefined): string[] {
  const found: string[] = []
  const { name } = metadataOf(object)
  const { mode = DEFAULT_DEGRADE_MODE, shadow = false } = degradeOf(object)
  if (shadow && mode !== 'Off' && change?.shadow !== true) {
    found.push(
      `${mode} is in shadow on ${name}: nothing is refused, only counted and warned about; give --mode to end the shadow`,
    )
  }
  if (deniesAll(object) && mode !== 'Freeze') {
    found.push(
      `${FEATURE_GATES_ANNOTATION}: DenyAllRequests=true freezes ${name} whatever the mode; remove the annotation`,
    )
  }
  return found
}

function deniesAll(object: JsonObject): boolean {
  const { annotations } = metadataOf(object)
  return parseFeatureGates(annotations?.[FEATURE_GATES_ANNOTATION] ?? '').enabled.has('DenyAllRequests')
}
