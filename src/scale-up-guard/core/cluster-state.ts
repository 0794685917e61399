// The cluster-autoscaler's own backoff (cluster-autoscaler/utils/backoff/exponential_backoff.go), and the scale-ups that were ordered and are not complete
// (clusterstate.go, registerOrUpdateScaleUpNoLock).

export interface BackoffOptions {
  readonly initialMs: number
  readonly maxMs: number
  /** An entry is dropped this long after its last failure. */
  readonly resetMs: number
}

/** @template E what is remembered of the last failure */
export interface BackoffEntry<E> {
  readonly durationMs: number
  readonly untilMs: number
  readonly lastFailureMs: number
  readonly error: E
}

/** For each key: doubles after each failure of a new attempt. */
export class ExponentialBackoff<E> {
  readonly #options: BackoffOptions
  readonly #entries = new Map<string, BackoffEntry<E>>()

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /** Records a failure. @returns end of the backoff, milliseconds */
  fail(key: string, error: E, nowMs: number): number {
    const { initialMs, maxMs } = this.#options
    const known = this.#entries.get(key)
    // Failures during a backoff belong to the same attempt: the end moves, the duration stays.
    let durationMs = known?.durationMs ?? initialMs
    if (known !== undefined && known.untilMs < nowMs) durationMs = Math.min(durationMs * 2, maxMs)
    const untilMs = nowMs + durationMs
    this.#entries.set(key, { durationMs, untilMs, lastFailureMs: nowMs, error })
    return untilMs
  }

  /** The last failure of a key in backoff; undefined = it is not in backoff. The end itself is included. */
  status(key: string, nowMs: number): { readonly error: E; readonly untilMs: number } | undefined {
    const entry = this.#entries.get(key)
    return entry === undefined || entry.untilMs < nowMs ? undefined : { error: entry.error, untilMs: entry.untilMs }
  }

  /** The entry of a key, in backoff or not. */
  entry(key: string): BackoffEntry<E> | undefined {
    return this.#entries.get(key)
  }

  /** Restores an entry after a restart. */
  restore(key: string, entry: BackoffEntry<E>): void {
    this.#entries.set(key, entry)
  }

  remove(key: string): void {
    this.#entries.delete(key)
  }

  /** Drops keys whose last failure is too long ago: their next failure counts as the first. */
  removeStale(nowMs: number): void {
    for (const [key, { lastFailureMs }] of this.#entries) {
      if (lastFailureMs + this.#options.resetMs < nowMs) this.#entries.delete(key)
    }
  }

  get size(): number {
    return this.#entries.size
  }
}

/** What was ordered for a group and has not come yet. */
export interface ScaleUpRequest {
  readonly increase: number
  /** When it was ordered, or last raised. Milliseconds */
  readonly timeMs: number
  /** When its nodes are due. Milliseconds */
  readonly expectedAddMs: number
}

/**
 * Applies another order to a group's request.
 * @param delta negative: this many of its nodes will not come
 * @returns undefined = nothing of it is left
 */
export function changedRequest(
  known: ScaleUpRequest | undefined,
  delta: number,
  maxNodeProvisionMs: number,
  nowMs: number,
): ScaleUpRequest | undefined {
  const increase = (known?.increase ?? 0) + delta
  if (increase <= 0) return undefined
  // Another order restarts the time limit for all: with an order every few minutes it never expires.
  if (known === undefined || delta > 0) return { increase, timeMs: nowMs, expectedAddMs: nowMs + maxNodeProvisionMs }
  return { ...known, increase }
}
