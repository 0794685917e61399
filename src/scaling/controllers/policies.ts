// Follows the ScaleDownPolicies: valid ones go to the gateway threads; the status says what is in force, and the outcome of the last
// scale-down. An invalid one is left out, and affects no other.

import { conditionsOf, withCondition } from '../../gateway/core/status/conditions.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import {
  EVENTS_OF_REQUESTS_MS,
  type EventPace,
  EventRecorder,
  involvedIn,
} from '../../kube/controllers/events/event-recorder.ts'
import { Informer } from '../../kube/controllers/kernel/informer.ts'
import type { Leading, Tenant } from '../../kube/controllers/kernel/leadership.ts'
import { afterFailedWrite, patchAsSeen } from '../../kube/controllers/kernel/object-patch.ts'
import { type ReconcileOutcome, WorkQueue } from '../../kube/controllers/kernel/work-queue.ts'
import type { ScaleDownReport } from '../api/scale-down.ts'
import type { LastScaleDown, PolicyCondition, ScaleDownPolicyStatus } from '../api/scale-down-policy.ts'
import { SCALE_DOWN_POLICIES } from '../api/scale-down-policy-kind.ts'
import { type CompiledScaleDownPolicy, type ReadPolicy, readScaleDownPolicy } from '../core/victim-choice/policy.ts'

interface ScaleDownPolicyDeps {
  /** API server of the objects. */
  readonly client: ObjectClient
  /** The name of this process, for Events. */
  readonly replica: string
  /** The leader reports whether a policy is in force. */
  readonly leadership: Leading
  /** Called with all policies in force, whenever they change. */
  onPolicies(policies: readonly CompiledScaleDownPolicy[]): void
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly eventPace?: Partial<EventPace>
}

interface Known {
  readonly object: JsonObject
  readonly read: ReadPolicy
}

const FIELD_MANAGER = 'portcullis'
/** Between two statuses of one policy: a thousand scale-downs a second become one write. */
const REPORT_EVERY_MS = 1_000
const MAX_NAMES = 50
/** Concurrent writes. */
const WRITES = 4

export class ScaleDownPolicyController {
  readonly #deps: ScaleDownPolicyDeps
  readonly #known: Informer<Known>
  /** The last unreported scale-down of each policy. */
  readonly #reports = new Map<string, ScaleDownReport>()
  readonly #queue: WorkQueue
  readonly #events: EventRecorder
  readonly #tenant: Tenant
  #stopped = false

