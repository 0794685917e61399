// How long histories may become and how fast they are worked off: settings of the process, which one object may override.

import type { PodProtector } from '../../../api/pod-protector/pod-protector.ts'

export interface HistoryLimits {
  /** Deletions that may be admitted and not yet seen to have happened, in all cells. 0 = no limit. */
  readonly maxConcurrentLag: number
  /** Buckets that a cell keeps before the oldest are joined; 1 to 5,000. */
  readonly compactThreshold: number
  /** Milliseconds from an event of a pod until it is counted. */
  readonly aggregationRateMs: number
  /** Milliseconds without news of a cell after which its pods do not count any more. 0 = never. */
  readonly staleAfterMs: number
}

/** A bucket has some 200 bytes, and an object no more than 1.5 MB: one that is full takes no deletion any more. */
const MAX_BUCKETS = 5_000

/** What holds for one object. Numbers that make no sense are brought into range: a mistake in one object stops nothing. */
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
