// What one replica tells another of the overview and of a cluster: sums and counts, out of which those of all replicas can be made. Only
// replicas of one version understand each other.

import type { ClusterPage } from './cluster-page.ts'
import type { ClusterTile, Overview, Series, Totals } from './overview.ts'

/** Changes with the shape of what follows. */
export const PART_FORMAT = 1
/** Entries of each list; what is beyond is counted. */
export const MAX_PART_ROWS = 1000

/** How many requests took how long: index of the bucket and count, in turn; the index after the last bound = longer. */
export type Durations = readonly number[]

/** A time series without quantiles, which cannot be added. */
export interface SeriesPart extends Omit<Series, 'p99'> {
  /** One for each step. */
  readonly durations: readonly Durations[]
}

export interface TilePart extends Omit<ClusterTile, 'troubles' | 'errorRatio' | 'refusedRatio' | 'p50' | 'p99'> {
  readonly errorsPerSecond: number
  readonly refusedPerSecond: number
  /** Of the newest step. */
  readonly durations: Durations
  /** Why upstream refuses the gateway's own credential; '' = it does not. */
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
  /** Entries that are left out, by list. */
  readonly omitted: Readonly<Record<string, number>>
}

type Derived = 'tile' | 'series' | 'replicas' | 'missing' | 'credentialFault'

export interface ClusterPart extends Omit<ClusterPage, Derived> {
  readonly tile: TilePart
  readonly series: SeriesPart
}

/** `cluster` null = this replica does not know it. */
export interface ClusterPartAnswer {
  readonly format: typeof PART_FORMAT
  readonly cluster: ClusterPart | null
}
