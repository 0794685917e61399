// Response of `/api/v1/overview`: all clusters at a glance, one page of tiles at a time so that it stays small with a thousand clusters. Times are
// milliseconds since the epoch; rates cover the last step (STEP_SECONDS) of the gateway's own samples.

/** Seconds between two samples of the counters. */
export const STEP_SECONDS = 10
/** Number of steps kept: half an hour. */
export const RING_STEPS = 180
/** Tiles per page. */
export const TILES_A_PAGE = 60

export interface Overview {
  /** Time of the last sample; 0 = none yet. */
  readonly sampledAt: number
  readonly version: string
  /** Names of the replicas included in these numbers. */
  readonly replicas: readonly string[]
  /** Replicas that did not respond. */
  readonly missing: readonly string[]
  readonly totals: Totals
  /** Worst first, unless sorted otherwise. */
  readonly clusters: readonly ClusterTile[]
  /** Labels by which they can be grouped, the most frequent first. */
  readonly labelKeys: readonly string[]
  /** By value of the label, if they are grouped: '' = without it. */
  readonly groups: readonly ClusterGroup[]
  /** Number of matches on all pages. */
  readonly matching: number
  /** 1-based. */
  readonly page: number
  readonly pages: number
  readonly switches: readonly SwitchInForce[]
  /** Changes in the last 30 minutes, newest first. */
  readonly changes: readonly Change[]
  /** Refusals in the last five minutes, most frequent first. */
  readonly refusals: readonly ShownRefusals[]
  /** Certificates that expire within 30 days, soonest first. */
  readonly certificates: readonly CertificateRow[]
  /** Configuration errors and warnings. */
  readonly problems: readonly ProblemRow[]
  /** Number of omitted entries, by list. */
  readonly omitted: Readonly<Record<string, number>>
}

export interface Totals {
  readonly clusters: number
  /** Clusters with at least one trouble. */
  readonly hurting: number
  readonly switched: number
  readonly requestsPerSecond: number
  readonly errorsPerSecond: number
  readonly refusedPerSecond: number
  readonly inFlight: number
  readonly watches: number
  /** One value per step, newest last. */
  readonly series: Series
}

export interface Series {
  /** Time of the newest value. */
  readonly endsAt: number
  readonly stepSeconds: number
  readonly requests: readonly number[]
  readonly errors: readonly number[]
  readonly refused: readonly number[]
  /** 99th percentile of the duration, milliseconds; null = no requests. */
  readonly p99: readonly (number | null)[]
}

/** Why a cluster hurts, worst first. */
export type Trouble = 'down' | 'errors' | 'endpoints' | 'credentials' | 'refused' | 'slow' | 'degraded'

/** The matching clusters with one value of the label. */
export interface ClusterGroup {
  readonly value: string
  readonly clusters: number
  readonly hurting: number
  readonly switched: number
}

export interface ClusterTile {
  readonly name: string
  /** Value of the label that the page is grouped by; '' = without it, or not grouped. */
  readonly group: string
  /** [] = none. */
  readonly troubles: readonly Trouble[]
  readonly requestsPerSecond: number
  /** Share of requests that got a 5xx or no response; 0 to 1. */
  readonly errorRatio: number
  /** Share of requests refused by the gateway; 0 to 1. */
  readonly refusedRatio: number
  /** Milliseconds; null = no requests. */
  readonly p50: number | null
  readonly p99: number | null
  readonly inFlight: number
  readonly watches: number
  /** Available and total, from the replica that reaches fewest. */
  readonly endpoints: { readonly up: number; readonly all: number }
  readonly degrade: DegradeInForce | null
  /** Requests per second over the last half hour, one value per minute, newest last. */
  readonly spark: readonly number[]
}

export interface DegradeInForce {
  readonly mode: string
  readonly reason: string
  /** Who set it: a person on this machine, a controller, or the program that wrote the object; '' = unknown. */
  readonly by: string
  /** 0 = unknown. */
  readonly since: number
  /** 0 = until switched off. */
  readonly expiresAt: number
  /** Shadow mode: counts but refuses nothing. */
  readonly shadow: boolean
  /** Replicas where it is in force, unless all that responded. */
  readonly replicas?: readonly string[]
}

export interface SwitchInForce extends DegradeInForce {
  readonly cluster: string
}

export type ChangeKind = 'cluster' | 'degrade' | 'endpoint' | 'certificate' | 'limit' | 'event' | 'gateway'

export interface Change {
  readonly at: number
  readonly kind: ChangeKind
  /** '' = the gateway itself. */
  readonly cluster: string
  readonly severity: 'good' | 'neutral' | 'bad'
  /** One line for people. */
  readonly text: string
  /** Who did it; '' = unknown. */
  readonly by: string
  /** Replicas that noticed it, unless all that responded. */
  readonly replicas?: readonly string[]
}

export interface ShownRefusals {
  readonly cluster: string
  readonly reason: string
  /** Name of the policy, limit or list that refused the requests; '' = none. */
  readonly rule: string
  /** HTTP status. */
  readonly code: number
  readonly perSecond: number
  /** Count over the last five minutes. */
  readonly count: number
}

export interface CertificateRow {
  /** '' = the gateway's own certificate. */
  readonly cluster: string
  readonly certificate: string
  readonly endsAt: number
}

export interface ProblemRow {
  readonly cluster: string
  readonly severity: 'error' | 'warning'
  readonly message: string
}
