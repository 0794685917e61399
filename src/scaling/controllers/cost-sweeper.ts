// Removes deletion costs that scale-downs have left on surviving pods: once the scale-down is done, or after a timeout. Costs are
// identified by the annotation next to them, so those of a crashed gateway are removed, too. Runs only in the leader.

import { type JsonObject, mapOf, nameOf, namespaceOf } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { DEPLOYMENTS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ClosableClient, ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { isMissing } from '../../kube/api/status.ts'
import { Informer } from '../../kube/controllers/kernel/informer.ts'
import type { Leading, Tenant } from '../../kube/controllers/kernel/leadership.ts'
import { patchAsSeen } from '../../kube/controllers/kernel/object-patch.ts'
import { countOf } from '../core/rank/replica-set-pods.ts'
import { DELETION_COST_ANNOTATION } from '../core/rank/scale-pod.ts'
import { OWN_COST_ANNOTATION, ownCost, podCost, withoutCost } from '../core/victim-choice/own-cost.ts'
import type { CompiledScaleDownPolicy } from '../core/victim-choice/policy.ts'

interface CostSweeperDeps {
  clusters(): Iterable<string>
  /** Connects as the gateway itself. */
  connect(cluster: string): ClosableClient
  readonly leadership: Leading
  policies(): readonly CompiledScaleDownPolicy[]
  readonly clock: Clock
  readonly log: Logger
}

export interface SweepPace {
  readonly everyMs: number
  /** Until then, the scale-down may not have been forwarded, or not been seen by the controller. */
  readonly graceMs: number
  /** Timeout regardless of progress: the controller may never finish. */
  readonly longestMs: number
}

const PACE: SweepPace = { everyMs: 5_000, graceMs: 15_000, longestMs: 600_000 }
const FIELD_MANAGER = 'portcullis'
const WORKLOADS: Readonly<Record<string, ResourceKind>> = {
  deployments: DEPLOYMENTS,
  replicasets: REPLICA_SETS,
  replicationcontrollers: REPLICATION_CONTROLLERS,
}

/** Pods with a cost of ours in one namespace of one cluster. */
interface Followed {
  readonly client: ClosableClient
  readonly pods: Informer<SweptPod>
}

interface SweptPod {
  readonly pod: JsonObject
  /** Since when it has had this cost: monotonic. */
  readonly sinceMs: number
}

export class CostSweeper {
  readonly #deps: CostSweeperDeps
  readonly #pace: SweepPace
  readonly #followed = new Map<string, Followed>()
  readonly #tenant: Tenant
  readonly #timer: NodeJS.Timeout
  readonly #ending = new Set<Promise<void>>()
  #sweeping: Promise<void> | undefined

  constructor(deps: CostSweeperDeps, pace: SweepPace = PACE) {
    this.#deps = deps
    this.#pace = pace
    const ended = (): Promise<unknown> => Promise.all([this.#sweeping, ...this.#ending])
    this.#tenant = deps.leadership.settle('the sweeper of deletion costs', () => this.update(), ended)
    this.#timer = setInterval(() => this.update(), pace.everyMs)
    this.#timer.unref()
  }

  /** Call it when policies or clusters have changed; otherwise that is noticed within seconds. */
  update(): void {
    const wanted = this.#wanted()
    for (const [key, followed] of this.#followed) {
      // Costs of a deleted policy are removed before unfollowing it.
      if (!wanted.has(key) && (!this.#tenant.holds() || followed.pods.objects.size === 0)) this.#end(key)
    }
    for (const [key, { cluster, namespace }] of wanted)
      if (!this.#followed.has(key)) this.#begin(key, cluster, namespace)
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined
    })
  }

  stop(): Promise<void> {
    clearInterval(this.#timer)
    return this.#tenant.leave()
  }

  #wanted(): Map<string, { readonly cluster: string; readonly namespace: string }> {
    const wanted = new Map<string, { readonly cluster: string; readonly namespace: string }>()
    if (!this.#tenant.holds()) return wanted
    const clusters = [...this.#deps.clusters()]
    for (const { namespace, clusters: named, shadow } of this.#deps.policies()) {
      if (shadow) continue
      for (const cluster of clusters) {
        if (named.length === 0 || named.includes(cluster))
          wanted.set(`${cluster}\n${namespace}`, { cluster, namespace })
      }
    }
    return wanted
  }

  #begin(key: string, cluster: string, namespace: string): void {
    const client = this.#deps.connect(cluster)
    const pods = new Informer<SweptPod>({
      client,
      kind: PODS,
      namespace,
      choice: { transform: slimPod },
      keep: (pod, before) => this.#keep(pod, before),
      onState: (current, message) => {
        if (!current)
          this.#deps.log.debug('pods with deletion costs cannot be followed', { cluster, namespace, message })
      },
    })
    this.#followed.set(key, { client, pods })
  }

  #keep(pod: JsonObject, before: SweptPod | undefined): SweptPod | undefined {
    const cost = ownCost(pod)
    if (cost === undefined) return undefined
    // A new scale-down restarts the timer.
    const isSame = before !== undefined && ownCost(before.pod)?.id === cost.id
    return { pod, sinceMs: isSame ? before.sinceMs : this.#deps.clock.monotonic() }
  }

  #end(key: string): void {
    const followed = this.#followed.get(key)
    if (followed === undefined) return
    this.#followed.delete(key)
    const ending = followed.pods.stop().then(() => followed.client.close())
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }

  async #sweep(): Promise<void> {
    for (const { client, pods } of [...this.#followed.values()]) {
      const done = new Map<string, Promise<boolean>>()
      for (const { pod, sinceMs } of [...pods.objects.values()]) {
        if (!this.#tenant.holds()) return
        try {
          if (await this.#isOver(client, pod, sinceMs, done)) await this.#takeBack(client, pod)
        } catch (error) {
          this.#deps.log.debug('a deletion cost is not removed yet', { pod: nameOf(pod), error })
        }
      }
    }
  }

  async #isOver(
    client: ObjectClient,
    pod: JsonObject,
    sinceMs: number,
    done: Map<string, Promise<boolean>>,
  ): Promise<boolean> {
    const ageMs = this.#deps.clock.monotonic() - sinceMs
    if (ageMs >= this.#pace.longestMs) return true
    if (ageMs < this.#pace.graceMs) return false
    const workload = ownCost(pod)?.workload ?? ''
    const known = done.get(workload)
    if (known !== undefined) return await known
    const asked = isDone(client, namespaceOf(pod), workload)
    done.set(workload, asked)
    return await asked
  }

  /** Guarded by resourceVersion; a concurrent change arrives as an event and triggers another check. */
  async #takeBack(client: ObjectClient, pod: JsonObject): Promise<void> {
    const annotations = withoutCost(podCost(pod).kind)
    await patchAsSeen({ client, kind: PODS, fieldManager: FIELD_MANAGER }, pod, { metadata: { annotations } })
    const [namespace, name] = [namespaceOf(pod), nameOf(pod)]
    this.#deps.log.info('a deletion cost that a scale-down has left is removed', { namespace, name })
  }
}

/** Its controller has observed the last change, and there are no more pods than wanted; or the workload is gone. */
async function isDone(client: ObjectClient, namespace: string, workload: string): Promise<boolean> {
  const [resource = '', name = ''] = workload.split('/')
  const kind = WORKLOADS[resource]
  if (kind === undefined || name === '') return true
  try {
    const object = await client.get(kind, { namespace, name })
    const status = recordOf(object['status'])
    const { generation } = recordOf(object['metadata'])
    const seen = countOf(status['observedGeneration'], 0) >= countOf(generation, 0)
    return seen && countOf(status['replicas'], 0) <= countOf(recordOf(object['spec'])['replicas'], 1)
  } catch (error) {
    if (isMissing(error, name)) return true
    throw error
  }
}

/** Drops all other fields of a pod. */
function slimPod(pod: JsonObject): JsonObject {
  const { namespace, name, uid, resourceVersion } = recordOf(pod['metadata'])
  const annotations = Object.entries(mapOf(pod, 'annotations')).filter(([key]) => {
    return key === OWN_COST_ANNOTATION || key === DELETION_COST_ANNOTATION
  })
  return { metadata: { namespace, name, uid, resourceVersion, annotations: Object.fromEntries(annotations) } }
}
