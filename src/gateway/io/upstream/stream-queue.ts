// Requests waiting for a stream: shared fairly among sources, bounded in number and bytes, and refused with a reason. Streams held per source are
// counted only under contention, so that there is no cost otherwise.

import type { Charge, HeaderList, SharedFields, StreamEvents } from '../../../kit/api/stream.ts'
import { RoundRobinQueue } from '../../../kit/core/queues/round-robin-queue.ts'
import type { WaitLimit, WaitRefusal } from '../../core/upstream/wait-refusal.ts'
import { type Carrier, type WaitingRoom, WaitingStream } from './waiting.ts'

/** Maximum waiting requests of one class per endpoint. */
export const MAX_WAITING_REQUESTS = 4096
/** Maximum total of their bodies. */
export const MAX_WAITING_BYTES: number = 16 * 1024 * 1024
/**
 * A request that waits this long for a connection or stream is refused: twice the connect timeout. Its client gets a response rather than silence,
 * and may retry later or elsewhere.
 */
export const LONGEST_WAIT_MS = 10_000

/** Maximum fraction of the free spare streams for one source: one in this many, so that later sources find some, too. */
const SPARE_PART = 8

/** Streams for sources below their share while others hold all regular ones. */
export interface SpareStreams extends Carrier {
  /** Whether any is free. */
  readonly hasRoom: boolean
  /** Whether one more request may be opened: enough are free, given how many its source holds. */
  admits(charge: Charge): boolean
}

/** Why a request waits. */
interface WaitReason {
  readonly limit: WaitLimit
  /** Expected wait of a new request; 0 = unknown. */
  readonly likelySeconds: number
}

export const NO_STREAM: WaitReason = { limit: 'upstream-wait', likelySeconds: 0 }

export class StreamQueue implements WaitingRoom {
  readonly #queue: RoundRobinQueue<WaitingStream>
  readonly #holders: () => Iterable<Charge | undefined>
  /** Requests are waiting, or were a moment ago: streams held per source are counted. */
  #contended = false

  /** @param holders the source of every open stream */
  constructor(
    holders: () => Iterable<Charge | undefined>,
    size: { readonly count: number; readonly bytes: number } = {
      count: MAX_WAITING_REQUESTS,
      bytes: MAX_WAITING_BYTES,
    },
  ) {
    this.#queue = new RoundRobinQueue(size)
    this.#holders = holders
  }

  get count(): number {
    return this.#queue.count
  }

  /** Enqueues a request. It may be refused right after this call. */
  wait(
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
  ): WaitingStream {
    this.#count()
    const stream = new WaitingStream(head, shared, end, events, charge, this, performance.now())
    this.#queue.add(stream, charge.source, charge.weight)
    this.#refuseOverflow(stream, 'upstream-requests')
    return stream
  }

  #count(): void {
    if (this.#contended) return
    this.#contended = true
    this.recount()
  }

  // === spare streams ===

  /** A request would have to wait: whether its source is below its share of the streams. */
  isLight(charge: Charge): boolean {
    this.#count()
    return !this.#queue.holdsItsShare(charge.source)
  }

  /** Sends to the spare streams whatever is eligible. */
  sendLight(spare: SpareStreams): void {
    // Don't search unless streams are free: thousands may wait.
    while (this.#queue.count > 0 && spare.hasRoom) {
      const source = this.#queue.first((each, { charge }) => !this.#queue.isAtShare(each) && spare.admits(charge))
      if (source === undefined) return
      this.#queue.grant(source)?.send(spare)
    }
  }

  /** For spare streams: whether free ones have no waiters. */
  hasRoom(free: number): boolean {
    return free > this.#queue.count
  }

  /**
   * For spare streams: whether a source may open one more.
   * @param free number of free streams
   */
  admits(charge: Charge, free: number): boolean {
    this.#count()
    const left = free - this.#queue.count
    const has = this.#queue.heldBy(charge.source) + this.#queue.waitingOf(charge.source)
    return left > 0 && (has === 0 || has * SPARE_PART < left)
  }

  /** The next request. Report its stream with `opened`. */
  next(): WaitingStream | undefined {
    return this.#queue.next()
  }

  /** A stream was opened. */
  opened(charge: Charge): void {
    if (this.#contended) this.#queue.hold(charge.source, charge.weight)
  }

  /** A stream has ended. */
  ended(charge: Charge | undefined): void {
    if (this.#contended && charge !== undefined) this.#queue.release(charge.source)
  }

  /** Streams have ended without `ended`. */
  recount(): void {
    if (!this.#contended) return
    this.#queue.forgetHeld()
    for (const charge of this.#holders()) if (charge !== undefined) this.#queue.hold(charge.source, charge.weight)
  }

  /** Removes and returns all waiting requests. */
  takeAll(): WaitingStream[] {
    return this.#queue.takeAll()
  }

  /** @param why reason for requests that time out; undefined = the endpoint */
  tick(nowMs: number, why: WaitReason | undefined): void {
    for (const first of this.#queue.firsts()) {
      for (let stream: WaitingStream | undefined = first; stream !== undefined; ) {
        if (nowMs - stream.sinceMs < LONGEST_WAIT_MS) break
        const after: WaitingStream | undefined = stream.after instanceof WaitingStream ? stream.after : undefined
        if (why !== undefined) stream.refusal = this.#refusal(stream.charge, why.limit, why.likelySeconds)
        this.#queue.remove(stream)
        stream.refuse(why?.limit === 'relists' ? 'overloaded' : 'refused')
        stream = after
      }
    }
    if (this.#queue.count > 0 || !this.#contended) return
    this.#contended = false
    this.#queue.forgetHeld()
  }

  /** Refuses a waiting request, after this call. */
  refuse(stream: WaitingStream, limit: WaitLimit, likelySeconds: number): void {
    stream.refusal = this.#refusal(stream.charge, limit, likelySeconds)
    if (this.#queue.remove(stream)) queueMicrotask(() => stream.refuse('overloaded'))
  }

  onAbandoned(stream: WaitingStream): void {
    this.#queue.remove(stream)
  }

  onGrown(stream: WaitingStream, bytes: number): void {
    this.#queue.grow(stream, bytes)
    this.#refuseOverflow(stream, 'upstream-bytes')
  }

  #refuseOverflow(latest: WaitingStream, limit: WaitLimit): void {
    for (let loser = this.#queue.overflow(latest); loser !== undefined; loser = this.#queue.overflow(latest)) {
      const stream = loser
      stream.refusal = this.#refusal(stream.charge, limit)
      queueMicrotask(() => stream.refuse('overloaded'))
    }
  }

  #refusal(charge: Charge, limit: WaitLimit, likelySeconds = 0): WaitRefusal {
    const waiting = this.#queue.waitingOf(charge.source)
    return { limit, waiting, held: this.#queue.heldBy(charge.source), likelySeconds: Math.ceil(likelySeconds) }
  }
}
