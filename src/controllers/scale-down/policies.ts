// Follows the ScaleDownPolicies: those that are valid are for the gateway threads; the status says what is in force, and what came of the last
// scale-down. One that is not valid is left out, and affects no other.

import { SCALE_DOWN_POLICIES } from '../../api/kinds/scheme.ts'
import { type JsonObject, nameOf, namespaceOf } from '../../api/kube/json-object.ts'
import { recordOf } from '../../api/kube/object-shape.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { ScaleDownReport } from '../../api/ports/scale-down.ts'
import type {
  LastScaleDown,
  PolicyCondition,
  ScaleDownPolicyStatus,
} from '../../api/scale-down-policy/scale-down-policy.ts'
import {
  type CompiledScaleDownPolicy,
  type ReadPolicy,
  readScaleDownPolicy,
} from '../../core/scale/victim-choice/policy.ts'
import { conditionsOf, withCondition } from '../../core/status/conditions.ts'
import { metaTime } from '../../core/text/meta-time.ts'
import { sameJson } from '../../core/text/same-json.ts'
import { EVENTS_OF_REQUESTS_MS, type EventPace, EventRecorder, involvedIn } from '../events/event-recorder.ts'
import { Informer } from '../kernel/informer.ts'

export interface ScaleDownPolicyDeps {
  /** Where the objects are. */
  readonly client: ObjectClient
  /** The name of this process, for Events. */
  readonly replica: string
  isLeader(): boolean
  /** Called with all that are in force, whenever they have changed. */
  onPolicies(policies: readonly CompiledScaleDownPolicy[]): void
  readonly clock: Clock
  readonly log: Logger
  readonly eventPace?: Partial<EventPace>
}

interface Known {
  readonly object: JsonObject
  readonly read: ReadPolicy
}

const FIELD_MANAGER = 'portcullis'
/** Between two statuses of one policy: a thousand scale-downs a second are one write. */
const REPORT_EVERY_MS = 1_000
const MAX_NAMES = 50

export class ScaleDownPolicyController {
  readonly #deps: ScaleDownPolicyDeps
  readonly #known: Informer<Known>
  /** The last scale-down of each policy that is still to be written. */
  readonly #reports = new Map<string, ScaleDownReport>()
  readonly #writing = new Set<Promise<void>>()
  readonly #events: EventRecorder
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(deps: ScaleDownPolicyDeps) {
    this.#deps = deps
    const { replica, clock, log, eventPace } = deps
    this.#events = new EventRecorder({ replica, clock, log, pace: { objectMs: EVENTS_OF_REQUESTS_MS, ...eventPace } })
    this.#known = new Informer<Known>({
      client: deps.client,
      kind: SCALE_DOWN_POLICIES,
      keep: (object) => this.#keep(object),
      onChange: () => deps.onPolicies(this.policies),
      onState: (current, message) => {
        if (!current) deps.log.warn('ScaleDownPolicies cannot be followed', { why: message })
      },
    })
  }

  get policies(): readonly CompiledScaleDownPolicy[] {
    return [...this.#known.objects.values()].flatMap(({ read }) => (read.kind === 'policy' ? [read.policy] : []))
  }

  /** By whichever replica it went. */
  report(report: ScaleDownReport): void {
    if (this.#stopped) return
    const key = `${report.namespace}/${report.policy}`
    this.#reports.set(key, report)
    this.#tellEvent(this.#known.objects.get(key)?.object, report)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#writeReports()
    }, REPORT_EVERY_MS)
  }

  /** Call it when this replica has become the leader. */
  leaderChanged(): void {
    for (const known of this.#known.objects.values()) this.#writeCondition(known)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#known.stop()
    await Promise.all([...this.#writing, this.#events.stop()])
  }

  #keep(object: JsonObject): Known {
    const known = { object, read: readScaleDownPolicy(object) }
    this.#writeCondition(known)
    return known
  }

  #writeReports(): void {
    for (const [key, report] of this.#reports) {
      const known = this.#known.objects.get(key)
      if (known !== undefined) {
        const conditions = this.#conditions(known.object, steeredBy(report))
        this.#write(known.object, { conditions, lastScaleDown: lastOf(report) })
      }
    }
    this.#reports.clear()
  }

  #writeCondition({ object, read }: Known): void {
    if (!this.#deps.isLeader()) return
    const { generation } = recordOf(object['metadata'])
    const observedGeneration = typeof generation === 'number' ? generation : 0
    const valid = read.kind === 'policy'
    const wanted = {
      type: 'Ready',
      status: valid ? 'True' : 'False',
      reason: valid ? 'InForce' : 'Invalid',
      message: valid ? 'scale-downs through the gateway ask it' : read.why.slice(0, 1024),
      observedGeneration,
    } as const
    const before = conditionsOf(object).find(({ type }) => type === wanted.type)
    if (before !== undefined && sameJson({ ...before, ...wanted }, before)) return
    this.#write(object, { observedGeneration, conditions: this.#conditions(object, wanted) })
  }

  #conditions(object: JsonObject, wanted: Omit<PolicyCondition, 'lastTransitionTime'>): readonly PolicyCondition[] {
    return withCondition(conditionsOf<PolicyCondition>(object), wanted, this.#deps.clock.now())
  }

  /** Of what an operator should look at. */
  #tellEvent(object: JsonObject | undefined, report: ScaleDownReport): void {
    const { reason, status, message } = steeredBy(report)
    if (object === undefined || (status === 'True' && report.conflicts.length === 0)) return
    const [type, why] =
      status === 'True' ? (['Normal', 'DeletionCostConflict'] as const) : (['Warning', reason] as const)
    this.#events.record(this.#deps.client, involvedIn(object), { type, reason: why, message })
  }

  /** What fails is written with the next change. */
  #write(object: JsonObject, status: ScaleDownPolicyStatus): void {
    const at = { namespace: namespaceOf(object), name: nameOf(object) }
    const body = { status }
    const options = { fieldManager: FIELD_MANAGER, subresource: 'status' } as const
    const writing = this.#deps.client
      .patch(SCALE_DOWN_POLICIES, at, 'application/merge-patch+json', body, options)
      .then(
        () => undefined,
        (error: unknown) => this.#deps.log.debug('the status of a ScaleDownPolicy cannot be written', { ...at, error }),
      )
    this.#writing.add(writing)
    void writing.finally(() => this.#writing.delete(writing))
  }
}

/** Whether it did what it is for, the last time. */
function steeredBy({
  outcome,
  message,
  workload,
  conflicts,
}: ScaleDownReport): Omit<PolicyCondition, 'lastTransitionTime'> {
  const status = outcome === 'Steered' || outcome === 'Nothing' ? 'True' : 'False'
  const foreign = conflicts.length === 0 ? '' : `; deletion costs of others were left alone: ${conflicts.join(', ')}`
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
