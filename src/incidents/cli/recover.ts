// A recovery by steps: `portcullis degrade --recover` starts it, and refuses if no gateway would carry it out; `--status` shows its
// progress, once or until it is over.

import { getCluster, metadataOf } from '../../cli/client/control-plane.ts'
import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../gateway/api/upstream-cluster/schema.ts'
import type { RecoveryStatus, UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { LEADER_LEASE } from '../../gateway/core/status/gateways.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { complete, DURATION_PATTERN, fieldOf } from '../../kit/api/json/json-schema.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import type { DegradeOptions, SwitchFlags } from './change.ts'
import { degradeOf, goalOf, switchHasExpired } from './state.ts'

const DURATION = new RegExp(DURATION_PATTERN)
const SCHEMA = fieldOf(fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'degrade'), 'recovery')

/** In a merge patch, null restores the default. */
export interface RecoveryChange {
  readonly hold: string | null
  readonly ramp: string | null
}

/** undefined = no recovery is requested. @throws {UserError} */
export function readRecovery({
  recover = false,
  mode,
  hold,
  ramp,
  watch,
  status,
}: SwitchFlags): RecoveryChange | undefined {
  if (watch === true && !status) throw new UserError('--watch needs --status', 'give both')
  if (!recover) {
    if (hold !== undefined || ramp !== undefined) throw new UserError('--hold and --ramp need --recover', 'give it')
    return undefined
  }
  if (mode !== undefined) {
    throw new UserError('--recover continues from the mode that is set', 'leave --mode out, or set the mode first')
  }
  for (const [flag, text] of Object.entries({ '--hold': hold, '--ramp': ramp })) {
    if (text === undefined || DURATION.test(text)) continue
    throw new UserError(`${flag} ${JSON.stringify(text)} is not a duration`, `write ${flag} 90s, 10m or 1h30m`)
  }
  return { hold: hold ?? null, ramp: ramp ?? null }
}

/** @throws {UserError} if there is nothing to recover from, or no gateway to do it */
export async function startRecovery(
  client: ObjectClient,
  object: JsonObject,
  recovery: RecoveryChange,
  { now, out, err }: DegradeOptions,
  fieldManager: string,
): Promise<JsonObject> {
  const { name } = metadataOf(object)
  const { mode = 'Off' } = degradeOf(object)
  if (mode === 'Off' || switchHasExpired(object, now())) {
    throw new UserError(`the degrade mode of ${name} is Off`, 'there is nothing to recover from')
  }
  await requireLeader(client, now(), err)
  // The expiry would lift all restrictions at once, whatever the checks say.
  const patch = { spec: { degrade: { recovery, expiresAt: null } } }
  const at = { namespace: '', name }
  const after = await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, { fieldManager })
  if (degradeOf(after).recovery === undefined) {
    const fix = 'its CustomResourceDefinition is older: kubectl apply --server-side -f deploy/crds'
    throw new UserError('the API server has dropped spec.degrade.recovery', fix)
  }
  const { hold, ramp } = complete(SCHEMA, degradeOf(after).recovery)
  out(
    `${name}: recovery from ${mode}${goalText(after, now())}: a mode at a time, each when its checks have held for ${hold}, Limited for ${ramp}\n`,
  )
  return after
}

/** '' = Off, as ever. */
function goalText(object: JsonObject, nowMs: number): string {
  const goal = goalOf(object, nowMs)
  return goal === 'Off' ? '' : ` to ${goal}, as before`
}

const FILES = 'objects that are files have no leader: set spec.degrade.mode there, a mode at a time'

/** @throws {UserError} if no gateway would take the steps */
export async function requireLeader(client: ObjectClient, nowMs: number, err: (text: string) => void): Promise<void> {
  let lease: JsonObject
  try {
    lease = await client.get(LEASES, LEADER_LEASE)
  } catch (error) {
    if (!(error instanceof StatusError) || (error.code !== 404 && error.code !== 403)) throw error
    // Without the right to read Leases a recovery may still be started.
    if (error.code === 403) return
    throw new UserError('no gateway is the leader there, and only the leader takes the steps', FILES)
  }
  const { holderIdentity, renewTime, leaseDurationSeconds } = recordOf(lease['spec'])
  const renewedMs = Date.parse(textOf(renewTime))
  const durationMs = Number(leaseDurationSeconds) * 1000
  // Clocks of two machines differ: a replica late by no more than that is not dead.
  if (textOf(holderIdentity) !== '' && nowMs - renewedMs < 4 * durationMs) return
  err(`warning: no gateway has led since ${textOf(renewTime)}: the steps are taken once one does\n`)
}

const POLL_MS = 1_000

/** '' = there is none. */
export function recoveryReport(object: JsonObject): string {
  const { recovery } = degradeOf(object)
  if (recovery === undefined) return ''
  const seen = recoveryOf(object)
  if (seen === undefined) return 'recovery: the leader has not begun it yet\n'
  const { step, since, startedFrom, holdingSince, checks, waitingFor } = seen
  const ladder: readonly string[] = DEGRADE_MODES
  const rung = ladder.length - ladder.indexOf(step)
  const head = `recovery: ${step} since ${since}, step ${rung} of ${ladder.length}, started from ${startedFrom}`
  const rows = checks.map(({ name, ok, message }) => [name, ok ? 'yes' : 'no', message])
  const table = rows.length === 0 ? '' : textTable([['CHECK', 'HOLDS', 'SEEN'], ...rows], '  ')
  const held = holdingSince === undefined ? '' : `  all hold since ${holdingSince}\n`
  return `${head}\n${table}${held}  waits for: ${waitingFor}\n`
}

function recoveryOf(object: JsonObject): RecoveryStatus | undefined {
  return (recordOf(object['status']) as UpstreamClusterStatus).degrade?.recovery
}

/** Prints the report whenever it changes. The exit code: 0 if the mode is Off in the end. */
export async function watchRecovery(client: ObjectClient, cluster: string, options: DegradeOptions): Promise<number> {
  const { out, err, now, pollMs = POLL_MS } = options
  let shown: string | undefined
  let goal: DegradeMode = 'Off'
  for (;;) {
    const object = await getCluster(client, cluster)
    const report = recoveryReport(object)
    if (report === '') return ended(object, shown, goal, out, err)
    if (report !== shown) out(report)
    shown = report
    goal = goalOf(object, now())
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

function ended(
  object: JsonObject,
  shown: string | undefined,
  goal: DegradeMode,
  out: DegradeOptions['out'],
  err: DegradeOptions['err'],
): number {
  const { mode = 'Off' } = degradeOf(object)
  const { name } = metadataOf(object)
  if (shown === undefined) out(`${name}: no recovery is under way\n`)
  else if (mode === goal || mode === 'Off') out(`${name}: recovery complete, the degrade mode is ${mode}\n`)
  else err(`error: the recovery of ${name} was ended by hand; the degrade mode is ${mode}\n`)
  return shown === undefined || mode === goal || mode === 'Off' ? 0 : 1
}
