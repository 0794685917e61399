// How a cluster's apiservers have answered in the last while: what the threads have counted (gateway/core/upstream/answer-counts.ts), from sample to
// sample.

import {
  type AnswerCountMemory,
  BOUNDS_MS,
  BUCKETS,
  COUNTED,
  FAILED,
  sumOfColumns,
} from '../../gateway/core/upstream/answer-counts.ts'
import type { UpstreamSeen } from '../api/cluster-health.ts'

interface Sample {
  readonly atMs: number
  readonly words: Int32Array
}

/** A sliding window: the current counts minus those at its beginning. */
export class AnswerWindow {
  readonly #memory: AnswerCountMemory
  readonly #lengthMs: number
  /** Oldest first. */
  #samples: Sample[] = []

  constructor(memory: AnswerCountMemory, lengthMs: number) {
    this.#memory = memory
    this.#lengthMs = lengthMs
  }

  get memory(): AnswerCountMemory {
    return this.#memory
  }

  /** Call about once a second. @param nowMs monotonic milliseconds */
  sample(nowMs: number): void {
    this.#samples.push({ atMs: nowMs, words: sumOfColumns(this.#memory) })
    // Keep one sample at or before the beginning: what was counted since is in the window.
    let first = 0
    while ((this.#samples[first + 1]?.atMs ?? Number.POSITIVE_INFINITY) <= nowMs - this.#lengthMs) first++
    if (first > 0) this.#samples = this.#samples.slice(first)
  }

  /** As of the last sample; undefined = there are fewer than two. */
  seen(): UpstreamSeen | undefined {
    const [first] = this.#samples
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || first === last) return undefined
    const counted = last.words.map((count, i) => (count - (first.words[i] ?? 0)) | 0)
    const requests = counted[COUNTED] ?? 0
    return {
      requests,
      failed5xx: counted[FAILED] ?? 0,
      p99Ms: quantile(counted, requests, 0.99),
      medianMs: quantile(counted, requests, 0.5),
      observedAtMs: last.atMs,
    }
  }
}

/** Upper bound of the bucket that contains the quantile; above the last bound, that bound. 0 without requests. */
function quantile(counted: Int32Array, requests: number, q: number): number {
  const rank = Math.max(1, Math.ceil(requests * q))
  let passed = 0
  for (let bucket = 0; requests > 0 && bucket <= BOUNDS_MS.length; bucket++) {
    passed += counted[BUCKETS + bucket] ?? 0
    if (passed >= rank) return BOUNDS_MS[bucket] ?? BOUNDS_MS.at(-1) ?? 0
  }
  return 0
}
