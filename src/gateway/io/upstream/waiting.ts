// A request waiting for a connection; its body is buffered until then.

import type { Charge, HeaderList, ResetReason, SharedFields, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import { Queued } from '../../../kit/core/queues/round-robin-queue.ts'
import { BodyPieces } from '../../../kube/core/answers/body-pieces.ts'
import type { WaitRefusal } from '../../core/upstream/wait-refusal.ts'

/** Can send it: an HTTP/2 connection, or the HTTP/1.1 pool. */
export interface Carrier {
  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents, charge: Charge): Stream
}

/** The queue it waits in. */
export interface WaitingRoom {
  /** It was cancelled. */
  onAbandoned(stream: WaitingStream): void
  /** It buffers this much more of its body. */
  onGrown(stream: WaitingStream, bytes: number): void
}

const EMPTY = Buffer.alloc(0)
const NO_FIELDS: HeaderList = []
const NO_PIECES: readonly Buffer[] = []

export class WaitingStream extends Queued implements MayWait {
  readonly charge: Charge
  /** When it was opened, from `performance.now()`. */
  readonly sinceMs: number
  /** The carrier for its turn, if that depends on the request. */
  carrier: Carrier | undefined = undefined
  /** Empty once it is sent: a watch lasts for hours. */
  #head: HeaderList
  readonly #shared: SharedFields | undefined
  /** The request has no body. */
  readonly #end: boolean
  readonly #events: StreamEvents
  readonly #room: WaitingRoom
  #stream: Stream | undefined
  #refusal: WaitRefusal | undefined
  #body: BodyPieces | undefined
  #bodyEnded = false
  #trailers: HeaderList | undefined
  #over = false

  constructor(
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
    room: WaitingRoom,
    sinceMs: number,
  ) {
    super()
    this.charge = charge
    this.sinceMs = sinceMs
    this.#head = head
    this.#shared = shared
    this.#end = end
    this.#events = events
    this.#room = room
  }

  /** Sends the request. Not for a stream that was reset. */
  send(carrier: Carrier): void {
    if (this.#over || this.#stream !== undefined) return
    const stream = carrier.open(this.#head, this.#shared, this.#end, this.#events, this.charge)
    this.#stream = stream
    this.#head = NO_FIELDS
    const pieces = this.#body?.take() ?? NO_PIECES
    this.#body = undefined
    this.waitingBytes = 0
    const last = pieces.length - 1
    const endsWithPiece = this.#bodyEnded && this.#trailers === undefined
    for (let i = 0; i <= last; i++) stream.body(pieces[i] ?? EMPTY, endsWithPiece && i === last)
    if (this.#trailers !== undefined) stream.trailers(this.#trailers)
    else if (endsWithPiece && last < 0) stream.body(EMPTY, true)
    this.#trailers = undefined
  }

  /** Refuses the request unsent. Never called inside `open()` or `body()`: the caller does not have the stream yet, or does not expect it. */
  refuse(reason: ResetReason = 'refused'): void {
    if (this.#over || this.#stream !== undefined) return
    this.#over = true
    this.#forget()
    this.#events.onReset(reason)
  }

  /** Set if it is refused because of other requests' shares. */
  get refusal(): WaitRefusal | undefined {
    return this.#refusal ?? waitRefusal(this.#stream)
  }

  set refusal(refusal: WaitRefusal) {
    this.#refusal = refusal
  }

  get queued(): number {
    return this.#stream?.queued ?? this.waitingBytes
  }

  headers(_list: HeaderList, _end: boolean): void {
    // send() sends the request head.
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#stream !== undefined) {
      this.#stream.body(chunk, end)
      return
    }
    if (this.#over || this.#bodyEnded || this.#end) return
    this.#body ??= new BodyPieces()
    this.#body.add(chunk)
    this.#bodyEnded = end
    this.#room.onGrown(this, chunk.length)
  }

  trailers(list: HeaderList): void {
    if (this.#stream !== undefined) {
      this.#stream.trailers(list)
      return
    }
    if (this.#over || this.#bodyEnded || this.#end) return
    this.#bodyEnded = true
    this.#trailers = list
  }

  credit(bytes: number): void {
    this.#stream?.credit(bytes)
  }

  reset(reason: ResetReason): void {
    if (this.#stream !== undefined) {
      this.#stream.reset(reason)
      return
    }
    if (this.#over) return
    this.#over = true
    this.#room.onAbandoned(this)
    this.#forget()
  }

  #forget(): void {
    this.#body = undefined
    this.waitingBytes = 0
    this.#trailers = undefined
  }
}

/** Why a stream was refused; undefined = not because of other requests' shares. */
export function waitRefusal(stream: Stream | undefined): WaitRefusal | undefined {
  return stream !== undefined && mayHaveWaited(stream) ? stream.refusal : undefined
}

/** A stream that may itself wait, or carries one that may. */
export interface MayWait extends Stream {
  readonly refusal: WaitRefusal | undefined
}

function mayHaveWaited(stream: Stream): stream is MayWait {
  return 'refusal' in stream
}
