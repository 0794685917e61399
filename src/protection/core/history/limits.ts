// Maximum length of histories and how fast they are processed: process settings that an object may override.

import type { PodProtector } from '../../api/pod-protector.ts'

export interface HistoryLimits {
  /** Deletions, over all cells, that may be admitted but not yet observed. 0 = no limit. */
  readonly maxConcurrentLag: number
  /** Buckets per cell before the oldest are joined; 1 to 5,000. */
  readonly compactThreshold: number
  /** Milliseconds from a pod event until it is counted. */
  readonly aggregationRateMs: number
  /** Milliseconds of silence after which a cell's pods no longer count. 0 = never. */
  readonly staleAfterMs: number
}

/** A bucket takes some 200 bytes, and an object at most 1.5 MB: a full one could record no more deletions. */
const MAX_BUCKETS = 5_000

/** The limits of one object. Invalid numbers are clamped: an error in one object must not stop anything. */
export function limitsOf(protector: PodProtector, defaults: HistoryLimits): HistoryLimits {
  const config = protector.spec?.admissionHistoryConfig
  return {
    maxConcurrentLag: atLeast(0, config?.maxConcurrentLag, defaults.maxConcurrentLag),
    compactThreshold: Math.min(MAX_BUCKETS, atLeast(1, config?.compactThreshold, defaults.compactThreshold)),
    aggregationRateMs: atLeast(0, config?.aggregationRateMillis, defaults.aggregationRateMs),
    staleAfterMs: atLeast(0, undefined, defaults.staleAfterMs),
  }
}

function atLeast(least: number, override: unknown, preset: number): number {
  const value = typeof override === 'number' && Number.isFinite(override) ? override : preset
  return Math.max(least, Math.trunc(value))
}
