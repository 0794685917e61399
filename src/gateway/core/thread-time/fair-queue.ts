// Whose work is next, when more of it waits than a thread does at once: sources in turn, each for as long as its weight says (deficit round
// robin, Shreedhar and Varghese 1995); those that were not authenticated share the turn of one. O(1) for each piece of work.

import { Account, type Waiter } from './accounts.ts'
import { Fifo } from './fifo.ts'

/** Time of a source of weight 1 in a round, milliseconds. */
export const QUANTUM_MS = 0.125
/** A source that is owed much gets a turn once in this time. Milliseconds. */
export const OWED_PAUSE_MS = 5

/** A place in the round: of a user, or of all that are unknown. */
interface Place {
  readonly weight: number
  creditMs: number
  /** When it got that. */
  creditAtMs: number
}

export class FairQueue {
  readonly #now: () => number
  /** Milliseconds that a source has used. */
  readonly #onUsed: (account: Account, ms: number, nowMs: number) => void
  readonly #isOwedMuch: (account: Account) => boolean
  readonly #round = new Fifo<Place>()
  readonly #unknown = new Fifo<Account>()
  readonly #unknownPlace: Place = { weight: 1, creditMs: 0, creditAtMs: 0 }
  #length = 0

  /**
   * @param now milliseconds
   * @param isOwedMuch whether a source waits for so many answers that more requests of it would only make others wait for theirs. Then it
   *   still gets a little now and then, because some of what it sends may be what those answers wait for. Default: no
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

  /** Connections that wait. */
  get length(): number {
    return this.#length
  }

  /** Behind whatever of this source waits already. */
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
   * Works, one source after the other, until `untilMs` or until nothing waits. At least one piece of work is done, unless all are owed much.
   * @returns whether it ended because all that wait are owed much: they go on in `OWED_PAUSE_MS` at most
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
        // It has used more than a round gives: it pauses.
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

  /** @returns whether the source has more */
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
      // Others may have joined meanwhile, behind it.
      this.#unknown.shift()
      if (left) this.#unknown.push(account)
      if (this.#unknown.length === 0) this.#round.shift()
      else this.#next(place)
    } else if (!left) this.#round.shift()
    else this.#next(place)
  }

  /** Its turn is over when its time is. What it used beyond it is taken from the next one. */
  #next(place: Place): void {
    if (place.creditMs > 0) return
    this.#round.shift()
    this.#round.push(place)
  }
}
