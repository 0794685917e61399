// In which order things happened to pods and workloads of a real cluster: deletion costs, new numbers of replicas, deletions.

import { DEPLOYMENTS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS } from '../../../src/kube/api/kinds/foreign-kinds.ts'
import type { Following } from '../../../src/kube/api/object-client.ts'
import type { ResourceKind } from '../../../src/kube/api/resource-kind.ts'
import type { KubeClient } from '../../../src/kube/io/client.ts'
import { OWN_COST_ANNOTATION } from '../../../src/scaling/core/victim-choice/own-cost.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

/** By uid and number of replicas: the first resourceVersion of which something is true. */
type Versions = Map<string, Map<number, bigint>>

/** When things happened, by the versions of one etcd. */
export class ScaleHistory {
  /** When a pod has a cost of ours, from a scale-down to so many replicas. */
  readonly costs: Versions = new Map()
  /** When a workload is to have so many replicas. */
  readonly scaled: Versions = new Map()
  /** By uid of a pod: the first resourceVersion of which it is being deleted. */
  readonly deleted: Map<string, bigint> = new Map()
  readonly #following: readonly Following[]

  constructor(kube: KubeClient) {
    const follow = (kind: ResourceKind, see: (object: Json, gone: boolean) => void): Following =>
      kube.follow(kind, 'default', {
        onReplace: (objects) => {
          for (const object of objects) see(object, false)
        },
        onChange: (type, object) => see(object, type === 'DELETED'),
        onState: () => undefined,
      })
    const workloads = [DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS]
    this.#following = [
      follow(PODS, (pod, gone) => this.#pod(pod, gone)),
      ...workloads.map((kind) => follow(kind, (object) => first(this.scaled, object, object.spec.replicas))),
    ]
  }

  #pod(pod: Json, gone: boolean): void {
    const { uid, annotations, deletionTimestamp, resourceVersion } = pod.metadata
    const ours = annotations?.[OWN_COST_ANNOTATION]
    if (ours !== undefined) first(this.costs, pod, JSON.parse(ours).to)
    const ends = gone || deletionTimestamp !== undefined
    if (ends && !this.deleted.has(uid)) this.deleted.set(uid, BigInt(resourceVersion))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#following.map((one) => one.stop()))
  }
}

function first(versions: Versions, { metadata }: Json, key: number): void {
  const of = versions.get(metadata.uid) ?? new Map<number, bigint>()
  versions.set(metadata.uid, of)
  if (!of.has(key)) of.set(key, BigInt(metadata.resourceVersion))
}
