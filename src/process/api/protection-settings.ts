// Process settings of the pod deletion ledger. Flags of `serve` fill it (src/process/config/protection.ts); the first three may be overridden
// by spec.admissionHistoryConfig of a PodProtector.

export interface ProtectionSettings {
  /** Deletions of one protector that may be admitted before they are observed; 0 = no limit. */
  readonly maxConcurrentLag: number
  /** Beyond this number, single deletions are joined, oldest first. At least 1. */
  readonly compactThreshold: number
  /** Time from a pod event until its protectors are counted again. */
  readonly aggregationRateMs: number
  /** A cell whose last event is older counts no pods as available; 0 = never. */
  readonly staleAfterMs: number
  /**
   * How long an admitted deletion counts if it is not observed, starting when the aggregator first sees it. Must cover the rest of the
   * review (timeoutSeconds, 30 s at most), the way to upstream, and --request-timeout of a kube-apiserver (60 s).
   */
  readonly reservationTimeoutMs: number
  /** Added to the measured bounds of clock skew between a cluster and this process: clocks drift and get adjusted. */
  readonly clockSkewMs: number
  /** Minimum time between the starts of two writes to one protector. */
  readonly batchIntervalMs: number
  /** How long the first deletion of an idle protector waits for others. */
  readonly coldStartDelayMs: number
  /** A conflict is retried after this time plus up to `retryJitterMs`. */
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