  constructor(deps: ScaleDownPolicyDeps) {
    this.#deps = deps
    const { replica, clock, log, eventPace } = deps
    this.#events = new EventRecorder({ replica, clock, log, pace: { objectMs: EVENTS_OF_REQUESTS_MS, ...eventPace } })
    this.#queue = new WorkQueue({
      reconcile: (key) => this.#reconcile(key),
      clock,
      random: () => deps.random(),
      limit: WRITES,
      pace: { spacingMs: REPORT_EVERY_MS },
    })
    this.#known = new Informer<Known>({
      client: deps.client,
      kind: SCALE_DOWN_POLICIES,
      keep: (object, _, key) => this.#keep(object, key),
      onGone: (_, key) => this.#gone(key),
      onChange: () => deps.onPolicies(this.policies),
      onState: (current, message) => {
        if (current) this.#queue.retry()
        else deps.log.warn('ScaleDownPolicies cannot be followed', { why: message })
      },
    })
    this.#tenant = deps.leadership.run('the statuses of ScaleDownPolicies', () => {
      for (const key of this.#known.objects.keys()) this.#queue.add(key)
      return undefined
    })
  }

  get policies(): readonly CompiledScaleDownPolicy[] {
    return [...this.#known.objects.values()].flatMap(({ read }) => (read.kind === 'policy' ? [read.policy] : []))
  }

  /** Called in the replica that handled the scale-down. */
  report(report: ScaleDownReport): void {
    if (this.#stopped) return
    const key = `${report.namespace}/${report.policy}`
    const known = this.#known.objects.get(key)
    if (known === undefined) return
    this.#reports.set(key, report)
    this.#tellEvent(known.object, report)
    this.#queue.add(key, REPORT_EVERY_MS)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#tenant.leave()
    await this.#known.stop()
    await Promise.all([this.#queue.stop(), this.#events.stop()])
  }

  #keep(object: JsonObject, key: string): Known {
    this.#queue.add(key)
    return { object, read: readScaleDownPolicy(object) }
  }

  #gone(key: string): void {
    this.#reports.delete(key)
    this.#queue.forget(key)
  }

  async #reconcile(key: string): Promise<ReconcileOutcome> {
    const known = this.#known.objects.get(key)
    if (known === undefined || this.#stopped) return 'done'
    const report = this.#reports.get(key)
    const { object } = known
    const target = { client: this.#deps.client, kind: SCALE_DOWN_POLICIES, fieldManager: FIELD_MANAGER } as const
    try {
      const status = this.#statusOf(known, report)
      const before = recordOf(object['status'])
      const isSame = sameJson({ ...before, ...status }, before)
      if (!isSame) await patchAsSeen({ ...target, subresource: 'status' }, object, { status })
      if (this.#reports.get(key) === report) this.#reports.delete(key)
      return isSame ? 'done' : 'written'
    } catch (error) {
      const { outcome, current } = await afterFailedWrite(target, object, error)
      // A newer version may have arrived by the watch meanwhile.
      if (current !== undefined && this.#known.objects.get(key) === known) this.#known.learn(current)
      if (outcome === 'failed')
        this.#deps.log.debug('the status of a ScaleDownPolicy cannot be written', { policy: key, error })
      return outcome
    }
  }

  /** This replica's part of the status: the leader's, whether the policy is in force; the handling replica's, the outcome. */
  #statusOf({ object, read }: Known, report: ScaleDownReport | undefined): ScaleDownPolicyStatus {
    const nowMs = this.#deps.clock.now()
    const { generation } = recordOf(object['metadata'])
    const observedGeneration = typeof generation === 'number' ? generation : 0
    const leads = this.#deps.leadership.isLeader()
    let conditions = conditionsOf<PolicyCondition>(object)
    if (leads) conditions = withCondition(conditions, readyCondition(read, observedGeneration), nowMs)
    if (report !== undefined) conditions = withCondition(conditions, steeredBy(report), nowMs)
    return {
      ...(leads && { observedGeneration }),
      ...(conditions.length > 0 && { conditions }),
      ...(report !== undefined && { lastScaleDown: lastOf(report) }),
    }
  }

  /** Emits an Event if an operator should take a look. */
  #tellEvent(object: JsonObject, report: ScaleDownReport): void {
    const { reason, status, message } = steeredBy(report)
    if (status === 'True' && report.conflicts.length === 0) return
    const [type, why] =
      status === 'True' ? (['Normal', 'DeletionCostConflict'] as const) : (['Warning', reason] as const)
    this.#events.record(this.#deps.client, involvedIn(object), { type, reason: why, message })
  }
}

function readyCondition(read: ReadPolicy, observedGeneration: number): Omit<PolicyCondition, 'lastTransitionTime'> {
  const valid = read.kind === 'policy'
  return {
    type: 'Ready',
    status: valid ? 'True' : 'False',
    reason: valid ? 'InForce' : 'Invalid',
    message: valid ? 'scale-downs through the gateway use it' : read.why.slice(0, 1024),
    observedGeneration,
  }
}

/** Whether the policy took effect in the last scale-down. */
function steeredBy({
  outcome,
  message,
  workload,
  conflicts,
}: ScaleDownReport): Omit<PolicyCondition, 'lastTransitionTime'> {
  const status = outcome === 'Steered' || outcome === 'Nothing' ? 'True' : 'False'
  const foreign =
    conflicts.length === 0 ? '' : `; deletion costs that other clients set were left unchanged: ${conflicts.join(', ')}`
  const text = `${workload}${message === '' ? '' : `: ${message}`}${foreign}`
  return { type: 'Steered', status, reason: outcome, message: text.slice(0, 1024) }
}

function lastOf(report: ScaleDownReport): LastScaleDown {
  const { cluster, workload, from, to, outcome, message, victims, conflicts, atMs } = report
  return {
    time: metaTime(atMs),
    cluster,
    workload,
    from,
    to,
    outcome,
    message,
    victims: victims.slice(0, MAX_NAMES),
    conflicts: conflicts.slice(0, MAX_NAMES),
  }
}
