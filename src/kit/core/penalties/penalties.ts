// Escalating penalties: a misbehaving source is blocked, longer each time, until it has been quiet for a while. The number of sources is
// bounded.

export interface PenaltyScale {
  /** First penalty; `growth` times as long each further time. */
  readonly firstMs: number
  readonly growth: number
  readonly longestMs: number
}

interface Penalty {
  /** Points since the last penalty. */
  points: number
  times: number
  /** Its end, or the latest offense if that was later. */
  untilMs: number
}

/** @param times number of earlier penalties */
export function penaltyMs({ firstMs, growth, longestMs }: PenaltyScale, times: number): number {
  return Math.min(longestMs, firstMs * growth ** Math.min(times, 30))
}

export class Penalties {
  readonly #quietMs: number
  readonly #most: number
  readonly #onForgotten: ((source: string) => void) | undefined
  /** The least recent offender comes first. */
  readonly #known = new Map<string, Penalty>()

  /**
   * @param quietMs a source is forgotten after this long without an offense after its penalty
   * @param most number of sources; beyond it the least recent offender is forgotten
   */
  constructor(quietMs: number, most: number, onForgotten?: (source: string) => void) {
    this.#quietMs = quietMs
    this.#most = most
    this.#onForgotten = onForgotten
  }

  get size(): number {
    return this.#known.size
  }

  /**
   * @param points of the offense; 1 = enough for a penalty
   * @returns length of the penalty from now on, milliseconds; 0 = unchanged
   */
  charge(source: string, points: number, scale: PenaltyScale, nowMs: number): number {
    const penalty = this.#penaltyOf(source, nowMs)
    penalty.points += points
    penalty.untilMs = Math.max(penalty.untilMs, nowMs)
    if (penalty.points < 1) return 0
    penalty.points = 0
    const forMs = penaltyMs(scale, penalty.times++)
    penalty.untilMs = nowMs + forMs
    return forMs
  }

  /** Applies a penalty decided by another thread or replica. */
  punish(source: string, forMs: number, nowMs: number): void {
    this.#penaltyOf(source, nowMs).untilMs = nowMs + forMs
  }

  /** Milliseconds left of the penalty; 0 = none. */
  leftMs(source: string, nowMs: number): number {
    const penalty = this.#known.get(source)
    if (penalty === undefined) return 0
    if (nowMs - penalty.untilMs >= this.#quietMs) this.#forget(source)
    return Math.max(0, penalty.untilMs - nowMs)
  }

  /** All current penalties, with the time left. */
  *all(nowMs: number): Iterable<{ readonly source: string; readonly forMs: number }> {
    for (const [source, { untilMs }] of this.#known) if (untilMs > nowMs) yield { source, forMs: untilMs - nowMs }
  }

  #penaltyOf(source: string, nowMs: number): Penalty {
    // Forgets it if it has been quiet.
    this.leftMs(source, nowMs)
    const penalty = this.#known.get(source) ?? { points: 0, times: 0, untilMs: 0 }
    this.#known.delete(source)
    this.#known.set(source, penalty)
    const [oldest = ''] = this.#known.keys()
    if (this.#known.size > this.#most) this.#forget(oldest)
    return penalty
  }

  #forget(source: string): void {
    this.#known.delete(source)
    this.#onForgotten?.(source)
  }
}
