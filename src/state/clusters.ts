// The clusters as the request path sees them: the compiled object, and beside it what outlives a change of the object.
// Controllers write, the request path reads; a change swaps one pointer.

import type { CompiledCluster } from '../core/compiled-cluster.ts'
import { buildClusterIndex, type ClusterIndex } from '../core/lookup-cluster.ts'
import { createPace, type Pace } from '../core/pace.ts'
import { createRetryBudget, type RetryBudget } from '../core/retry-budget.ts'
import { EndpointSet } from './endpoints.ts'
import { FlowTable } from './flow-tables.ts'

export interface LiveCluster {
  /** Replaced as a whole by a change; read it once per request. */
  compiled: CompiledCluster
  readonly endpoints: EndpointSet
  readonly flows: FlowTable
  readonly retryBudget: RetryBudget
  /** Of the gateway's own calls (clientConfig.qps). */
  readonly pace: Pace
  /**
   * Another one when servers, their CA or audiences change, and for a cluster that comes again under the name of a deleted
   * one: answers about identities from before no longer count.
   */
  identityEpoch: number
}

export class ClusterTable {
  readonly #live = new Map<string, LiveCluster>()
  #index: ClusterIndex = buildClusterIndex([])
  #generation = 0
  /** Never the same for two clusters, or for two versions that differ in who vouches for identities. */
  #nextEpoch = 0

  get index(): ClusterIndex {
    return this.#index
  }

  /** Counts applied changes. */
  get generation(): number {
    return this.#generation
  }

  get(name: string): LiveCluster | undefined {
    return this.#live.get(name)
  }

  values(): Iterable<LiveCluster> {
    return this.#live.values()
  }

  names(): Iterable<string> {
    return this.#live.keys()
  }

  /** Makes `clusters` the whole truth; what is unchanged keeps its state. Order decides who keeps a claim on a host. */
  apply(clusters: readonly CompiledCluster[], monotonicMs: number): void {
    const names = new Set(clusters.map((cluster) => cluster.name))
    for (const name of this.#live.keys()) if (!names.has(name)) this.#live.delete(name)
    for (const cluster of clusters) {
      const live = this.#live.get(cluster.name)
      if (live === undefined) this.#live.set(cluster.name, createLive(cluster, this.#nextEpoch++, monotonicMs))
      else if (live.compiled.revision !== cluster.revision) {
        if (identityDiffers(live.compiled, cluster)) live.identityEpoch = this.#nextEpoch++
        replace(live, cluster, monotonicMs)
      }
    }
    this.#index = buildClusterIndex(clusters)
    this.#generation++
  }
}

function createLive(compiled: CompiledCluster, identityEpoch: number, monotonicMs: number): LiveCluster {
  const endpoints = new EndpointSet()
  endpoints.update(compiled.endpoints)
  const flows = new FlowTable()
  flows.update(compiled.schemas, monotonicMs)
  return {
    compiled,
    endpoints,
    flows,
    retryBudget: createRetryBudget(),
    pace: createPace(),
    identityEpoch,
  }
}

function replace(live: LiveCluster, next: CompiledCluster, monotonicMs: number): void {
  live.endpoints.update(next.endpoints)
  live.flows.update(next.schemas, monotonicMs)
  live.compiled = next
}

function identityDiffers(a: CompiledCluster, b: CompiledCluster): boolean {
  const servers = (cluster: CompiledCluster): string => cluster.endpoints.map((endpoint) => endpoint.url).join(' ')
  return (
    servers(a) !== servers(b) ||
    a.client.ca !== b.client.ca ||
    a.authentication.audiences.join(' ') !== b.authentication.audiences.join(' ')
  )
}
