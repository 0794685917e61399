// Response of `/api/v1/clusters/NAME`: one cluster in full.

import type { ProtectorRow } from '../../gateway/api/pod-protection-in-force.ts'
import type { CacheState } from '../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { Change, ClusterTile, Series } from './overview.ts'

export interface ClusterPage {
  readonly sampledAt: number
  readonly version: string
  /** Names of the replicas included in these numbers. */
  readonly replicas: readonly string[]
  /** Replicas that did not respond. */
  readonly missing: readonly string[]
  readonly tile: ClusterTile
  readonly series: Series
  readonly hosts: readonly string[]
  readonly endpoints: readonly EndpointRow[]
  readonly policies: readonly PolicyRow[]
  readonly limits: readonly LimitRow[]
  readonly refusals: readonly {
    readonly reason: string
    readonly rule: string
    readonly code: number
    readonly perSecond: number
    readonly count: number
  }[]
  readonly protection: ProtectionPane | null
  /** Resources whose reads the gateway answers itself; none = it has no cache. */
  readonly cached: readonly CachedRow[]
  readonly certificates: readonly { readonly certificate: string; readonly endsAt: number }[]
  readonly problems: readonly { readonly severity: 'error' | 'warning'; readonly message: string }[]
  readonly changes: readonly Change[]
  /** Why upstream rejects the gateway's own credential; '' = it does not. */
  readonly credentialFault: string
}

export interface EndpointRow {
  readonly url: string
  readonly state: 'up' | 'down' | 'ejected' | 'disabled' | 'unknown' | 'backup'
  /** Result of the last probe; '' = none. */
  readonly message: string
  readonly inFlight: number
  readonly requestsPerSecond: number
  readonly errorsPerSecond: number
  readonly weight: number
}

export interface PolicyRow {
  readonly index: number
  /** Summary for people. */
  readonly matches: string
  readonly action: 'allow' | 'deny' | 'deny (shadow)'
  /** Name of the flow control schema; '' = none. */
  readonly limit: string
  readonly strategy: string
  readonly perSecond: number
  readonly hits: number
}

export interface LimitRow {
  /** Index in spec.flowControl.flowControlSchemas. */
  readonly index: number
  /** The main number of the limit, by its path in the schema; null = it has none. */
  readonly change: { readonly path: string; readonly value: number } | null
  readonly name: string
  readonly kind: string
  readonly perUser: boolean
  readonly shadow: boolean
  /** For people: `50/s, burst 100`. */
  readonly size: string
  /** Total for all replicas, requests per second or in flight; null = not shared, or counted per user. */
  readonly shared: number | null
  /** 0 to 1, from the replica where it is fullest; null = no fill level, or counted per user. */
  readonly fill: number | null
  readonly inFlight: number
  readonly watches: number
  readonly users: number
  readonly admittedPerSecond: number
  readonly rejectedPerSecond: number
}

export interface ProtectionPane {
  readonly cell: string
  readonly shadow: boolean
  /** The state of the replica that protects least: Judging, Counting, Starting, Broken. */
  readonly state: string
  readonly message: string
  readonly protectors: readonly ProtectorRow[]
  /** Number of omitted entries. */
  readonly omitted: number
}

/** Counts are since the replicas were started. */
export interface CachedRow {
  readonly resource: string
  readonly version: string
  readonly state: CacheState
  /** What is wrong; '' = nothing. */
  readonly message: string
  readonly objects: number
  readonly bytes: number
  /** Since the cluster last told of a change, or that there was none; null = nothing is kept. */
  readonly ageSeconds: number | null
  readonly hits: number
  /** Forwarded reads, the most frequent reason first. */
  readonly passes: readonly { readonly reason: string; readonly count: number }[]
}
