// What replicas exchange about the overview and a cluster page: sums and counts that add up across replicas. Only replicas of the same version
// understand each other.

import type { ClusterPage } from './cluster-page.ts'
import type { ClusterTile, Overview, Series, Totals } from './overview.ts'

/** Bump whenever the shapes below change. */
export const PART_FORMAT = 3
/** Maximum entries per list; the rest is only counted. */
export const MAX_PART_ROWS = 1000

/** Duration histogram: bucket index and count, alternating; the index after the last bound is the overflow bucket. */
export type Durations = readonly number[]

/** A time series without quantiles, which cannot be added up. */
export interface SeriesPart extends Omit<Series, 'p99'> {
  /** One per step. */
  readonly durations: readonly Durations[]
}

export interface TilePart
  extends Omit<ClusterTile, 'group' | 'troubles' | 'errorRatio' | 'refusedRatio' | 'p50' | 'p99'> {
  readonly labels: Readonly<Record<string, string>>
  readonly errorsPerSecond: number
  readonly refusedPerSecond: number
  /** Durations of the newest step. */
  readonly durations: Durations
  /** Why upstream rejects the gateway's own credential; '' = it does not. */
  readonly credentialFault: string
}

export interface TotalsPart extends Omit<Totals, 'clusters' | 'hurting' | 'switched' | 'series'> {
  readonly series: SeriesPart
}

type OverviewLists = Pick<Overview, 'changes' | 'refusals' | 'certificates' | 'problems'>

export interface OverviewPart extends OverviewLists {
  readonly format: typeof PART_FORMAT
  readonly sampledAt: number
  readonly version: string
  readonly totals: TotalsPart
  readonly tiles: readonly TilePart[]
  /** Number of omitted entries, by list. */
  readonly omitted: Readonly<Record<string, number>>
}

type Derived = 'tile' | 'series' | 'replicas' | 'missing' | 'credentialFault'

export interface ClusterPart extends Omit<ClusterPage, Derived> {
  readonly tile: TilePart
  readonly series: SeriesPart
}

/** `cluster` null = unknown to this replica. */
export interface ClusterPartAnswer {
  readonly format: typeof PART_FORMAT
  readonly cluster: ClusterPart | null
}
