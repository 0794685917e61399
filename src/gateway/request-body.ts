// A request body that may arrive before anybody wants it: held (at most a flow-control window) until forward() takes it.

import type { HeaderList, ResetReason, Stream, StreamEvents } from '../api/stream.ts'

export class RequestBody implements StreamEvents {
  #sink: StreamEvents | undefined
  #chunks: Buffer[] = []
  #ended: boolean
  #trailers: HeaderList | undefined
  #reset: ResetReason | undefined
  #discarding = false
  readonly #stream: Stream

  constructor(stream: Stream, ended: boolean) {
    this.#stream = stream
    this.#ended = ended
  }

  /** The client has gone: nothing needs to be done for it any more. */
  get gone(): boolean {
    return this.#reset !== undefined
  }

  /** No body at all, known from the head. */
  get empty(): boolean {
    return this.#ended && this.#chunks.length === 0 && this.#trailers === undefined
  }

  /** Everything that came so far, and from now on all that comes, goes to `sink`. */
  drainTo(sink: StreamEvents): void {
    this.#sink = sink
    const chunks = this.#chunks
    this.#chunks = []
    for (const chunk of chunks) sink.onBody(chunk, false)
    if (this.#reset !== undefined) sink.onReset(this.#reset)
    else if (this.#trailers !== undefined) sink.onTrailers(this.#trailers)
    else if (this.#ended) sink.onBody(Buffer.alloc(0), true)
  }

  /** Nobody will read it: it is thrown away as it comes, so that the connection can go on. */
  discard(): void {
    this.#discarding = true
    for (const chunk of this.#chunks) this.#stream.credit(chunk.length)
    this.#chunks = []
  }

  onHeaders(): void {
    // Only responses have a second head.
  }

  onBody(chunk: Buffer, end: boolean): void {
    if (this.#sink !== undefined) this.#sink.onBody(chunk, end)
    else if (this.#discarding) this.#stream.credit(chunk.length)
    else {
      if (chunk.length > 0) this.#chunks.push(chunk)
      this.#ended ||= end
    }
  }

  onTrailers(list: HeaderList): void {
    this.#ended = true
    if (this.#sink !== undefined) this.#sink.onTrailers(list)
    else this.#trailers = list
  }

  onDrained(): void {
    this.#sink?.onDrained()
  }

  onReset(reason: ResetReason): void {
    this.#reset = reason
    this.#sink?.onReset(reason)
  }
}
