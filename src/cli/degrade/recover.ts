// `portcullis degrade --recover`: begins a recovery by steps, and refuses where nobody would carry it out.

import { LEASES, UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { complete, DURATION_PATTERN, fieldOf } from '../../api/kube/json-schema.ts'
import { recordOf, textOf } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { LEADER_LEASE } from '../../core/status/gateways.ts'
import { metadataOf } from '../client/control-plane.ts'
import type { DegradeOptions } from './options.ts'
import { degradeOf, isOver } from './state.ts'

const DURATION = new RegExp(DURATION_PATTERN)
const SCHEMA = fieldOf(fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'degrade'), 'recovery')

/** In a merge patch, null is the default again. */
export interface RecoveryChange {
  readonly hold: string | null
  readonly ramp: string | null
}

/** undefined = no recovery is asked for. @throws {UserError} */
export function readRecovery({
  recover = false,
  mode,
  hold,
  ramp,
  watch,
  status,
}: DegradeOptions): RecoveryChange | undefined {
  if (watch === true && !status) throw new UserError('--watch needs --status', 'give both')
  if (!recover) {
    if (hold !== undefined || ramp !== undefined) throw new UserError('--hold and --ramp need --recover', 'give it')
    return undefined
  }
  if (mode !== undefined) {
    throw new UserError('--recover goes on from the mode that is set', 'leave --mode out, or set it before')
  }
  for (const [flag, text] of Object.entries({ '--hold': hold, '--ramp': ramp })) {
    if (text === undefined || DURATION.test(text)) continue
    throw new UserError(`${flag} ${JSON.stringify(text)} is not a duration`, `write ${flag} 90s, 10m or 1h30m`)
  }
  return { hold: hold ?? null, ramp: ramp ?? null }
}

/** @throws {UserError} when there is nothing to recover from, or nobody who would do it */
export async function startRecovery(
  client: ObjectClient,
  object: JsonObject,
  recovery: RecoveryChange,
  { now, out, err }: DegradeOptions,
  fieldManager: string,
): Promise<JsonObject> {
  const { name } = metadataOf(object)
  const { mode = 'Off' } = degradeOf(object)
  if (mode === 'Off' || isOver(object, now())) {
    throw new UserError(`the degrade mode of ${name} is Off`, 'there is nothing to recover from')
  }
  await requireLeader(client, now(), err)
  // The expiry would end every refusal at once, whatever the checks say.
  const patch = { spec: { degrade: { recovery, expiresAt: null } } }
  const at = { namespace: '', name }
  const after = await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, { fieldManager })
  if (degradeOf(after).recovery === undefined) {
    const fix = 'its CustomResourceDefinition is older: kubectl apply --server-side -f deploy/crds'
    throw new UserError('the API server has dropped spec.degrade.recovery', fix)
  }
  const { hold, ramp } = complete(SCHEMA, degradeOf(after).recovery)
  out(
    `${name}: recovery from ${mode}: a mode at a time, each when its checks have held for ${hold}, Limited for ${ramp}\n`,
  )
  return after
}

const FILES = 'objects that are files have no leader: set spec.degrade.mode there, a mode at a time'

async function requireLeader(client: ObjectClient, nowMs: number, err: (text: string) => void): Promise<void> {
  let lease: JsonObject
  try {
    lease = await client.get(LEASES, LEADER_LEASE)
  } catch (error) {
    if (!(error instanceof StatusError) || (error.code !== 404 && error.code !== 403)) throw error
    // Who may not read Leases may still begin a recovery.
    if (error.code === 403) return
    throw new UserError('no gateway leads there, and the leader is who takes the steps', FILES)
  }
  const { holderIdentity, renewTime, leaseDurationSeconds } = recordOf(lease['spec'])
  const renewedMs = Date.parse(textOf(renewTime))
  const durationMs = Number(leaseDurationSeconds) * 1000
  // Clocks of two machines differ: who is late by their difference only is not dead.
  if (textOf(holderIdentity) !== '' && nowMs - renewedMs < 4 * durationMs) return
  err(`warning: no gateway has led since ${textOf(renewTime)}: the steps are taken once one does\n`)
}
