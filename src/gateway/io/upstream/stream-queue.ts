// Requests that wait for a stream: shared out among their sources, bounded in number and bytes, and refused with the reason. Who holds
// how many streams is counted only while somebody waits, so that nobody pays for it otherwise.

import type { Charge, HeaderList, SharedFields, StreamEvents } from '../../../kit/api/stream.ts'
import { TurnQueue } from '../../../kit/core/queues/turn-queue.ts'
import type { WaitLimit, WaitRefusal } from '../../core/upstream/wait-refusal.ts'
import { type Carrier, type WaitingRoom, WaitingStream } from './waiting.ts'

/** Requests of one class to one endpoint that wait, most. */
export const MAX_WAITING_REQUESTS = 4096
/** Of their bodies, all together. */
export const MAX_WAITING_BYTES: number = 16 * 1024 * 1024
/**
 * A request that waits this long for a connection or a stream is refused: twice the connect timeout. Its client gets
 * a response rather than silence, and may retry later or elsewhere.
 */
export const LONGEST_WAIT_MS = 10_000

/** Of the spare streams that are free, one source takes no more than one in so many: those who come later find some, too. */
const SPARE_PART = 8

/** Streams for sources that hold less than their share while others hold all that there are. */
export interface SpareStreams extends Carrier {
  /** Whether any of them is free. */
  readonly hasRoom: boolean
  /** Whether a request may be opened: there are enough for what its source holds of them already. */
  admits(charge: Charge): boolean
}

/** Why somebody waits. */
export interface WaitReason {
  readonly limit: WaitLimit
  /** Until the turn of who comes now; 0 = not known. */
  readonly likelySeconds: number
}

export const NO_STREAM: WaitReason = { limit: 'upstream-wait', likelySeconds: 0 }

export class StreamQueue implements WaitingRoom {
  readonly #queue: TurnQueue<WaitingStream>
  readonly #holders: () => Iterable<Charge | undefined>
  /** Somebody waits, or has waited a moment ago: what each source holds is counted. */
  #contended = false

  /** @param holders of every stream that is open now, whose it is */
  constructor(
    holders: () => Iterable<Charge | undefined>,
    size: { readonly count: number; readonly bytes: number } = {
      count: MAX_WAITING_REQUESTS,
      bytes: MAX_WAITING_BYTES,
    },
  ) {
    this.#queue = new TurnQueue(size)
    this.#holders = holders
  }

  get count(): number {
    return this.#queue.count
  }

  /** A request that waits from now on. It may be refused at once, behind this call. */
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

  /** Somebody would have to wait: whether he holds less than his share of the streams. */
  isLight(charge: Charge): boolean {
    this.#count()
    return !this.#queue.holdsItsShare(charge.source)
  }

  /** Sends to spare streams whatever may go there. */
  sendLight(spare: SpareStreams): void {
    // Nobody is looked for where nothing is free: thousands may wait.
    while (this.#queue.count > 0 && spare.hasRoom) {
      const source = this.#queue.first((each, { charge }) => !this.#queue.isAtShare(each) && spare.admits(charge))
      if (source === undefined) return
      this.#queue.grant(source)?.send(spare)
    }
  }

  /** These streams are spare ones: whether nobody waits for those that are free. */
  hasRoom(free: number): boolean {
    return free > this.#queue.count
  }

  /**
   * These streams are spare ones: whether one more may be opened for a source.
   * @param free how many are
   */
  admits(charge: Charge, free: number): boolean {
    this.#count()
    const left = free - this.#queue.count
    const has = this.#queue.heldBy(charge.source) + this.#queue.waitingOf(charge.source)
    return left > 0 && (has === 0 || has * SPARE_PART < left)
  }

  /** Whose turn it is. Its stream has to be told with `opened`. */
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

  /** Streams have ended without being told. */
  recount(): void {
    if (!this.#contended) return
    this.#queue.forgetHeld()
    for (const charge of this.#holders()) if (charge !== undefined) this.#queue.hold(charge.source, charge.weight)
  }

  /** Everybody who waits, and no longer does. */
  takeAll(): WaitingStream[] {
    return this.#queue.takeAll()
  }

  /** @param why what they are told who waited in vain; undefined = it is because of the endpoint */
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

  /** One that waits is not to wait. Behind this call. */
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
