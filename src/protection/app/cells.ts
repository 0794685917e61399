// The cells of pod protection: for each, the aggregator that counts its pods, and a client for its API server. Follows the UpstreamClusters.

import type { CellClocks } from '../../gateway/core/clocks/cell-clock.ts'
import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { contentHash } from '../../gateway/io/sources/files/content-hash.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { LabelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { type Leadership, leadAlone, leadByLease } from '../../kube/controllers/kernel/leadership.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import type { ProtectionSettings } from '../../process/api/protection-settings.ts'
import type { PodFacts } from '../api/protection.ts'
import {
  type CellMember,
  type PodAggregator,
  type PodAggregatorDescription,
  startPodAggregator,
} from '../controllers/aggregator/pod-aggregator.ts'
import type { ProtectionMetrics } from '../metrics/metrics.ts'
import type { ProtectorTable } from '../state/protectors.ts'

interface ProtectionCellsDeps {
  /** Holds the PodProtectors and the Leases. */
  readonly core: ObjectClient
  /** No other process writes there, so no leader election is needed. */
  readonly alone: boolean
  readonly replica: string
  readonly clusters: ClusterTable
  /** A new client for an UpstreamCluster. */
  readonly clientOf: (name: string) => KubeClient
  readonly protectors: ProtectorTable
  readonly settings: ProtectionSettings
  readonly clock: Clock
  readonly clocks: CellClocks
  readonly log: Logger
  readonly metrics: ProtectionMetrics
}

/** Namespace of the Leases: one that every API server has. */
const LEASE_NAMESPACE = 'default'

/** Runs in one of the replicas; if there are no others, in this one. */
export function leadershipOf(
  { core, alone, replica, log, metrics }: Pick<ProtectionCellsDeps, 'core' | 'alone' | 'replica' | 'log' | 'metrics'>,
  name: string,
): Leadership {
  if (alone) return leadAlone(log)
  const onChange = (leads: boolean): void => metrics.leader(name, leads)
  return leadByLease(core, { namespace: LEASE_NAMESPACE, name, replica, log, onChange })
}

/** Limit of its part in an object name of at most 253 characters; a cell may have that many. */
const LONGEST_CELL = 200

function leaseOf(cell: string): string {
  return `portcullis-aggregator-${cell.length <= LONGEST_CELL ? cell : contentHash(Buffer.from(cell)).toLowerCase()}`
}

class Cell {
  readonly aggregator: PodAggregator
  readonly #deps: ProtectionCellsDeps
  readonly #leadership: Leadership
  /** Keyed by the name of their UpstreamCluster. */
  readonly #clients = new Map<string, KubeClient>()
  readonly #closing = new Set<Promise<void>>()
  /** One UpstreamCluster per cluster: the first by name whose pods are counted. */
  #names: readonly string[] = []

  constructor(deps: ProtectionCellsDeps, cell: string, names: readonly string[]) {
    const { core, protectors, settings, clock, clocks, log, metrics } = deps
    this.#deps = deps
    this.#names = names
    this.#leadership = leadershipOf(deps, leaseOf(cell))
    this.aggregator = startPodAggregator({
      cell,
      core,
      members: () => this.#members(),
      protectors,
      leadership: this.#leadership,
      settings,
      clock,
      clocks,
      random: Math.random,
      log,
      events: metrics.aggregator(cell),
    })
  }

  follow(names: readonly string[]): void {
    this.#names = names
    this.aggregator.update()
    for (const [name, client] of this.#clients) {
      if (names.includes(name)) continue
      this.#clients.delete(name)
      this.#close(client)
    }
  }

  clients(): readonly KubeClient[] {
    return this.#names.map((name) => this.#clientOf(name))
  }

  async stop(): Promise<void> {
    await this.aggregator.stop()
    await this.#leadership.stop()
    for (const client of this.#clients.values()) this.#close(client)
    await Promise.all(this.#closing)
  }

  #members(): CellMember[] {
    return this.#names.flatMap((name): CellMember[] => {
      const protection = this.#deps.clusters.get(name)?.compiled.protection
      if (protection === undefined) return []
      const { aggregation } = protection
      return [{ name, client: this.#clientOf(name), aggregation }]
    })
  }

  #clientOf(name: string): KubeClient {
    const known = this.#clients.get(name)
    if (known !== undefined) return known
    const client = this.#deps.clientOf(name)
    this.#clients.set(name, client)
    return client
  }

