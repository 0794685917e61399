// DATA from the peer (RFC 9113 section 6.1): checked against the windows and passed to its stream.

import type { Budget } from '../kit/api/limits/budget.ts'
import type { FrameHost } from './frame-host.ts'
import * as frame from './frames.ts'
import type { ReceiveWindow } from './receive-window.ts'
import { ANY_LENGTH, type Http2Stream } from './stream.ts'
import type { ConnectionStreams } from './streams.ts'

const { FLAG_END_STREAM, FLAG_PADDED } = frame
const { PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, STREAM_CLOSED } = frame

const EMPTY = Buffer.alloc(0)

export class DataFrames {
  readonly #host: FrameHost
  readonly #streams: ConnectionStreams
  readonly #window: ReceiveWindow
  readonly #emptyFrames: Budget
  /** The stream of the current frame, and whether the frame is its last. */
  #stream: Http2Stream | undefined
  #end = false

  constructor(host: FrameHost, streams: ConnectionStreams, window: ReceiveWindow, emptyFrames: Budget) {
    this.#host = host
    this.#streams = streams
    this.#window = window
    this.#emptyFrames = emptyFrames
  }

  /** `length` includes the padding. False: skip its bytes. */
  onStart(length: number, flags: number, id: number): boolean {
    const host = this.#host
    if (!this.#window.receive(length)) {
      host.fail(FLOW_CONTROL_ERROR, 'DATA above the window of the connection')
      return false
    }
    const end = (flags & FLAG_END_STREAM) !== 0
    if (length === 0 && !end && !this.#emptyFrames.take(host.nowMs)) {
      host.abuse('emptyFrames')
      return false
    }
    if (length === 0 && (flags & FLAG_PADDED) !== 0) {
      host.fail(FRAME_SIZE_ERROR, 'padded DATA without a padding length')
      return false
    }
    this.#end = end
    this.#stream = this.#streamOf(id, length)
    return !host.closed
  }

  /** The stream that receives the data; undefined = none: the bytes only count against the windows. */
  #streamOf(id: number, length: number): Http2Stream | undefined {
    const host = this.#host
    const stream = this.#streams.open.get(id)
    if (stream === undefined) {
      if (host.isIdle(id)) host.fail(PROTOCOL_ERROR, 'DATA on an idle stream')
      // Ignored if we reset it, since the peer may not know yet, or if it closed long ago.
      else if (this.#streams.closed.wasEndedByPeer(id)) host.blameGone(id, STREAM_CLOSED)
      return undefined
    }
    if (stream.remoteEnded) {
      host.blame(stream, STREAM_CLOSED)
      return undefined
    }
    // A response begins with its head (RFC 9113 section 8.1); a request's head opened the stream.
    if (!stream.answered && !host.isServer) {
      host.blame(stream, PROTOCOL_ERROR)
      return undefined
    }
    if (length > stream.receiveWindow) {
      host.blame(stream, FLOW_CONTROL_ERROR)
      return undefined
    }
    stream.receiveWindow -= length
    return stream
  }

  /** Padding counts in flow control (RFC 9113 section 6.1), but has no consumer. */
  onPadding(bytes: number, all: boolean): void {
    if (all && !this.#end && !this.#emptyFrames.take(this.#host.nowMs)) {
      this.#host.abuse('emptyFrames')
      return
    }
    const stream = this.#stream
    if (stream !== undefined && !stream.dead) {
      stream.unread += bytes
      stream.credit(bytes)
    } else this.#window.onTaken(bytes)
  }

  onBytes(chunk: Buffer, from: number, to: number, last: boolean): void {
    const stream = this.#stream
    const size = to - from
    if (stream === undefined || stream.dead) {
      this.#window.onTaken(size)
      return
    }
    stream.receivedBytes += size
    if (stream.expectedBytes !== ANY_LENGTH && stream.receivedBytes > stream.expectedBytes) {
      this.#window.onTaken(size)
      this.#host.blame(stream, PROTOCOL_ERROR)
      return
    }
    stream.unread += size
    // Deliver the end of the stream with the last bytes: saves an event.
    const end = this.#end && last
    if (end && !this.#streams.lengthFits(stream)) return
    if (end) {
      this.#end = false
      stream.remoteEnded = true
    }
    stream.events.onBody(chunk.subarray(from, to), end)
    if (end) this.#streams.afterRemoteEnd(stream)
  }

  onEnd(): void {
    const stream = this.#stream
    this.#stream = undefined
    if (!this.#end || stream === undefined || stream.dead || !this.#streams.lengthFits(stream)) return
    stream.remoteEnded = true
    stream.events.onBody(EMPTY, true)
    this.#streams.afterRemoteEnd(stream)
  }
}
