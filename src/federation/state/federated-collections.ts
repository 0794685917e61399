// The federated resources of a gateway thread. They follow what the read cache keeps of the members from the moment that the thread is told of them, and end
// when the members are others.

import type { CollectionId } from '../../cache/core/changes/collection.ts'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import type { CompiledFederatedResource, CompiledFederation } from '../../gateway/core/cluster/compiled-cluster.ts'
import type { Clock } from '../../kit/api/ports.ts'
import { FederatedCollection } from './federated-collection.ts'

/** A cluster that has members. */
export interface FederatedCluster {
  readonly cluster: string
  readonly federation: CompiledFederation
}

interface Kept {
  readonly resource: CompiledFederatedResource
  readonly federation: CompiledFederation
  readonly collection: FederatedCollection
}

export class FederatedCollections {
  readonly #kept = new Map<string, Kept>()
  readonly #collectionOf: (id: CollectionId) => CachedCollection | undefined
  readonly #clock: Pick<Clock, 'monotonic'>

  constructor(collectionOf: (id: CollectionId) => CachedCollection | undefined, clock: Pick<Clock, 'monotonic'>) {
    this.#collectionOf = collectionOf
    this.#clock = clock
  }

  /** undefined = the thread has not been told of these members yet. */
  of(
    cluster: string,
    federation: CompiledFederation,
    resource: CompiledFederatedResource,
  ): FederatedCollection | undefined {
    const kept = this.#kept.get(keyOf(cluster, resource))
    return kept !== undefined && isSame(kept.federation, federation) ? kept.collection : undefined
  }

  values(): Iterable<Kept> {
    return this.#kept.values()
  }

  /** These are all. */
  told(clusters: readonly FederatedCluster[]): void {
    const wanted = new Map(
      clusters.flatMap(({ cluster, federation }) =>
        federation.resources.map((resource) => [keyOf(cluster, resource), { federation, resource }] as const),
      ),
    )
    for (const [key, kept] of this.#kept) {
      const want = wanted.get(key)
      if (want !== undefined && isSame(kept.federation, want.federation)) continue
      this.#kept.delete(key)
      kept.collection.leave()
    }
    for (const [key, { federation, resource }] of wanted) {
      if (this.#kept.has(key)) continue
      const kept = { resource, federation, collection: new FederatedCollection(federation.members.length, this.#clock) }
      this.#kept.set(key, kept)
      this.#follow(kept)
    }
  }

  /** What is kept of a cluster may be another collection now, or none. */
  replaced({ cluster }: Pick<CollectionId, 'cluster'>): void {
    for (const kept of this.#kept.values())
      if (kept.federation.members.some((member) => member.cluster === cluster)) this.#follow(kept)
  }

  #follow({ federation, resource: { group, version, resource }, collection }: Kept): void {
    for (const [slot, { cluster }] of federation.members.entries()) {
      const id = { cluster, group, version, resource, namespace: '', encoding: 'json' } as const
      collection.follow(slot, this.#collectionOf(id))
    }
  }
}

function keyOf(cluster: string, { group, version, resource }: CompiledFederatedResource): string {
  return `${cluster}/${group}/${version}/${resource}`
}

/** Whether open watches may go on: who may see what, and under which name, is the same. */
function isSame(a: CompiledFederation, b: CompiledFederation): boolean {
  return a === b || textOf(a) === textOf(b)
}

const TEXTS = new WeakMap<CompiledFederation, string>()

/** Written once for each, since every request asks. */
function textOf(federation: CompiledFederation): string {
  const known = TEXTS.get(federation)
  if (known !== undefined) return known
  const text = JSON.stringify({ ...federation, resources: [] })
  TEXTS.set(federation, text)
  return text
}