  #close(client: KubeClient): void {
    const closing = client.close()
    this.#closing.add(closing)
    void closing.finally(() => this.#closing.delete(closing))
  }
}

export class ProtectionCells {
  readonly #deps: ProtectionCellsDeps
  readonly #cells = new Map<string, Cell>()
  /** Names of the UpstreamClusters of each cell, sorted. */
  #clusters: ReadonlyMap<string, readonly string[]> = new Map()
  readonly #ending = new Set<Promise<void>>()

  constructor(deps: ProtectionCellsDeps) {
    this.#deps = deps
  }

  /** Call it when UpstreamClusters have changed. */
  update(): void {
    this.#clusters = clustersByCell(this.#deps.clusters)
    for (const [id, cell] of this.#cells) {
      if (this.#clusters.has(id)) cell.follow(this.#counted(id))
      else this.#end(id, cell)
    }
    for (const id of this.#clusters.keys()) {
      if (!this.#cells.has(id)) this.#cells.set(id, new Cell(this.#deps, id, this.#counted(id)))
    }
  }

  /** undefined = no UpstreamCluster has such a cell. */
  protection(cell: string): CompiledProtection | undefined {
    return this.#deps.clusters.get(this.#clusters.get(cell)?.[0] ?? '')?.compiled.protection
  }

  /** One client per cluster of the cell; none = there is no such cell. */
  clients(cell: string): readonly ObjectClient[] {
    return this.#cells.get(cell)?.clients() ?? []
  }

  /** Pods of a cell counted by this replica. */
  select(cell: string, namespace: string, selector: LabelSelector): Iterable<PodFacts> | undefined {
    return this.#cells.get(cell)?.aggregator.pods()?.select(namespace, selector)
  }

  /** A pod of a cell counted by this replica. */
  pod(cell: string, uid: string): PodFacts | undefined {
    return this.#cells.get(cell)?.aggregator.pods()?.get(uid)
  }

  describe(): readonly PodAggregatorDescription[] {
    return [...this.#cells.values()].map(({ aggregator }) => aggregator.describe())
  }

  async stop(): Promise<void> {
    for (const [id, cell] of this.#cells) this.#end(id, cell)
    await Promise.all(this.#ending)
  }

  /** The UpstreamClusters through which a cell's pods are counted. */
  #counted(cell: string): readonly string[] {
    const { clusters } = this.#deps
    return distinctClusters(
      (this.#clusters.get(cell) ?? []).flatMap((name) => {
        const compiled = clusters.get(name)?.compiled
        if (compiled === undefined) return []
        const urls = compiled.endpoints.map(({ url }) => url)
        return [{ name, urls, counts: compiled.protection?.aggregation.enabled === true }]
      }),
    )
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

interface CellCluster {
  readonly name: string
  /** The URLs of its endpoints. */
  readonly urls: readonly string[]
  /** Whether its pods are counted. */
  readonly counts: boolean
}

/**
 * Which UpstreamClusters of a cell lead to different clusters, as far as can be told without contacting them: one name per cluster. Those that share an endpoint, directly or through others, are one. Returns the first that counts its
 * pods, or else the first.
 * @param clusters sorted by name
 */
export function distinctClusters(clusters: readonly CellCluster[]): readonly string[] {
  let groups: (readonly CellCluster[])[] = []
  for (const cluster of clusters) {
    const isSame = (group: readonly CellCluster[]): boolean =>
      group.some(({ urls }) => urls.some((url) => cluster.urls.includes(url)))
    const joined = [...groups.filter(isSame).flat(), cluster]
    groups = [...groups.filter((group) => !isSame(group)), joined]
  }
  const names = groups.flatMap((group) => (group.find(({ counts }) => counts) ?? group[0])?.name ?? [])
  return clusters.map(({ name }) => name).filter((name) => names.includes(name))
}
