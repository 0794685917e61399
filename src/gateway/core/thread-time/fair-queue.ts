// Deficit round robin over sources for one thread's CPU time (Shreedhar and Varghese 1995): each source runs for as long as its weight
// says. All unauthenticated sources share one turn. O(1) per piece of work.

import { Account, type Waiter } from './accounts.ts'
import { Fifo } from './fifo.ts'

/** Time per round of a source of weight 1, milliseconds. */
export const QUANTUM_MS = 0.125
/** A throttled source gets one turn in this time. Milliseconds. */
export const OWED_PAUSE_MS = 5

/** An entry of the round: one user, or all unauthenticated sources. */
interface Place {
  readonly weight: number
  creditMs: number
  /** When the credit was given. */
  creditAtMs: number
}

export class FairQueue {
  readonly #now: () => number
  /** Reports the milliseconds that a source has used. */
  readonly #onUsed: (account: Account, ms: number, nowMs: number) => void
  readonly #isOwedMuch: (account: Account) => boolean
  readonly #round = new Fifo<Place>()
  readonly #unknown = new Fifo<Account>()
  readonly #unknownPlace: Place = { weight: 1, creditMs: 0, creditAtMs: 0 }
  #length = 0

  /**
   * @param now milliseconds
   * @param isOwedMuch whether a source waits for so many answers that more of its requests would only delay those of others. Such a source
   * still gets a short turn now and then, because part of what it sends may be what those answers wait for. Default: never
   */
  constructor(
    now: () => number,
    onUsed: (account: Account, ms: number, nowMs: number) => void,
    isOwedMuch: (account: Account) => boolean = () => false,
  ) {
    this.#now = now
    this.#onUsed = onUsed
    this.#isOwedMuch = isOwedMuch
  }

  /** Number of waiting connections. */
  get length(): number {
    return this.#length
  }

  /** Queued behind everything else of this source. */
  add(account: Account, waiter: Waiter): void {
    this.#length++
    account.line.push(waiter)
    if (account.waits) return
    account.waits = true
    account.creditMs = 0
    if (account.known) this.#round.push(account)
    else {
      this.#unknown.push(account)
      if (this.#unknown.length > 1) return
      this.#unknownPlace.creditMs = 0
      this.#round.push(this.#unknownPlace)
    }
  }

  /**
   * Works, one source after the other, until `untilMs` or until nothing waits. Does at least one piece of work, unless all sources are
   * throttled.
   * @returns true if every waiting source is throttled; retry within `OWED_PAUSE_MS`
   */
  serve(untilMs: number): boolean {
    let nowMs = this.#now()
    let paused = 0
    do {
      const place = this.#round.first
      if (place === undefined) return false
      const account = place instanceof Account ? place : this.#unknown.first
      if (account === undefined) return false
      if (place.creditMs <= 0) {
        if (nowMs - place.creditAtMs < OWED_PAUSE_MS && this.#isOwedMuch(account)) {
          if (++paused >= this.#round.length) return true
          this.#next(place)
          continue
        }
        place.creditAtMs = nowMs
        place.creditMs = this.#round.length === 1 ? QUANTUM_MS : place.creditMs + QUANTUM_MS * place.weight
        // It has used more than its quantum: it pauses.
        if (place.creditMs <= 0) {
          this.#next(place)
          continue
        }
      }
      paused = 0
      const startMs = nowMs
      const left = this.#work(account, Math.min(untilMs, startMs + place.creditMs))
      nowMs = this.#now()
      place.creditMs -= nowMs - startMs
      this.#onUsed(account, nowMs - startMs, nowMs)
      this.#rotate(place, account, left)
    } while (nowMs < untilMs || paused > 0)
    return false
  }

  /** @returns whether the source has more work */
  #work(account: Account, untilMs: number): boolean {
    const waiter = account.line.shift()
    if (waiter?.work(untilMs) === true) account.line.push(waiter)
    else this.#length--
    if (account.line.length > 0) return true
    account.waits = false
    return false
  }

  #rotate(place: Place, account: Account, left: boolean): void {
    if (place === this.#unknownPlace) {
      // Others may have joined behind it meanwhile.
      this.#unknown.shift()
      if (left) this.#unknown.push(account)
      if (this.#unknown.length === 0) this.#round.shift()
      else this.#next(place)
    } else if (!left) this.#round.shift()
    else this.#next(place)
  }

  /** Ends its turn if its time is used up. Any overrun is taken from its next turn. */
  #next(place: Place): void {
    if (place.creditMs > 0) return
    this.#round.shift()
    this.#round.push(place)
  }
}
