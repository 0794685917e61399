// Follows the cluster-autoscaler status ConfigMaps of all clusters that ask for it (spec.autoscaler), in the leader only: the
// other replicas need not watch the same.

import type { Clock } from '../../../kit/api/ports.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import { CONFIG_MAPS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ClosableClient, Following } from '../../../kube/api/object-client.ts'
import type { Leading, Tenant } from '../../../kube/controllers/kernel/leadership.ts'
import type { CompiledAutoscaler, CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { AutoscalerFact } from '../../core/status/status-facts.ts'
import { FollowedStatus, slimConfigMap } from './followed-status.ts'

interface AutoscalerStatusesDeps {
  /** Clusters in force. */
  readonly clusters: {
    names(): Iterable<string>
    get(name: string): { readonly compiled: Pick<CompiledCluster, 'autoscaler'> } | undefined
  }
  /** Connects as the gateway itself, through any healthy endpoint of the cluster. */
  connect(cluster: string): ClosableClient
  readonly leadership: Leading
  readonly clock: Clock
}

/** One cluster's autoscaler, for the metrics. */
export interface FollowedAutoscaler {
  readonly cluster: string
  readonly fact: AutoscalerFact
  /** Statuses that could not be parsed so far. */
  readonly unreadable: number
}

interface Followed {
  readonly settings: CompiledAutoscaler
  readonly status: FollowedStatus
  readonly client: ClosableClient
  readonly following: Following
}

export class AutoscalerStatuses {
  readonly #deps: AutoscalerStatusesDeps
  readonly #followed = new Map<string, Followed>()
  readonly #ending = new Set<Promise<void>>()
  readonly #tenant: Tenant

  constructor(deps: AutoscalerStatusesDeps) {
    this.#deps = deps
    const ended = (): Promise<unknown> => Promise.all(this.#ending)
    this.#tenant = deps.leadership.settle('the statuses of cluster-autoscalers', () => this.update(), ended)
  }

  /**
   * Call it when UpstreamClusters have changed.
   * @param changed clusters that may have changed; default: all
   */
  update(changed?: ReadonlySet<string>): void {
    const { clusters } = this.#deps
    for (const name of changed ?? new Set([...clusters.names(), ...this.#followed.keys()])) this.#updateOne(name)
  }

  #updateOne(name: string): void {
    const isLed = this.#tenant.holds()
    const wanted = isLed ? this.#deps.clusters.get(name)?.compiled.autoscaler : undefined
    const followed = this.#followed.get(name)
    if (followed !== undefined && sameJson(wanted, followed.settings)) return
    if (followed !== undefined) this.#end(name, followed)
    if (wanted !== undefined) this.#begin(name, wanted)
  }

  /** undefined = not followed here. */
  get(cluster: string): AutoscalerFact | undefined {
    return this.#followed.get(cluster)?.status.fact()
  }

  all(): FollowedAutoscaler[] {
    return [...this.#followed].map(([cluster, { status }]) => {
      return { cluster, fact: status.fact(), unreadable: status.unreadable }
    })
  }

  stop(): Promise<void> {
    return this.#tenant.leave()
  }

  #begin(cluster: string, settings: CompiledAutoscaler): void {
    const { connect, clock } = this.#deps
    const { namespace, name } = settings
    const client = connect(cluster)
    const status = new FollowedStatus(settings, clock)
    const following = client.follow(CONFIG_MAPS, namespace, status, { name, transform: slimConfigMap })
    this.#followed.set(cluster, { settings, status, client, following })
  }

  #end(cluster: string, { status, following, client }: Followed): void {
    this.#followed.delete(cluster)
    status.stop()
    const ending = following.stop().then(() => client.close())
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}
