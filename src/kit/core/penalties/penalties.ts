// Whoever does harm is punished for a while, each time for longer, until it has been quiet for a while: by source, in a bounded number.

export interface PenaltyScale {
  /** The first time; `growth` times as long each further time. */
  readonly firstMs: number
  readonly growth: number
  readonly longestMs: number
}

interface Penalty {
  /** Harm since the last penalty. */
  points: number
  times: number
  /** Its end, or the latest harm, if that was later. */
  untilMs: number
}

/** @param times how often it was punished before */
export function penaltyMs({ firstMs, growth, longestMs }: PenaltyScale, times: number): number {
  return Math.min(longestMs, firstMs * growth ** Math.min(times, 30))
}

export class Penalties {
  readonly #quietMs: number
  readonly #most: number
  readonly #onForgotten: ((source: string) => void) | undefined
  /** The one that did harm least recently comes first. */
  readonly #known = new Map<string, Penalty>()

  /**
   * @param quietMs without harm for this long after a penalty, a source is forgotten
   * @param most sources; then the one that did harm least recently is forgotten
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
   * @param points of harm that the source has done; 1 = enough for a penalty
   * @returns for how long it is punished from now on, milliseconds; 0 = as before
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

  /** For as long as another thread or replica has decided. */
  punish(source: string, forMs: number, nowMs: number): void {
    this.#penaltyOf(source, nowMs).untilMs = nowMs + forMs
  }

  /** For how much longer the source is punished; 0 = it is not. */
  leftMs(source: string, nowMs: number): number {
    const penalty = this.#known.get(source)
    if (penalty === undefined) return 0
    if (nowMs - penalty.untilMs >= this.#quietMs) this.#forget(source)
    return Math.max(0, penalty.untilMs - nowMs)
  }

  /** All that are punished now, and for how much longer. */
  *all(nowMs: number): Iterable<{ readonly source: string; readonly forMs: number }> {
    for (const [source, { untilMs }] of this.#known) if (untilMs > nowMs) yield { source, forMs: untilMs - nowMs }
  }

  #penaltyOf(source: string, nowMs: number): Penalty {
    // Forgets it, if it has been quiet.
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
