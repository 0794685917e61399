// What `/api/v1/overview` answers: one look at all clusters, a page of tiles at a time, so that it stays small with a thousand of them.
// All times are milliseconds since the epoch; rates are of the last step (STEP_SECONDS) of the gateway's own samples.

/** Between two samples of the counts, seconds. */
export const STEP_SECONDS = 10
/** Steps that are kept: half an hour. */
export const STEPS = 180
/** Tiles of one answer. */
export const TILES_A_PAGE = 60

export interface Overview {
  /** When the counts were sampled last; 0 = not yet. */
  readonly sampledAt: number
  readonly version: string
  /** Replicas whose numbers are in here, by name. */
  readonly replicas: readonly string[]
  /** Replicas that did not answer. */
  readonly missing: readonly string[]
  readonly totals: Totals
  /** The worst first, unless sorted otherwise. */
  readonly clusters: readonly ClusterTile[]
  /** How many there are on all pages. */
  readonly matching: number
  /** From 1 on. */
  readonly page: number
  readonly pages: number
  readonly switches: readonly SwitchInForce[]
  /** Of the last 30 minutes, the newest first. */
  readonly changes: readonly Change[]
  /** Of the last five minutes, the most frequent first. */
  readonly refusals: readonly RefusalRow[]
  /** Those that end within 30 days, the next first. */
  readonly certificates: readonly CertificateRow[]
  /** Errors and warnings of the configuration. */
  readonly problems: readonly ProblemRow[]
  /** Entries that are left out above, by list. */
  readonly omitted: Readonly<Record<string, number>>
}

export interface Totals {
  readonly clusters: number
  /** Those with a trouble. */
  readonly hurting: number
  readonly switched: number
  readonly requestsPerSecond: number
  readonly errorsPerSecond: number
  readonly refusedPerSecond: number
  readonly inFlight: number
  readonly watches: number
  /** One value for each step, the newest last. */
  readonly series: Series
}

export interface Series {
  /** Of the newest value. */
  readonly endsAt: number
  readonly stepSeconds: number
  readonly requests: readonly number[]
  readonly errors: readonly number[]
  readonly refused: readonly number[]
  /** 99th percentile of the duration, milliseconds; null = no requests. */
  readonly p99: readonly (number | null)[]
}

/** Why a cluster hurts, the worst first. */
export type Trouble = 'down' | 'errors' | 'endpoints' | 'credentials' | 'refused' | 'slow' | 'degraded'

export interface ClusterTile {
  readonly name: string
  /** [] = none. */
  readonly troubles: readonly Trouble[]
  readonly requestsPerSecond: number
  /** Answered with 5xx, or not at all; 0 to 1. */
  readonly errorRatio: number
  /** Refused by the gateway; 0 to 1. */
  readonly refusedRatio: number
  /** Milliseconds; null = no requests. */
  readonly p50: number | null
  readonly p99: number | null
  readonly inFlight: number
  readonly watches: number
  /** Available and all, at the replica that reaches fewest. */
  readonly endpoints: { readonly up: number; readonly all: number }
  readonly degrade: DegradeInForce | null
  /** Requests a second in the last half hour, a value a minute, the newest last. */
  readonly spark: readonly number[]
}

export interface DegradeInForce {
  readonly mode: string
  readonly reason: string
  /** Who set it: a person on this machine, a controller, or the program that wrote the object; '' = not known. */
  readonly by: string
  /** 0 = not known. */
  readonly since: number
  /** 0 = until it is switched off. */
  readonly expiresAt: number
  /** It refuses nothing, and only counts. */
  readonly shadow: boolean
  /** Where it is in force, if not at all replicas that have answered. */
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
  /** Who did it; '' = not known. */
  readonly by: string
  /** Who noticed it, if not all replicas that have answered. */
  readonly replicas?: readonly string[]
}

export interface RefusalRow {
  readonly cluster: string
  readonly reason: string
  /** Name of the policy, limit or list that decided; '' = none did. */
  readonly rule: string
  /** HTTP status. */
  readonly code: number
  readonly perSecond: number
  /** In the last five minutes. */
  readonly count: number
}

export interface CertificateRow {
  /** '' = the gateway's own. */
  readonly cluster: string
  readonly certificate: string
  readonly endsAt: number
}

export interface ProblemRow {
  readonly cluster: string
  readonly severity: 'error' | 'warning'
  readonly message: string
}
