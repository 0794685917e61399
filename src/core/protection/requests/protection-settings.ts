// How the process keeps its ledger of pod deletions. Flags of `serve` fill it (src/app/config/protection.ts); the first three
// may be overridden by spec.admissionHistoryConfig of a PodProtector.

export interface ProtectionSettings {
  /** Deletions of one protector that may be let through before they are seen to have happened; 0 = no limit. */
  readonly maxConcurrentLag: number
  /** More single deletions than these are joined, oldest first. At least 1. */
  readonly compactThreshold: number
  /** From an event of a pod until its protectors are counted anew. */
  readonly aggregationRateMs: number
  /** A cell whose last event is older counts no pods as available; 0 = never. */
  readonly staleAfterMs: number
  /**
   * How long a deletion that was let through counts when nobody sees it happen, from when the aggregator has first seen it. The
   * rest of the review (timeoutSeconds, 30 s at most), the way to upstream, and --request-timeout of a kube-apiserver (60 s) fit
   * in.
   */
  readonly reservationTimeoutMs: number
  /** By how much more than was measured the clocks of a cluster and of this process may differ: they drift, and are set. */
  readonly clockSkewMs: number
  /** At least so much lies between the starts of two writes to one protector. */
  readonly batchIntervalMs: number
  /** How long the first deletion of an idle protector waits for others. */
  readonly coldStartDelayMs: number
  /** A write that met a conflict is tried again after this, and up to `retryJitterMs` more. */
  readonly retryBackoffMs: number
  readonly retryJitterMs: number
  /** aggregationRateMs is multiplied by a random number from `rateJitterLow` to `rateJitterHigh`. */
  readonly rateJitterLow: number
  readonly rateJitterHigh: number
}

export const DEFAULT_PROTECTION_SETTINGS: ProtectionSettings = {
  maxConcurrentLag: 0,
  compactThreshold: 100,
  aggregationRateMs: 1_000,
  staleAfterMs: 0,
  reservationTimeoutMs: 120_000,
  clockSkewMs: 2_000,
  batchIntervalMs: 75,
  coldStartDelayMs: 0,
  retryBackoffMs: 100,
  retryJitterMs: 100,
  rateJitterLow: 0.5,
  rateJitterHigh: 1,
}
