// Whose request has probably ended a connection to a server: the server says only an error code and the last stream that it has looked at.

import type { Charge } from '../api/ports/stream.ts'
import { ENHANCE_YOUR_CALM } from './frames.ts'

/** Streams, and resets, that are remembered. A power of two. */
const REMEMBERED = 16
/** What is older has nothing to do with it. */
const RECENT_MS = 2_000

export class Suspects {
  // Rings: the last streams that were opened, and the last that we have reset.
  readonly #ids = new Array<number>(REMEMBERED).fill(0)
  readonly #openedMs = new Array<number>(REMEMBERED).fill(0)
  readonly #openedFor = new Array<Charge | undefined>(REMEMBERED).fill(undefined)
  readonly #resetMs = new Array<number>(REMEMBERED).fill(0)
  readonly #resetOf = new Array<Charge | undefined>(REMEMBERED).fill(undefined)
  #opened = 0
  #reset = 0

  onOpened(id: number, charge: Charge | undefined, nowMs: number): void {
    const at = this.#opened++ & (REMEMBERED - 1)
    this.#ids[at] = id
    this.#openedMs[at] = nowMs
    this.#openedFor[at] = charge
  }

  onReset(charge: Charge | undefined, nowMs: number): void {
    const at = this.#reset++ & (REMEMBERED - 1)
    this.#resetMs[at] = nowMs
    this.#resetOf[at] = charge
  }

  /** The peer has ended the connection with an error. Go's server names the stream of the frame that it could not take, if it is the last. */
  ofGoaway(lastStream: number, code: number, nowMs: number): Charge[] {
    const reset = this.#recent(this.#resetOf, this.#resetMs, nowMs)
    if (code === ENHANCE_YOUR_CALM && reset.length > 0) return reset
    const at = this.#ids.indexOf(lastStream)
    const last = this.#openedFor[at]
    const isRecent = nowMs - (this.#openedMs[at] ?? 0) <= RECENT_MS
    return last !== undefined && isRecent ? [last] : this.ofLoss(nowMs)
  }

  /** The connection was closed silently: everybody who has just opened a stream. */
  ofLoss(nowMs: number): Charge[] {
    return this.#recent(this.#openedFor, this.#openedMs, nowMs)
  }

  #recent(charges: readonly (Charge | undefined)[], atMs: readonly number[], nowMs: number): Charge[] {
    const recent: Charge[] = []
    for (const [i, charge] of charges.entries())
      if (charge !== undefined && nowMs - (atMs[i] ?? 0) <= RECENT_MS) recent.push(charge)
    return recent
  }
}
