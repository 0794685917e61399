// A recovery's writes to its cluster: the mode, guarded by the version decided on; the status, whatever else has changed, with the result of each check or
// why there was none; and Events.

import type { DegradeStatus, RecoveryStatus } from '../../../gateway/api/upstream-cluster/status.ts'
import type { DegradeBefore } from '../../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../../gateway/api/upstream-cluster-kind.ts'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { EventRecorder, involvedIn } from '../../../kube/controllers/events/event-recorder.ts'
import { type PatchTarget, patchAsSeen, patchSame } from '../../../kube/controllers/kernel/object-patch.ts'
import type { StatusTransition } from '../../../kube/core/status-transition.ts'
import type { RecoveryAction, RecoveryDecision } from '../../core/recovery.ts'
import type { SwitchedCluster } from './switched-cluster.ts'

/** Field manager of spec.degrade.mode during a recovery. */
export const RECOVERY_MANAGER = 'portcullis-recovery'

/** A change of the mode. */
export type RecoveryStep = Extract<RecoveryAction, { kind: 'climb' | 'goBack' }>

interface RecoveryWriterDeps {
  readonly client: ObjectClient
  readonly replica: string
  readonly clock: Clock
  readonly log: Logger
}

/** Each rejects with the API server's error; 409 if the object has changed since the decision. */
export class RecoveryWriter {
  readonly #deps: RecoveryWriterDeps
  readonly #target: PatchTarget
  readonly #events: EventRecorder

  constructor(deps: RecoveryWriterDeps) {
    this.#deps = deps
    this.#target = { client: deps.client, kind: UPSTREAM_CLUSTERS, fieldManager: RECOVERY_MANAGER }
    this.#events = new EventRecorder(deps)
  }

  async setMode(seen: SwitchedCluster, action: RecoveryStep): Promise<void> {
    const { clock, log } = this.#deps
    // The rate ramps up from then on.
    const since = action.to === 'Limited' ? metaTime(clock.now()) : null
    await this.#patchSpec(seen, { mode: action.to, since })
    const climbs = action.kind === 'climb'
    const message = `${seen.mode} -> ${action.to}: ${action.because}`
    log.info(climbs ? 'recovery: next step' : 'recovery: step back', { cluster: nameOf(seen.object), message })
    const [type, reason] = climbs ? (['Normal', 'RecoveryStep'] as const) : (['Warning', 'RecoverySetBack'] as const)
    this.#tell(seen.object, { type, reason, message })
  }

  /**
   * Removes the recovery and the rest of the incident from the object.
   * @param before what applied before it, if that was not Off
   */
  async finish(seen: SwitchedCluster, why: string, before: DegradeBefore | undefined): Promise<void> {
    const forgotten = seen.remembers ? { before: null } : {}
    const object = await this.#patchSpec(seen, { ...endOf(seen, before), recovery: null, ...forgotten })
    const from = seen.status.recovery?.startedFrom
    const message = `${why}${from === undefined ? '' : `: the recovery from ${from} is complete`}`
    this.#deps.log.info('recovery: done', { cluster: nameOf(seen.object), message })
    await this.status({ object, status: seen.status }, {}, { type: 'Normal', reason: 'Recovered', message })
  }

  async status(
    { object, status }: Pick<SwitchedCluster, 'object' | 'status'>,
    wanted: DegradeStatus,
    told?: StatusTransition,
  ): Promise<void> {
    const degrade = statusPatch(status, wanted)
    if (degrade !== undefined)
      await patchSame({ ...this.#target, subresource: 'status' }, object, { status: { degrade } })
    if (told !== undefined) this.#tell(object, told)
  }

  async stop(): Promise<void> {
    await this.#events.stop()
  }

  #tell(object: JsonObject, news: StatusTransition): void {
    this.#events.record(this.#deps.client, involvedIn(object), news)
  }

  #patchSpec({ object }: SwitchedCluster, degrade: JsonObject): Promise<JsonObject> {
    return patchAsSeen(this.#target, object, { spec: { degrade } })
  }
}

function endOf({ mode }: SwitchedCluster, before: DegradeBefore | undefined): JsonObject {
  if (before === undefined) return { mode: 'Off', reason: null, expiresAt: null, since: null }
  // Loosened by hand: nothing is made stricter again.
  if (mode !== before.mode) return {}
  // `since` stays: Limited goes on with the rate that it has reached.
  return { reason: null, expiresAt: null, shadow: null, ...before }
}

/**
 * @param sinceMs when the step began, milliseconds since the epoch
 * @param holdingSinceMs since when its checks hold, likewise; undefined = they don't
 */
export function recoveryStatus(
  { state: { step, startedFrom }, checks, waitingFor }: RecoveryDecision,
  sinceMs: number,
  holdingSinceMs: number | undefined,
): RecoveryStatus {
  return {
    step,
    since: metaTime(sinceMs),
    startedFrom,
    ...(holdingSinceMs !== undefined && { holdingSince: metaTime(holdingSinceMs) }),
    checks: checks.map(({ name, ok, message }) => ({ name, ok, message })),
    waitingFor,
  }
}

/** For a recovery that can't be checked: it stays at its step. */
export function blockedStatus(
  { mode, status: { recovery } }: SwitchedCluster,
  waitingFor: string,
  nowMs: number,
): { readonly recovery: RecoveryStatus } {
  const step = mode ?? recovery?.step ?? ''
  const since = recovery?.step === step ? recovery.since : metaTime(nowMs)
  return { recovery: { step, since, startedFrom: recovery?.startedFrom ?? step, checks: [], waitingFor } }
}

/** A merge patch of status.degrade, in which null removes a field; undefined = no change. */
export function statusPatch(before: DegradeStatus, wanted: DegradeStatus): object | undefined {
  const recovery = wanted.recovery && { ...wanted.recovery, holdingSince: wanted.recovery.holdingSince ?? null }
  if (sameJson(before.recovery, wanted.recovery) && before.readyNodesBefore === wanted.readyNodesBefore)
    return undefined
  return { recovery: recovery ?? null, readyNodesBefore: wanted.readyNodesBefore ?? null }
}

/** True unless only numbers in messages have changed. */
export function isUrgent(before: DegradeStatus, wanted: DegradeStatus): boolean {
  return !sameJson(essence(before), essence(wanted))
}

function essence({ recovery, readyNodesBefore }: DegradeStatus): unknown {
  if (recovery === undefined) return [readyNodesBefore ?? null]
  const { step, startedFrom, holdingSince, checks, waitingFor } = recovery
  const held = checks.map(({ name, ok }) => [name, ok])
  return [
    readyNodesBefore ?? null,
    step,
    startedFrom,
    holdingSince === undefined,
    held,
    checks.length === 0 ? waitingFor : '',
  ]
}
