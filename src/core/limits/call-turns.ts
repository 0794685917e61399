// Whose call to a cluster the gateway makes next: turns go round by source, so that nobody who asks much keeps out those who ask
// little. Who is alone may use nearly all there is.

import { createPace, type Pace, paceMs } from './pace.ts'

/** clientConfig.qps and burst; a `qps` of 0 is no limit. */
export interface CallRate {
  readonly qps: number
  readonly burst: number
}

/** A call that asks for its turn. Exactly one of its functions is called, once. */
export interface Turn {
  /** Who has the call made: an address or a user. */
  readonly source: string
  /** The longest that it waits, milliseconds. */
  readonly longestWaitMs: number
  /** `CallTurns.done` has to be told when its call is over. */
  granted(): void
  /** @param retryAfterMs when another try may well succeed */
  refused(retryAfterMs: number): void
}

/** What the gateway has under way at a cluster at a time, of one kind of call and in one thread. */
export const MAX_CALLS_IN_FLIGHT = 64
/** One place of so many is kept for sources that have nothing under way: few sources that ask much do not take all. */
const ONE_KEPT_OF = 8
/** What waits for that, of all sources together. */
export const MAX_CALLS_WAITING = 1024
/** When others are in the way, and no rate says when there will be room. */
const BUSY_RETRY_MS = 1000

export class CallTurns {
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  /** Places for sources that have nothing under way. */
  readonly #kept: number
  readonly #pace: Pace = createPace()
  /** Who waits, the source whose turn is next first. */
  readonly #waiting = new Map<string, Turn[]>()
  readonly #inFlight = new Map<string, number>()
  #waitingCount = 0
  #inFlightCount = 0

  constructor(maxInFlight: number = MAX_CALLS_IN_FLIGHT, maxWaiting: number = MAX_CALLS_WAITING) {
    this.#maxInFlight = maxInFlight
    this.#kept = Math.floor(maxInFlight / ONE_KEPT_OF)
    this.#maxWaiting = maxWaiting
  }

  /** Turns that wait. */
  get waiting(): number {
    return this.#waitingCount
  }

  /** Calls that were granted and are not over. */
  get inFlight(): number {
    return this.#inFlightCount
  }

  /** @returns as `advance` */
  ask(turn: Turn, rate: CallRate, nowMs: number): number {
    const own = this.#waiting.get(turn.source)
    if (own === undefined) this.#waiting.set(turn.source, [turn])
    else own.push(turn)
    this.#waitingCount++
    const dueMs = this.advance(rate, nowMs)
    const expectedMs = this.#expectedMs(turn.source, rate)
    if (expectedMs > turn.longestWaitMs) this.#refuse(turn, expectedMs)
    else if (this.#waitingCount > this.#maxWaiting) this.#refuse(this.#lastOfLongest() ?? turn, BUSY_RETRY_MS)
    return dueMs
  }

  /** A call of this source is over. @returns as `advance` */
  done(source: string, rate: CallRate, nowMs: number): number {
    const left = (this.#inFlight.get(source) ?? 0) - 1
    if (left > 0) this.#inFlight.set(source, left)
    else this.#inFlight.delete(source)
    this.#inFlightCount--
    return this.advance(rate, nowMs)
  }

  /** It has waited too long. Nothing happens when it does not wait any more. */
  expire(turn: Turn, rate: CallRate): void {
    this.#refuse(turn, Math.max(BUSY_RETRY_MS, this.#expectedMs(turn.source, rate)))
  }

  /** Grants what is due. @returns milliseconds until this has to be called again; 0 = not before something changes */
  advance({ qps, burst }: CallRate, nowMs: number): number {
    for (let source = this.#next(); source !== undefined; source = this.#next()) {
      const waitMs = paceMs(this.#pace, qps, burst, nowMs)
      if (waitMs > 0) return waitMs
      this.#grantFirst(source)
    }
    return 0
  }

  /** Of the sources that wait, the first that may have another call under way. */
  #next(): string | undefined {
    const free = this.#maxInFlight - this.#inFlightCount
    if (free <= 0) return undefined
    for (const source of this.#waiting.keys()) {
      const own = this.#inFlight.get(source) ?? 0
      // As many as are free, and no more: whatever one source has under way, there is room for others. Of the last few each gets one.
      if (own === 0 || (own < free && free > this.#kept)) return source
    }
    return undefined
  }

  #grantFirst(source: string): void {
    const turns = this.#waiting.get(source)
    const turn = turns?.shift()
    if (turns === undefined || turn === undefined) return
    this.#waitingCount--
    // Behind all the others.
    this.#waiting.delete(source)
    if (turns.length > 0) this.#waiting.set(source, turns)
    this.#inFlight.set(source, (this.#inFlight.get(source) ?? 0) + 1)
    this.#inFlightCount++
    turn.granted()
  }

  /** How long the last turn of a source waits if nobody else comes, milliseconds; 0 = none waits, or no rate is set. */
  #expectedMs(source: string, { qps }: CallRate): number {
    const turns = this.#waiting.get(source)
    if (turns === undefined || qps <= 0) return 0
    return (turns.length * this.#waiting.size * 1000) / qps
  }

  #lastOfLongest(): Turn | undefined {
    let longest: Turn[] = []
    // Of sources that have as many, the one that is furthest from its turn: nobody is driven out by those who came behind him.
    for (const turns of this.#waiting.values()) if (turns.length >= longest.length) longest = turns
    return longest.at(-1)
  }

  #refuse(turn: Turn, retryAfterMs: number): void {
    const turns = this.#waiting.get(turn.source)
    const index = turns?.lastIndexOf(turn) ?? -1
    if (turns === undefined || index < 0) return
    turns.splice(index, 1)
    if (turns.length === 0) this.#waiting.delete(turn.source)
    this.#waitingCount--
    turn.refused(retryAfterMs)
  }
}
