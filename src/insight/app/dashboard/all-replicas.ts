// Merges the knowledge of all replicas: each sends its part. However many viewers there are, the overview is requested once in two seconds.

import { askOthers, type Gathered, type Replicas } from '../../../admin/app/replicas/replicas.ts'
import { DURATION_BOUNDS } from '../../../gateway/metrics/cluster-totals.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { ClusterPage } from '../../api/cluster-page.ts'
import type { Overview } from '../../api/overview.ts'
import { type ClusterPart, type ClusterPartAnswer, type OverviewPart, PART_FORMAT } from '../../api/parts.ts'
import type { TileChoice } from '../../core/dashboard/choose-tiles.ts'
import { mergeClusterPages } from '../../core/dashboard/merge/merge-cluster.ts'
import { mergeOverviews } from '../../core/dashboard/merge/merge-overview.ts'

export interface ThisReplica {
  readonly replica: string
  overview(): OverviewPart
  /** null = unknown to it. */
  cluster(name: string): Promise<ClusterPart | null>
}

const FRESH_MS = 2_000
const ALONE: Gathered<never> = { parts: [], missing: [] }

export class AllReplicas {
  readonly #own: ThisReplica
  readonly #replicas: Replicas
  readonly #clock: { monotonic(): number }
  #gathered: Promise<Gathered<OverviewPart>> | undefined
  #gatheredAtMs = 0

  constructor(own: ThisReplica, replicas: Replicas, clock: { monotonic(): number }) {
    this.#own = own
    this.#replicas = replicas
    this.#clock = clock
  }

  /** @param all default: this replica alone */
  async overview(choice: TileChoice, all: boolean): Promise<Overview> {
    const others = all ? await this.#otherOverviews() : ALONE
    const own = { replica: this.#own.replica, part: this.#own.overview() }
    return mergeOverviews([own, ...others.parts], others.missing, choice, DURATION_BOUNDS)
  }

  /** undefined = unknown to all replicas. @param all default: this replica alone */
  async cluster(name: string, all: boolean): Promise<ClusterPage | undefined> {
    const path = `/api/v1/clusters/${encodeURIComponent(name)}`
    const [own, others] = await Promise.all([
      this.#own.cluster(name),
      all ? this.#gather(path, readClusterPart) : Promise.resolve(ALONE),
    ])
    const known = [{ replica: this.#own.replica, part: own }, ...others.parts].flatMap(({ replica, part }) =>
      part === null ? [] : [{ replica, part }],
    )
    return mergeClusterPages(known, others.missing, DURATION_BOUNDS)
  }

  #otherOverviews(): Promise<Gathered<OverviewPart>> {
    const now = this.#clock.monotonic()
    if (this.#gathered === undefined || now - this.#gatheredAtMs > FRESH_MS) {
      this.#gatheredAtMs = now
      this.#gathered = this.#gather('/api/v1/overview', readOverviewPart)
    }
    return this.#gathered
  }

  /** Never rejects. */
  #gather<T>(path: string, read: (json: unknown) => T): Promise<Gathered<T>> {
    // Not the caller's signal: others may wait for the same response.
    const { signal } = new AbortController()
    const query = new URLSearchParams({ part: String(PART_FORMAT) })
    return askOthers(this.#replicas, { method: 'GET', path, query, signal }, read)
  }
}

function readOverviewPart(json: unknown): OverviewPart {
  if (isRecord(json) && json['format'] === PART_FORMAT && Array.isArray(json['tiles'])) {
    return json as unknown as OverviewPart
  }
  throw new Error('the answer is not an overview of this version')
}

function readClusterPart(json: unknown): ClusterPart | null {
  if (isRecord(json) && json['format'] === PART_FORMAT && 'cluster' in json) {
    return (json as unknown as ClusterPartAnswer).cluster
  }
  throw new Error('the answer is not a cluster of this version')
}
