// How long a key is left alone after failures: twice as long after each that comes once it was tried again
// (cluster-autoscaler/utils/backoff/exponential_backoff.go).

import type { BackoffOptions } from './rules.ts'

/** @template E what is remembered of the last failure */
export interface BackoffEntry<E> {
  readonly durationMs: number
  readonly untilMs: number
  readonly lastFailureMs: number
  readonly error: E
}

export class ExponentialBackoff<E> {
  readonly #options: BackoffOptions
  readonly #entries = new Map<string, BackoffEntry<E>>()

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /** Records a failure. @returns until when the key is backed off, milliseconds */
  fail(key: string, error: E, nowMs: number): number {
    const { initialMs, maxMs } = this.#options
    const known = this.#entries.get(key)
    // Failures during a backoff are of the same attempt: the end moves, the duration stays.
    let durationMs = known?.durationMs ?? initialMs
    if (known !== undefined && known.untilMs < nowMs) durationMs = Math.min(durationMs * 2, maxMs)
    const untilMs = nowMs + durationMs
    this.#entries.set(key, { durationMs, untilMs, lastFailureMs: nowMs, error })
    return untilMs
  }

  /** The last failure of a key that is backed off; undefined = it is not. The end itself still counts. */
  status(key: string, nowMs: number): { readonly error: E; readonly untilMs: number } | undefined {
    const entry = this.#entries.get(key)
    return entry === undefined || entry.untilMs < nowMs ? undefined : { error: entry.error, untilMs: entry.untilMs }
  }

  /** What is known of a key, backed off or not. */
  entry(key: string): BackoffEntry<E> | undefined {
    return this.#entries.get(key)
  }

  /** As it was before a restart. */
  restore(key: string, entry: BackoffEntry<E>): void {
    this.#entries.set(key, entry)
  }

  remove(key: string): void {
    this.#entries.delete(key)
  }

  /** Drops what failed last too long ago: its next failure is a first one. */
  removeStale(nowMs: number): void {
    for (const [key, { lastFailureMs }] of this.#entries) {
      if (lastFailureMs + this.#options.resetMs < nowMs) this.#entries.delete(key)
    }
  }

  get size(): number {
    return this.#entries.size
  }
}
