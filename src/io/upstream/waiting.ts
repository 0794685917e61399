// A request that waits for the connection that will carry it; its body is buffered until then.

import type { HeaderList, ResetReason, SharedFields, Stream, StreamEvents } from '../../api/ports/stream.ts'

/** Can send it: an HTTP/2 connection, or the HTTP/1.1 pool. */
export interface Carrier {
  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents): Stream
}

const EMPTY = Buffer.alloc(0)

export class WaitingStream implements Stream {
  /** When it was opened, as `performance.now()`. */
  readonly sinceMs: number
  readonly #head: HeaderList
  readonly #shared: SharedFields | undefined
  /** The request has no body. */
  readonly #end: boolean
  readonly #events: StreamEvents
  /** Called when the request is cancelled while it waits. */
  readonly #onAbandoned: (stream: WaitingStream) => void
  #stream: Stream | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #bodyEnded = false
  #trailers: HeaderList | undefined
  #over = false

  constructor(
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    onAbandoned: (stream: WaitingStream) => void,
    sinceMs: number,
  ) {
    this.sinceMs = sinceMs
    this.#head = head
    this.#shared = shared
    this.#end = end
    this.#events = events
    this.#onAbandoned = onAbandoned
  }

  /** Sends the request. Not for a stream that was reset. */
  send(carrier: Carrier): void {
    if (this.#over || this.#stream !== undefined) return
    const stream = carrier.open(this.#head, this.#shared, this.#end, this.#events)
    this.#stream = stream
    const chunks = this.#chunks
    this.#chunks = []
    this.#bytes = 0
    const last = chunks.length - 1
    const endsWithChunk = this.#bodyEnded && this.#trailers === undefined
    for (let i = 0; i <= last; i++) stream.body(chunks[i] ?? EMPTY, endsWithChunk && i === last)
    if (this.#trailers !== undefined) stream.trailers(this.#trailers)
    else if (endsWithChunk && last < 0) stream.body(EMPTY, true)
    this.#trailers = undefined
  }

  /** The request is refused unsent. Never inside `open()`: the caller does not have the stream yet. */
  refuse(): void {
    if (this.#over || this.#stream !== undefined) return
    this.#over = true
    this.#forget()
    this.#events.onReset('refused')
  }

  get queued(): number {
    return this.#stream?.queued ?? this.#bytes
  }

  headers(_list: HeaderList, _end: boolean): void {
    // The request head is sent by open().
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#stream !== undefined) {
      this.#stream.body(chunk, end)
      return
    }
    if (this.#over || this.#bodyEnded || this.#end) return
    if (chunk.length > 0) this.#chunks.push(Buffer.from(chunk))
    this.#bytes += chunk.length
    this.#bodyEnded = end
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
    this.#forget()
    this.#onAbandoned(this)
  }

  #forget(): void {
    this.#chunks = []
    this.#bytes = 0
    this.#trailers = undefined
  }
}
