// One node:http2 stream as a Stream of the seam; used by the server and the client side. Nothing above src/io/ sees node:http2.

import { constants, type Http2Stream } from 'node:http2'
import { type HeaderList, HIGH_WATER_BYTES, type ResetReason, type StreamEvents } from '../api/stream.ts'

const EMPTY = Buffer.alloc(0)

const RESET_CODES: Readonly<Record<ResetReason, number>> = {
  cancel: constants.NGHTTP2_CANCEL,
  internal: constants.NGHTTP2_INTERNAL_ERROR,
  refused: constants.NGHTTP2_REFUSED_STREAM,
  protocol: constants.NGHTTP2_PROTOCOL_ERROR,
  connection: constants.NGHTTP2_INTERNAL_ERROR,
}

/** RST_STREAM code of the peer -> reason (RFC 9113 section 7). */
export function resetReason(code: number): ResetReason {
  switch (code) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return 'refused'
    case constants.NGHTTP2_CANCEL:
    case constants.NGHTTP2_NO_ERROR:
      return 'cancel'
    case constants.NGHTTP2_PROTOCOL_ERROR:
    case constants.NGHTTP2_FRAME_SIZE_ERROR:
    case constants.NGHTTP2_FLOW_CONTROL_ERROR:
      return 'protocol'
    default:
      return 'internal'
  }
}

/** Header block of node:http2 (which may hold non-strings) as the seam's flat list. */
export function flatHeaders(raw: readonly unknown[]): HeaderList {
  const list: HeaderList = new Array(raw.length)
  for (let i = 0; i < raw.length; i++) list[i] = String(raw[i])
  return list
}

/** Reading half shared by both sides: back-pressure by credit, and the end told apart from a loss. */
export class Http2Body {
  events: StreamEvents | undefined
  readonly #stream: Http2Stream
  readonly #connectionLost: () => boolean
  readonly #complete: () => boolean
  #uncredited = 0
  #endSeen = false
  #trailers: HeaderList | undefined
  /** The peer has sent all of its message. */
  ended = false
  #closed = false

  /**
   * @param connectionLost whether the connection broke (as opposed to the stream)
   * @param complete asked when the stream closes: whether everything that had to happen on it has happened
   */
  constructor(stream: Http2Stream, connectionLost: () => boolean, complete: () => boolean) {
    this.#stream = stream
    this.#connectionLost = connectionLost
    this.#complete = complete
    stream.on('drain', () => this.events?.onDrained())
    // Without this listener a reset by the peer ends the process; 'close' always follows and tells the rest.
    stream.on('error', () => undefined)
    stream.on('close', () => this.#onClose())
  }

  /** Starts to deliver the body. */
  read(): void {
    const stream = this.#stream
    // END_STREAM and a reset with NO_ERROR look alike at 'end'; only END_STREAM ends the reading half of a stream still open.
    const push = stream.push
    stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk === null && !stream.closed) this.#endSeen = true
      return push.call(stream, chunk, encoding)
    }
    stream.on('data', (chunk: Buffer) => {
      this.#uncredited += chunk.length
      if (this.#uncredited >= HIGH_WATER_BYTES) stream.pause()
      this.events?.onBody(chunk, false)
    })
    stream.on('trailers', (_headers: unknown, _flags: number, raw?: readonly unknown[]) => {
      this.#trailers = flatHeaders(raw ?? [])
    })
    stream.on('end', () => this.#onEnd())
  }

  credit(bytes: number): void {
    const before = this.#uncredited
    this.#uncredited = Math.max(0, before - bytes)
    if (before >= HIGH_WATER_BYTES && this.#uncredited < HIGH_WATER_BYTES) this.#stream.resume()
  }

  #onEnd(): void {
    // A lost connection looks like a normal end in node:http2; only rstCode tells them apart.
    if (this.#closed || this.ended) return
    if (!this.#endSeen || this.#stream.rstCode !== constants.NGHTTP2_NO_ERROR || this.#connectionLost()) return
    this.ended = true
    if (this.#trailers !== undefined) this.events?.onTrailers(this.#trailers)
    else this.events?.onBody(EMPTY, true)
  }

  #onClose(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#complete()) return
    const code = this.#stream.rstCode ?? 0
    this.events?.onReset(this.#connectionLost() ? 'connection' : resetReason(code))
  }
}

/** Sends RST_STREAM with the code that says why. */
export function resetStream(stream: Http2Stream, reason: ResetReason): void {
  if (!stream.closed && !stream.destroyed) stream.close(RESET_CODES[reason])
}
