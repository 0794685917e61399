// Limits concurrent lists and watches after the connections to a cluster broke: thousands of clients come back together and would overload
// a kube-apiserver that has just started. Grows with each answer, like the congestion window of TCP (RFC 5681), so that the server's own
// answers set the pace; unlimited while nothing has broken.

/** Initial and minimum window, per thread. */
export const FIRST_RELISTS = 8
/** A window above this is as good as unlimited. */
const MOST = 4096
/** A slower answer means that the server is saturated. */
export const SLOW_ANSWER_MS = 1_000
/** The limit ends after this long without a waiter. */
const CALM_MS = 5_000

/** Outcome of an admitted request: answered in time, answered late, refused by 429 or 5xx or not answered at all, or cancelled. */
export type RelistOutcome = 'good' | 'slow' | 'overload' | 'given-up'

export class RelistWindow {
  #size = Number.POSITIVE_INFINITY
  /** Above this the window grows by one per round, not per answer. */
  #threshold = MOST
  #underway = 0
  /** Answers to ignore: their requests were sent before the window last shrank. */
  #known = 0
  #busyAtMs = 0

  /** No limit is in force. */
  get calm(): boolean {
    return this.#size === Number.POSITIVE_INFINITY
  }

  /** Admitted and not yet answered. */
  get underway(): number {
    return this.#underway
  }

  /** The window; infinite while calm. */
  get size(): number {
    return Math.floor(this.#size)
  }

  /** Connections broke: start limiting. */
  begin(nowMs: number): void {
    this.#size = FIRST_RELISTS
    this.#threshold = MOST
    this.#known = this.#underway
    this.#busyAtMs = nowMs
  }

  /** Whether another request may be admitted now. Each `take` needs a `settle`. */
  take(): boolean {
    if (this.#underway >= Math.floor(this.#size)) return false
    this.#underway++
    return true
  }

  settle(outcome: RelistOutcome): void {
    this.#underway--
    if (this.#known > 0) {
      this.#known--
      return
    }
    if (this.calm || outcome === 'given-up' || outcome === 'slow') return
    if (outcome === 'good') {
      this.#size = Math.min(MOST, this.#size + (this.#size < this.#threshold ? 1 : 1 / this.#size))
      return
    }
    this.#threshold = Math.max(FIRST_RELISTS, this.#size / 2)
    this.#size = this.#threshold
    this.#known = this.#underway
  }

  /** Call about every second. @param waiting number of waiters */
  tick(nowMs: number, waiting: number): void {
    if (this.calm) return
    if (waiting > 0) this.#busyAtMs = nowMs
    else if (nowMs - this.#busyAtMs >= CALM_MS) this.#size = Number.POSITIVE_INFINITY
  }
}
