// Whose call to a cluster the gateway makes next. Sources take turns, so that a busy one does not keep out the others. A source
// that is alone may use nearly all of the capacity.

import { Budget } from '../../api/limits/budget.ts'

/** clientConfig.qps and burst; a `qps` of 0 = not limited. */
export interface CallRate {
  readonly qps: number
  readonly burst: number
}

/** A call that asks for its turn. Exactly one of its functions is called, once. */
export interface Turn {
  /** On whose behalf the call is made: an address or a user. */
  readonly source: string
  /** How many turns in a row its source has when others wait; at least 1. Default 1. */
  readonly weight?: number
  /** The longest that it waits, milliseconds. */
  readonly longestWaitMs: number
  /** `CallTurns.done` must be called when the call is over. */
  granted(): void
  /**
   * @param retryAfterMs when another attempt is likely to succeed
   * @param atMost so many calls may be under way, and that is why; undefined = it is the rate
   */
  refused(retryAfterMs: number, atMost: number | undefined): void
}

/** Calls in flight to one cluster, of one kind and in one thread. */
export const MAX_CALLS_IN_FLIGHT = 64
/** One place in this many is reserved for sources with no call in flight: a few busy sources cannot take all of them. */
const ONE_KEPT_OF = 8
/** Calls that wait for a place, of all sources together. */
const MAX_CALLS_WAITING = 1024
/** When others are in the way, and neither a rate nor the calls before say when there will be room. */
const BUSY_RETRY_MS = 1000
/** The longest Retry-After. */
const LONGEST_RETRY_MS = 15_000
/** The ends of calls are counted for this long at least, because calls that begin together end together. */
const COUNT_MS = 1000

/** What waits of one source. */
interface Queue {
  readonly turns: Turn[]
  readonly weight: number
  /** Turns that it still has before the next source. */
  left: number
}

export class CallTurns {
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  /** Places reserved for sources with no call in flight. */
  readonly #kept: number
  /** Undefined until a rate is in force. */
  #budget: Budget | undefined
  /** Of the budget. */
  #rate: CallRate | undefined
  /** The waiting turns by source; the source whose turn is next comes first. */
  readonly #waiting = new Map<string, Queue>()
  readonly #inFlight = new Map<string, number>()
  #waitingCount = 0
  #inFlightCount = 0
  /** On average, between the ends of two calls while others waited; 0 = not known. */
  #endEveryMs = 0
  /** Ends since then, while others waited. */
  #ends = 0
  #countedSinceMs = 0

