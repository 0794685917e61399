// Keeps a pod in a cell and updates it regularly, so that an idle cell still sends events: without events we can't tell whether
// the watch has seen everything. The pod is never scheduled. It stays when the process ends.

import type { CompiledAggregation } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { PODS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { errorName } from '../../../kube/controllers/error-name.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import { UPDATE_TRIGGER_ANNOTATION } from '../../api/protection.ts'
import { formatMicros } from '../../core/history/micro-time.ts'
import type { AggregatorEvents } from '../../core/requests/protection-events.ts'

interface UpdateTriggerDeps {
  readonly client: ObjectClient
  readonly cell: string
  readonly trigger: NonNullable<CompiledAggregation['updateTrigger']> & {
    /** What the aggregator watches; the pod gets labels that match. */
    readonly podSelector: LabelSelector | undefined
  }
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  readonly events: Pick<AggregatorEvents, 'trigger'>
}

const FIELD_MANAGER = 'portcullis'
const LONGEST_BACKOFF_MS = 60_000

export class UpdateTrigger {
  readonly #deps: UpdateTriggerDeps
  readonly #queue: WorkQueue
  /** The last error logged. */
  #fault = ''
  #stopped = false

  /** Starts writing. */
  constructor(deps: UpdateTriggerDeps) {
    this.#deps = deps
    const { trigger, cell, clock, log } = deps
    const { intervalMs } = trigger
    this.#queue = new WorkQueue({
      reconcile: () => this.#write(),
      clock,
      random: () => deps.random(),
      limit: 1,
      pace: { firstBackoffMs: 2 * intervalMs, longestBackoffMs: Math.max(2 * intervalMs, LONGEST_BACKOFF_MS) },
    })
    if (trigger.namespace === '') {
      log.warn('the update trigger needs a namespace', { cell })
      return
    }
    if (!isSelected(trigger.podSelector)) {
      log.warn('podLabelSelector cannot select the pod of the update trigger', { cell })
    }
    this.#queue.add('')
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#queue.stop()
  }

  async #write(): Promise<ReconcileOutcome> {
    try {
      if (!(await this.#update())) await this.#create()
      if (this.#fault !== '') this.#deps.log.info('the update trigger works again', { cell: this.#deps.cell })
      this.#fault = ''
      this.#queue.add('', this.#deps.trigger.intervalMs)
      return 'done'
    } catch (error) {
      const why = errorMessage(error)
      if (why === this.#fault || this.#stopped) return 'failed'
      this.#fault = why
      const { log, cell, trigger } = this.#deps
      const pod = `${trigger.namespace}/${trigger.name}`
      log.warn('the update trigger cannot write its pod; it keeps trying', { cell, pod, why })
      return 'failed'
    }
  }

  /** A merge patch also restores a removed annotation. @returns false if there is no pod */
  async #update(): Promise<boolean> {
    const { client, trigger } = this.#deps
    const { namespace, name } = trigger
    const body = { metadata: { annotations: this.#annotations() } }
    try {
      await client.patch(PODS, { namespace, name }, 'application/merge-patch+json', body, {
        fieldManager: FIELD_MANAGER,
      })
      this.#tell('update', '')
      return true
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return false
      this.#tell('update', errorName(error))
      throw error
    }
  }

  async #create(): Promise<void> {
    if (this.#stopped) return
    const { client, trigger } = this.#deps
    try {
      await client.create(PODS, triggerPod(trigger, this.#annotations()))
      this.#tell('create', '')
    } catch (error) {
      // Created by another replica at the same moment: the next update finds it.
      if (error instanceof StatusError && error.reason === 'AlreadyExists') return
      this.#tell('create', errorName(error))
      throw error
    }
  }

  #annotations(): Record<string, string> {
    return { [UPDATE_TRIGGER_ANNOTATION]: formatMicros(Math.round(this.#deps.clock.now() * 1000)) }
  }

  #tell(event: 'create' | 'update', error: string): void {
    this.#deps.events.trigger(event, error)
  }
}

/** Podseidon's dummy pod, plus what a namespace of Pod Security level `restricted` requires. */
function triggerPod(
  { namespace, name, podSelector }: UpdateTriggerDeps['trigger'],
  annotations: Record<string, string>,
): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels: triggerLabels(podSelector), annotations },
    spec: {
      schedulerName: 'do-not-schedule',
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'main',
          image: ':',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  }
}

function triggerLabels(selector: LabelSelector | undefined): Record<string, string> {
  const labels = new Map<string, string>([['app.kubernetes.io/managed-by', 'portcullis']])
  for (const { key, operator, values = [] } of selector?.matchExpressions ?? []) {
    if (operator === 'In' || operator === 'Exists') labels.set(key, values[0] ?? '')
  }
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) labels.set(key, value)
  return Object.fromEntries(labels)
}

function isSelected(selector: LabelSelector | undefined): boolean {
  return selector === undefined || compileSelector(selector).matches(triggerLabels(selector))
}
