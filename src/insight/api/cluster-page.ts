// What `/api/v1/clusters/NAME` answers: one cluster in full.

import type { Change, ClusterTile, Series } from './overview.ts'

export interface ClusterPage {
  readonly sampledAt: number
  readonly version: string
  /** Replicas whose numbers are in here, by name. */
  readonly replicas: readonly string[]
  /** Replicas that did not answer. */
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
  readonly certificates: readonly { readonly certificate: string; readonly endsAt: number }[]
  readonly problems: readonly { readonly severity: 'error' | 'warning'; readonly message: string }[]
  readonly changes: readonly Change[]
  /** Why upstream refuses the gateway's own credential; '' = it does not. */
  readonly credentialFault: string
}

export interface EndpointRow {
  readonly url: string
  readonly state: 'up' | 'down' | 'ejected' | 'disabled' | 'unknown' | 'backup'
  /** What the last probe said; '' = nothing. */
  readonly message: string
  readonly inFlight: number
  readonly requestsPerSecond: number
  readonly errorsPerSecond: number
  readonly weight: number
}

export interface PolicyRow {
  readonly index: number
  /** In short, for people. */
  readonly matches: string
  readonly action: 'allow' | 'deny' | 'deny (shadow)'
  /** Flow control schema; '' = none. */
  readonly limit: string
  readonly strategy: string
  readonly perSecond: number
  readonly hits: number
}

export interface LimitRow {
  /** In spec.flowControl.flowControlSchemas. */
  readonly index: number
  /** Its main number, by its path in the schema; null = it has none. */
  readonly change: { readonly path: string; readonly value: number } | null
  readonly name: string
  readonly kind: string
  readonly perUser: boolean
  readonly shadow: boolean
  /** For people: `50/s, burst 100`. */
  readonly size: string
  /** What all replicas together may, requests a second or at once; null = it is not shared, or each user has an own one. */
  readonly shared: number | null
  /** 0 to 1, of the replica where it is fullest; null = there is nothing to fill, or each user has an own one. */
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
  /** Of the replica that protects least: Judging, Counting, Starting, Broken. */
  readonly state: string
  readonly message: string
  readonly protectors: readonly ProtectorRow[]
  /** How many more there are. */
  readonly omitted: number
}

export interface ProtectorRow {
  readonly namespace: string
  readonly name: string
  readonly minAvailable: number
  readonly available: number
  /** Deletions that were let through, and are not counted yet. */
  readonly pending: number
  /** Pods that may go now. */
  readonly mayGo: number
  /** Names of pods that cannot go, where this replica counts them. */
  readonly stuck: readonly string[]
  /** How many cannot go. */
  readonly stuckCount: number
  readonly fault: string
}
