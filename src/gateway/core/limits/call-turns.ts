// Whose call to a cluster the gateway makes next. Sources take turns, so that a busy one does not keep out the others. A source
// that is alone may use nearly all of the capacity.

import { Budget } from '../../../kit/api/limits/budget.ts'
import { Queued, TurnQueue, type TurnSource } from '../../../kit/core/queues/turn-queue.ts'

/** clientConfig.qps and burst; a `qps` of 0 = not limited. */
export interface CallRate {
  readonly qps: number
  readonly burst: number
}

/** A call that asks for its turn. Exactly one of its functions is called, once. */
export abstract class Turn extends Queued {
  /** On whose behalf the call is made: an address or a user. */
  readonly source: string
  /** How many turns in a row its source has when others wait; at least 1. */
  readonly weight: number
  /** The longest that it waits, milliseconds. */
  readonly longestWaitMs: number

  constructor(source: string, weight: number, longestWaitMs: number) {
    super()
    this.source = source
    this.weight = weight
    this.longestWaitMs = longestWaitMs
  }

  /** `CallTurns.done` must be called when the call is over. */
  abstract granted(): void
  /**
   * @param retryAfterMs when another attempt is likely to succeed
   * @param atMost so many calls may be under way, and that is why; undefined = it is the rate
   */
  abstract refused(retryAfterMs: number, atMost: number | undefined): void
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

export class CallTurns {
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  /** Places reserved for sources with no call in flight. */
  readonly #kept: number
  /** Undefined until a rate is in force. */
  #budget: Budget | undefined
  /** Of the budget. */
  #rate: CallRate | undefined
  /** What a source holds is its calls in flight. */
  readonly #queue: TurnQueue<Turn> = new TurnQueue()
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
    return this.#queue.count
  }

  /** Calls that were granted and are not over. */
  get inFlight(): number {
    return this.#queue.held
  }

  /** @returns as `advance` */
  ask(turn: Turn, rate: CallRate, nowMs: number): number {
    this.#queue.add(turn, turn.source, turn.weight)
    const dueMs = this.advance(rate, nowMs)
    const expectedMs = this.#expectedMs(turn, rate)
    if (expectedMs > turn.longestWaitMs) this.#refuse(turn, expectedMs)
    else if (this.#queue.count > this.#maxWaiting) this.#refuse(this.#queue.lastOfLongest() ?? turn, this.#busyMs())
    return dueMs
  }

  /** A call of this source is over. @returns as `advance` */
  done(source: string, rate: CallRate, nowMs: number): number {
    this.#queue.release(source)
    this.#learn(nowMs)
    return this.advance(rate, nowMs)
  }

  /** The turn has waited too long. Does nothing when it no longer waits. */
  expire(turn: Turn, rate: CallRate): void {
    this.#refuse(turn, Math.max(this.#busyMs(), this.#expectedMs(turn, rate)))
  }

  /** Grants what is due. @returns milliseconds until this has to be called again; 0 = not before something changes */
  advance(rate: CallRate, nowMs: number): number {
    for (let source = this.#next(); source !== undefined; source = this.#next()) {
      const waitMs = this.#takeOrWaitMs(rate, nowMs)
      if (waitMs > 0) return waitMs
      this.#queue.hold(source.name, source.weight)
      this.#queue.grant(source)?.granted()
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
      this.#rate = { qps, burst }
    }
    return this.#budget.takeOrWaitMs(nowMs)
  }

  /** The first waiting source that may have another call in flight. */
  #next(): TurnSource | undefined {
    return this.#queue.held < this.#maxInFlight ? this.#queue.first(this.#admits) : undefined
  }

  readonly #admits = ({ held, weight }: TurnSource): boolean => {
    const free = this.#maxInFlight - this.#queue.held
    // Never more than are free, times its weight: whatever one source has in flight, there is room for others. Of the reserved places each
    // source gets one.
    return held === 0 || (held < free * weight && free > this.#kept)
  }

  /** How long this turn, the last of its source, waits if nobody else comes, milliseconds; 0 = it does not wait, or no rate is set. */
  #expectedMs({ waitsIn: source }: Turn, { qps }: CallRate): number {
    if (source === undefined || qps <= 0) return 0
    const ahead = Math.ceil(source.items.size / source.weight) * (this.#queue.sources - 1)
    return ((source.items.size + ahead) * 1000) / qps
  }

  #learn(nowMs: number): void {
    if (this.#queue.count === 0 || this.#ends === 0) {
      this.#ends = this.#queue.count === 0 ? 0 : 1
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
    return Math.min(LONGEST_RETRY_MS, Math.max(BUSY_RETRY_MS, this.#queue.count * this.#endEveryMs))
  }

  /** Does nothing when it does not wait. */
  #refuse(turn: Turn, retryAfterMs: number): void {
    if (turn.waitsIn === undefined) return
    // Where somebody could have the next place, it is the rate that they all wait for.
    const atMost = this.#next() === undefined ? this.#maxInFlight : undefined
    this.#queue.remove(turn)
    turn.refused(retryAfterMs, atMost)
  }
}
