// Fair queue for the calls that the gateway itself makes to a cluster. Sources take turns, so that a busy one can't starve the others; a
// source that is alone may use nearly all of the capacity.

import { Budget } from '../../../kit/api/limits/budget.ts'
import { Queued, type QueueSource, RoundRobinQueue } from '../../../kit/core/queues/round-robin-queue.ts'

/** clientConfig.qps and burst; a `qps` of 0 means no limit. */
export interface CallRate {
  readonly qps: number
  readonly burst: number
}

/** A call waiting for its turn. Exactly one of its functions is called, once. */
export abstract class Turn extends Queued {
  /** On whose behalf the call is made: an address or a user. */
  readonly source: string
  /** How many turns in a row its source gets while others wait; at least 1. */
  readonly weight: number
  /** Maximum wait, milliseconds. */
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
   * @param retryAfterMs when a retry is likely to succeed
   * @param atMost the limit on calls in flight, if that was the reason; undefined = the rate was
   */
  abstract refused(retryAfterMs: number, atMost: number | undefined): void
}

/** Calls in flight to one cluster, per kind and thread. */
export const MAX_CALLS_IN_FLIGHT = 64
/** One slot in this many is reserved for sources with no call in flight, so that a few busy sources can't take all of them. */
const ONE_KEPT_OF = 8
/** Calls waiting for a slot, over all sources. */
const MAX_CALLS_WAITING = 1024
/** Used when neither the rate nor recent calls tell when a slot will be free. */
const BUSY_RETRY_MS = 1000
/** The longest Retry-After. */
const LONGEST_RETRY_MS = 15_000
/** Completions are counted for at least this long, because calls that start together end together. */
const COUNT_MS = 1000

export class CallTurns {
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  /** Slots reserved for sources with no call in flight. */
  readonly #kept: number
  /** Undefined until a rate is set. */
  #budget: Budget | undefined
  /** The rate that #budget was made for. */
  #rate: CallRate | undefined
  /** A source's holding is its number of calls in flight. */
  readonly #queue: RoundRobinQueue<Turn> = new RoundRobinQueue()
  /** Average time between two completions while others waited; 0 = unknown. */
  #endEveryMs = 0
  /** Completions since then, while others waited. */
  #ends = 0
  #countedSinceMs = 0

  /** @param maxInFlight Infinity = limited by the rate only */
  constructor(maxInFlight: number = MAX_CALLS_IN_FLIGHT, maxWaiting: number = MAX_CALLS_WAITING) {
    this.#maxInFlight = maxInFlight
    this.#kept = Number.isFinite(maxInFlight) ? Math.floor(maxInFlight / ONE_KEPT_OF) : 0
    this.#maxWaiting = maxWaiting
  }

  /** Number of turns that wait. */
  get waiting(): number {
    return this.#queue.count
  }

  /** Calls granted and not yet done. */
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

  /** A call of this source has ended. @returns as `advance` */
  done(source: string, rate: CallRate, nowMs: number): number {
    this.#queue.release(source)
    this.#learn(nowMs)
    return this.advance(rate, nowMs)
  }

  /** The turn has timed out. No-op if it no longer waits. */
  expire(turn: Turn, rate: CallRate): void {
    this.#refuse(turn, Math.max(this.#busyMs(), this.#expectedMs(turn, rate)))
  }

  /** Grants what is due. @returns milliseconds until the next call is needed; 0 = not before something changes */
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
  #next(): QueueSource | undefined {
    return this.#queue.held < this.#maxInFlight ? this.#queue.first(this.#admits) : undefined
  }

  readonly #admits = ({ held, weight }: QueueSource): boolean => {
    const free = this.#maxInFlight - this.#queue.held
    // At most the number of free slots times its weight, so there is always room for others. Each source gets one reserved slot.
    return held === 0 || (held < free * weight && free > this.#kept)
  }

  /** How long this turn, the last of its source, would wait if no others arrived, milliseconds; 0 = no wait, or no rate is set. */
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

  /** How long it takes to serve all current waiters. */
  #busyMs(): number {
    return Math.min(LONGEST_RETRY_MS, Math.max(BUSY_RETRY_MS, this.#queue.count * this.#endEveryMs))
  }

  /** No-op if it does not wait. */
  #refuse(turn: Turn, retryAfterMs: number): void {
    if (turn.waitsIn === undefined) return
    // If a source could take the next slot, the rate is what they all wait for.
    const atMost = this.#next() === undefined ? this.#maxInFlight : undefined
    this.#queue.remove(turn)
    turn.refused(retryAfterMs, atMost)
  }
}
