// `portcullis degrade`: throws the switch of a cluster, and shows whether it is in force everywhere.

import { parseFeatureGates } from '../api/feature-gates.ts'
import { UserError } from '../api/field-errors.ts'
import { nearestName } from '../api/nearest-name.ts'
import type { ObjectClient } from '../api/object-client.ts'
import type { JsonObject } from '../api/resource-kind.ts'
import { UPSTREAM_CLUSTERS } from '../api/scheme.ts'
import { type Degrade, type DegradeMode, FEATURE_GATES_ANNOTATION } from '../api/upstream-cluster.ts'
import { timeOf } from '../core/cluster-status.ts'
import { parseDuration } from '../core/duration.ts'
import {
  type ControlPlaneOptions,
  getCluster,
  metadataOf,
  readPositiveDuration,
  withControlPlane,
} from './control-plane.ts'
import { waitApplied } from './wait-applied.ts'

export interface DegradeOptions extends ControlPlaneOptions {
  readonly cluster: string
  /** Off, ReadOnly, HeartbeatsOnly or Freeze; default: it stays as it is. */
  readonly mode?: string
  /** Needed with every mode but Off. */
  readonly reason?: string
  /** A Go duration; default: until it is switched off. */
  readonly ttl?: string
  /** Wait until it is in force everywhere, and show where. */
  readonly status: boolean
  /** How long to wait. Default 30s. */
  readonly timeout?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const MODES: readonly DegradeMode[] = ['Off', 'ReadOnly', 'HeartbeatsOnly', 'Freeze']
const MANAGER = 'portcullis-degrade'

/** Resolves with the exit code: 1 when something is wrong, or with `status` when a replica does not have it in time. */
export function degrade(options: DegradeOptions): Promise<number> {
  return withControlPlane(options, async (client) => {
    const { cluster, status, now, out, err } = options
    const change = readChange(options)
    const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '30s', parseDuration)
    const before = await getCluster(client, cluster)
    const after = change === undefined ? before : await throwSwitch(client, cluster, change)
    out(`${describe(after, now())}\n`)
    for (const warning of warnings(after, change)) err(`warning: ${warning}\n`)
    return status ? await waitApplied({ client, timeoutMs, now, out, err }, cluster) : 0
  })
}

/** As a merge patch has it: null removes. */
interface Change {
  readonly mode: DegradeMode
  readonly reason: string | null
  readonly expiresAt: string | null
}

function readChange({ mode: text, reason = '', ttl, status, now }: DegradeOptions): Change | undefined {
  if (text === undefined) {
    if (reason !== '' || ttl !== undefined)
      throw new UserError('--reason and --ttl need --mode', `name one: ${MODES.join(', ')}`)
    if (!status) throw new UserError('nothing to do', 'give --mode MODE to throw the switch, or --status to look at it')
    return undefined
  }
  const mode = MODES.find((known) => known.toLowerCase() === text.toLowerCase())
  if (mode === undefined) {
    const meant = nearestName(text, MODES)
    const fix = `${meant === '' ? '' : `did you mean ${meant}? `}modes are ${MODES.join(', ')}`
    throw new UserError(`there is no mode ${JSON.stringify(text)}`, fix)
  }
  if (mode === 'Off') {
    if (ttl !== undefined) throw new UserError('Off has no end', 'leave --ttl out')
    return { mode, reason: reason === '' ? null : reason, expiresAt: null }
  }
  if (reason.trim() === '')
    throw new UserError(`${mode} needs a reason`, 'give --reason TEXT: every refused client reads it')
  const ttlMs = ttl === undefined ? undefined : readPositiveDuration('--ttl', ttl, parseDuration)
  return { mode, reason, expiresAt: ttlMs === undefined ? null : expiryOf(now() + ttlMs) }
}

function expiryOf(atMs: number): string {
  // Beyond the year 9999 is no RFC 3339.
  if (atMs >= Date.UTC(10_000, 0)) throw new UserError('--ttl is too long', 'leave it out: then the mode has no end')
  return timeOf(atMs)
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
  const { mode = 'Off', reason = '', expiresAt } = degradeOf(object)
  const what = `${name}: degrade mode ${mode}`
  const why = reason === '' ? '' : `: ${reason}`
  if (mode === 'Off') return `${what} (generation ${generation})${why}`
  if (expiresAt === undefined) return `${what} without an end (generation ${generation})${why}`
  const over = Date.parse(expiresAt) <= nowMs ? `, which ended at ${expiresAt}` : ` until ${expiresAt}`
  return `${what}${over} (generation ${generation})${why}`
}

/** What makes the switch do something else than its mode says. */
function warnings(object: JsonObject, change: Change | undefined): string[] {
  const found: string[] = []
  const { name, annotations } = metadataOf(object)
  const { mode = 'Off', shadow = false } = degradeOf(object)
  if (shadow && mode !== 'Off')
    found.push('spec.degrade.shadow is set: nothing is refused, only counted and warned about')
  const gates = parseFeatureGates(annotations?.[FEATURE_GATES_ANNOTATION] ?? '').enabled
  if (gates.has('DenyAllRequests') && mode !== 'Freeze') {
    found.push(
      `${FEATURE_GATES_ANNOTATION}: DenyAllRequests=true freezes ${name} whatever the mode; remove the annotation`,
    )
  }
  if (change !== undefined && change.mode !== 'Off' && change.expiresAt === null) {
    found.push('no --ttl was given: it stays until somebody switches it off')
  }
  return found
}
