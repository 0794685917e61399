// The cells of pod protection: for each, who counts its pods, and a client for its API server. Follows the UpstreamClusters.

import { randomUUID } from 'node:crypto'
import type { ObjectClient } from '../api/object-client.ts'
import type { Clock, Logger } from '../api/ports.ts'
import { type PodAggregator, type PodAggregatorDescription, startPodAggregator } from '../controllers/pod-aggregator.ts'
import type { CompiledProtection } from '../core/compiled-cluster.ts'
import type { CellClocks } from '../core/protection/cell-clock.ts'
import type { ProtectionSettings } from '../core/protection/protection-settings.ts'
import { contentHash } from '../io/content-hash.ts'
import type { KubeClient } from '../io/kube-client.ts'
import type { KubeCallEvents } from '../io/kube-client-events.ts'
import { holdLease, type LeaseHold } from '../io/leader-lease.ts'
import type { ProtectionMetrics } from '../io/protection-metrics.ts'
import { createUpstreamKubeClient } from '../io/upstream-kube-client.ts'
import type { ClusterTable } from '../state/clusters.ts'
import type { ProtectorTable } from '../state/protectors.ts'

export interface ProtectionCellsParts {
  /** Where the PodProtectors and the Leases are. */
  readonly core: ObjectClient
  /** No other process writes there: there is nobody to elect a leader with. */
  readonly alone: boolean
  readonly replica: string
  readonly clusters: ClusterTable
  readonly protectors: ProtectorTable
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly clocks: CellClocks
  readonly log: Logger
  readonly metrics: ProtectionMetrics
  /** Hears of the calls to the cells. */
  readonly calls: KubeCallEvents
}

/** Where Leases are: a namespace that every API server has. */
const LEASE_NAMESPACE = 'default'

/** Leads where others could, or always. */
export function holdElection(
  { core, alone, replica, log, metrics }: Pick<ProtectionCellsParts, 'core' | 'alone' | 'replica' | 'log' | 'metrics'>,
  name: string,
  onChange: () => void,
): LeaseHold {
  if (alone) return { isLeader: () => true, stop: () => Promise.resolve() }
  return holdLease(core, {
    namespace: LEASE_NAMESPACE,
    name,
    identity: `${replica}_${randomUUID()}`,
    log,
    onChange: (leads) => {
      metrics.leader(name, leads)
      onChange()
    },
  })
}

/** Of an object name that may have 253 characters, as a cell may. */
const LONGEST_CELL = 200

function leaseOf(cell: string): string {
  return `portcullis-aggregator-${cell.length <= LONGEST_CELL ? cell : contentHash(Buffer.from(cell)).toLowerCase()}`
}

class Cell {
  readonly worker: KubeClient
  readonly aggregator: PodAggregator
  readonly #lease: LeaseHold

  constructor(parts: ProtectionCellsParts, cell: string, cluster: () => string | undefined) {
    const { core, clusters, protectors, settings, clock, clocks, log, metrics, calls } = parts
    const live = (): ReturnType<ClusterTable['get']> => clusters.get(cluster() ?? '')
    this.worker = createUpstreamKubeClient({ cluster: live, log, calls })
    this.#lease = holdElection(parts, leaseOf(cell), () => this.aggregator?.leaderChanged())
    this.aggregator = startPodAggregator({
      cell,
      core,
      worker: this.worker,
      protection: () => live()?.compiled.protection,
      protectors,
      isLeader: () => this.#lease.isLeader(),
      settings,
      clock,
      clocks,
      random: Math.random,
      log,
      events: metrics.aggregator(cell),
    })
  }

  async stop(): Promise<void> {
    await this.aggregator.stop()
    await this.#lease.stop()
    await this.worker.close()
  }
}

export class ProtectionCells {
  readonly #parts: ProtectionCellsParts
  readonly #cells = new Map<string, Cell>()
  /** Names of the clusters of each cell, sorted: the first that has its pods counted is asked. */
  #clusters: ReadonlyMap<string, readonly string[]> = new Map()
  readonly #ending = new Set<Promise<void>>()

  constructor(parts: ProtectionCellsParts) {
    this.#parts = parts
  }

  /** To be called when UpstreamClusters have changed. */
  update(): void {
    this.#clusters = clustersByCell(this.#parts.clusters)
    this.#parts.clocks.keepOnly(this.#servers())
    for (const [id, cell] of this.#cells) {
      if (this.#clusters.has(id)) cell.aggregator.leaderChanged()
      else this.#end(id, cell)
    }
    for (const id of this.#clusters.keys()) {
      if (!this.#cells.has(id)) this.#cells.set(id, new Cell(this.#parts, id, () => this.#clusterOf(id)))
    }
  }

  /** undefined = no UpstreamCluster has such a cell. */
  protection(cell: string): CompiledProtection | undefined {
    return this.#parts.clusters.get(this.#clusters.get(cell)?.[0] ?? '')?.compiled.protection
  }

  client(cell: string): ObjectClient | undefined {
    return this.#cells.get(cell)?.worker
  }

  describe(): readonly PodAggregatorDescription[] {
    return [...this.#cells.values()].map(({ aggregator }) => aggregator.describe())
  }

  async stop(): Promise<void> {
    for (const [id, cell] of this.#cells) this.#end(id, cell)
    await Promise.all(this.#ending)
  }

  /** By cell: the endpoints of its clusters. */
  #servers(): Map<string, Set<string>> {
    const { clusters } = this.#parts
    const urls = (name: string): string[] => clusters.get(name)?.compiled.endpoints.map(({ url }) => url) ?? []
    return new Map([...this.#clusters].map(([cell, names]) => [cell, new Set(names.flatMap(urls))]))
  }

  #clusterOf(cell: string): string | undefined {
    const names = this.#clusters.get(cell) ?? []
    const counted = names.find(
      (name) => this.#parts.clusters.get(name)?.compiled.protection?.aggregation.enabled === true,
    )
    return counted ?? names[0]
  }

  #end(id: string, cell: Cell): void {
    this.#cells.delete(id)
    const ending = cell.stop()
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}

function clustersByCell(clusters: ClusterTable): Map<string, string[]> {
  const byCell = new Map<string, string[]>()
  for (const name of [...clusters.names()].sort()) {
    const cell = clusters.get(name)?.compiled.protection?.cell
    if (cell === undefined) continue
    const names = byCell.get(cell)
    if (names === undefined) byCell.set(cell, [name])
    else names.push(name)
  }
  return byCell
}
