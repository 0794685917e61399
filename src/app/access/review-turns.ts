// How many reviews invented tokens can cause, and that they do not keep out those of others: addresses take turns.

import { CallTurns, type Turn } from '../../core/limits/call-turns.ts'

/** Reviews at a time. */
const MAX_REVIEWS = 8
/** Requests that wait for one; each has a connection of the listener meanwhile. */
const MAX_WAITING = 32
const LONGEST_WAIT_MS = 2_000
/** Prometheus asks every few seconds, and results are cached. */
export const REVIEW_RATE = { qps: 10, burst: 20 } as const

export class ReviewTurns {
  readonly #turns = new CallTurns(MAX_REVIEWS, MAX_WAITING)
  readonly #monotonic: () => number
  #next: NodeJS.Timeout | undefined

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /** Resolves with 0 when a review may be sent, `done` follows; otherwise with the milliseconds until another attempt. */
  take(source: string): Promise<number> {
    return new Promise((resolve) => {
      const expiry = setTimeout(() => this.#turns.expire(turn, REVIEW_RATE), LONGEST_WAIT_MS).unref()
      const settle = (heldMs: number): void => {
        clearTimeout(expiry)
        resolve(heldMs)
      }
      const turn: Turn = {
        source,
        longestWaitMs: LONGEST_WAIT_MS,
        granted: () => settle(0),
        refused: (retryAfterMs) => settle(Math.max(1, retryAfterMs)),
      }
      this.#later(this.#turns.ask(turn, REVIEW_RATE, this.#monotonic()))
    })
  }

  done(source: string): void {
    this.#later(this.#turns.done(source, REVIEW_RATE, this.#monotonic()))
  }

  #later(waitMs: number): void {
    clearTimeout(this.#next)
    if (waitMs > 0) {
      this.#next = setTimeout(() => this.#later(this.#turns.advance(REVIEW_RATE, this.#monotonic())), waitMs).unref()
    }
  }
}
