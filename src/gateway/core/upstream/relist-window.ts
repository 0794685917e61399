// How many lists and watches may be opened at once after the connections to a cluster broke: thousands of clients come back together, and
// a kube-apiserver that has just started would be overloaded by what they ask. Grows with each answer, as the congestion window of
// TCP (RFC 5681), so that the server's own answers set the pace; without limit while nothing has broken.

/** At the beginning, and the least. Of one thread. */
export const FIRST_RELISTS = 8
/** More than this is as good as no limit. */
const MOST = 4096
/** An answer that takes longer says that the server has enough to do. */
export const SLOW_ANSWER_MS = 1_000
/** The limit ends when nobody has waited for this long. */
const CALM_MS = 5_000

/** How a request that was let in ended: answered in time, answered late, refused by 429 or 5xx or not answered at all, or cancelled. */
export type RelistOutcome = 'good' | 'slow' | 'overload' | 'given-up'

export class RelistWindow {
  #size = Number.POSITIVE_INFINITY
  /** Above this it grows by one in each round, not with each answer. */
  #threshold = MOST
  #underway = 0
  /** Answers that tell nothing new: they were asked for before the window was last made smaller. */
  #known = 0
  #busyAtMs = 0

  /** Everybody may. */
  get calm(): boolean {
    return this.#size === Number.POSITIVE_INFINITY
  }

  /** Let in and not answered. */
  get underway(): number {
    return this.#underway
  }

  /** How many may be under way; infinite while calm. */
  get size(): number {
    return Math.floor(this.#size)
  }

  /** Connections broke: from here on they are let in one after the other. */
  begin(nowMs: number): void {
    this.#size = FIRST_RELISTS
    this.#threshold = MOST
    this.#known = this.#underway
    this.#busyAtMs = nowMs
  }

  /** Whether another one may be let in now. It has to be given back by `settle`. */
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

  /** Call it about every second. @param waiting how many want to be let in */
  tick(nowMs: number, waiting: number): void {
    if (this.calm) return
    if (waiting > 0) this.#busyAtMs = nowMs
    else if (nowMs - this.#busyAtMs >= CALM_MS) this.#size = Number.POSITIVE_INFINITY
  }
}