  /** @param maxInFlight infinite = any number, bounded by a rate only */
  constructor(maxInFlight: number = MAX_CALLS_IN_FLIGHT, maxWaiting: number = MAX_CALLS_WAITING) {
    this.#maxInFlight = maxInFlight
    this.#kept = Number.isFinite(maxInFlight) ? Math.floor(maxInFlight / ONE_KEPT_OF) : 0
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
    const { source, weight = 1 } = turn
    const own = this.#waiting.get(source)
    if (own === undefined) this.#waiting.set(source, { turns: [turn], weight, left: weight })
    else own.turns.push(turn)
    this.#waitingCount++
    const dueMs = this.advance(rate, nowMs)
    const expectedMs = this.#expectedMs(turn.source, rate)
    if (expectedMs > turn.longestWaitMs) this.#refuse(turn, expectedMs)
    else if (this.#waitingCount > this.#maxWaiting) this.#refuse(this.#lastOfLongest() ?? turn, this.#busyMs())
    return dueMs
  }

  /** A call of this source is over. @returns as `advance` */
  done(source: string, rate: CallRate, nowMs: number): number {
    const left = (this.#inFlight.get(source) ?? 0) - 1
    if (left > 0) this.#inFlight.set(source, left)
    else this.#inFlight.delete(source)
    this.#inFlightCount--
    this.#learn(nowMs)
    return this.advance(rate, nowMs)
  }

  /** The turn has waited too long. Does nothing when it no longer waits. */
  expire(turn: Turn, rate: CallRate): void {
    this.#refuse(turn, Math.max(this.#busyMs(), this.#expectedMs(turn.source, rate)))
  }

  /** Grants what is due. @returns milliseconds until this has to be called again; 0 = not before something changes */
  advance(rate: CallRate, nowMs: number): number {
    for (let source = this.#next(); source !== undefined; source = this.#next()) {
      const waitMs = this.#takeOrWaitMs(rate, nowMs)
      if (waitMs > 0) return waitMs
      this.#grantFirst(source)
    }
    return 0
  }

  #takeOrWaitMs(rate: CallRate, nowMs: number): number {
    const { qps, burst } = rate
    if (qps <= 0) return 0
    if (this.#budget === undefined || qps !== this.#rate?.qps || burst !== this.#rate.burst) {
      const size = { burst: Math.max(1, burst), perSecond: qps }
      this.#budget?.resize(size, nowMs)
      this.#budget ??= new Budget(size, nowMs)
      this.#rate = rate
    }
    return this.#budget.takeOrWaitMs(nowMs)
  }

  /** The first waiting source that may have another call in flight. */
  #next(): string | undefined {
    const free = this.#maxInFlight - this.#inFlightCount
    if (free <= 0) return undefined
    for (const [source, { weight }] of this.#waiting) {
      const own = this.#inFlight.get(source) ?? 0
      // Never more than are free, times its weight: whatever one source has in flight, there is room for others. Of the reserved places each
      // source gets one.
      if (own === 0 || (own < free * weight && free > this.#kept)) return source
    }
    return undefined
  }

  #grantFirst(source: string): void {
    const queue = this.#waiting.get(source)
    const turn = queue?.turns.shift()
    if (queue === undefined || turn === undefined) return
    this.#waitingCount--
    queue.left--
    if (queue.turns.length === 0) this.#waiting.delete(source)
    else if (queue.left <= 0) {
      // Behind all the others.
      this.#waiting.delete(source)
      this.#waiting.set(source, queue)
      queue.left = queue.weight
    }
    this.#inFlight.set(source, (this.#inFlight.get(source) ?? 0) + 1)
    this.#inFlightCount++
    turn.granted()
  }

  /** How long the last turn of a source waits if nobody else comes, milliseconds; 0 = none waits, or no rate is set. */
  #expectedMs(source: string, { qps }: CallRate): number {
    const queue = this.#waiting.get(source)
    if (queue === undefined || qps <= 0) return 0
    const ahead = Math.ceil(queue.turns.length / queue.weight) * (this.#waiting.size - 1)
    return ((queue.turns.length + ahead) * 1000) / qps
  }

  #learn(nowMs: number): void {
    if (this.#waitingCount === 0 || this.#ends === 0) {
      this.#ends = this.#waitingCount === 0 ? 0 : 1
      this.#countedSinceMs = nowMs
      return
    }
    const sinceMs = nowMs - this.#countedSinceMs
    if (sinceMs >= COUNT_MS) {
      this.#endEveryMs = sinceMs / this.#ends
      this.#ends = 0
      this.#countedSinceMs = nowMs
    }
    this.#ends++
  }

  /** How long it takes until those who wait now have had their turns. */
  #busyMs(): number {
    return Math.min(LONGEST_RETRY_MS, Math.max(BUSY_RETRY_MS, this.#waitingCount * this.#endEveryMs))
  }

  #lastOfLongest(): Turn | undefined {
    let longest: Turn[] = []
    // Among equals, the source furthest from its turn: a newcomer cannot displace those who came before it.
    for (const { turns } of this.#waiting.values()) if (turns.length >= longest.length) longest = turns
    return longest.at(-1)
  }

  #refuse(turn: Turn, retryAfterMs: number): void {
    const turns = this.#waiting.get(turn.source)?.turns
    const index = turns?.lastIndexOf(turn) ?? -1
    if (turns === undefined || index < 0) return
    // Where somebody could have the next place, it is the rate that they all wait for.
    const atMost = this.#next() === undefined ? this.#maxInFlight : undefined
    turns.splice(index, 1)
    if (turns.length === 0) this.#waiting.delete(turn.source)
    this.#waitingCount--
    turn.refused(retryAfterMs, atMost)
  }
}
