// Control frames from the peer: PRIORITY, RST_STREAM, PING, GOAWAY and WINDOW_UPDATE (RFC 9113 sections 6.3, 6.4, 6.7 to 6.9).

import type { PeerBudgets } from './budget.ts'
import type { Http2Counters } from './counters.ts'
import type { FrameHost } from './frame-host.ts'
import * as frame from './frames.ts'
import type { Goaway } from './goaway.ts'
import type { Sender } from './sender.ts'
import { resetReason } from './stream.ts'
import type { ConnectionStreams } from './streams.ts'

/** Handles the peer's GOAWAY, and closes when no stream is left. */
export interface ControlHost extends FrameHost {
  /** The answer to a PING of ours; `payload` is its first half. */
  onPingAnswered(payload: number): void
  onPeerGoaway(lastStream: number, code: number): void
  closeIfIdle(): void
}

const { FLAG_ACK, LARGEST_STREAM_ID, LARGEST_WINDOW_BYTES } = frame
const { PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, REFUSED_STREAM } = frame

export class ControlFrames {
  readonly #host: ControlHost
  readonly #sender: Sender
  readonly #streams: ConnectionStreams
  readonly #goaway: Goaway
  readonly #budgets: PeerBudgets
  readonly #counters: Http2Counters

  constructor(
    host: ControlHost,
    sender: Sender,
    streams: ConnectionStreams,
    goaway: Goaway,
    budgets: PeerBudgets,
    counters: Http2Counters,
  ) {
    this.#host = host
    this.#sender = sender
    this.#streams = streams
    this.#goaway = goaway
    this.#budgets = budgets
    this.#counters = counters
  }

  onPriority(bytes: Buffer, payload: number, length: number, id: number): void {
    const host = this.#host
    if (id === 0) {
      host.fail(PROTOCOL_ERROR, 'PRIORITY on stream 0')
      return
    }
    if (!this.#budgets.ignored.take(host.nowMs)) {
      host.abuse('priorityFlood')
      return
    }
    if (length !== 5) this.#brokenPriority(id, FRAME_SIZE_ERROR)
    else if ((frame.readUint32(bytes, payload) & LARGEST_STREAM_ID) === id) this.#brokenPriority(id, PROTOCOL_ERROR)
  }

  #brokenPriority(id: number, code: number): void {
    const host = this.#host
    const stream = this.#streams.open.get(id)
    if (stream !== undefined) host.blame(stream, code)
    // RST_STREAM must not be sent on an idle stream (RFC 9113 section 6.4).
    else if (host.isIdle(id)) host.fail(code, 'PRIORITY of an idle stream')
    else host.blameGone(id, code)
  }

  onReset(bytes: Buffer, payload: number, length: number, id: number): void {
    const host = this.#host
    if (id === 0) {
      host.fail(PROTOCOL_ERROR, 'RST_STREAM on stream 0')
      return
    }
    if (length !== 4) {
      host.fail(FRAME_SIZE_ERROR, 'RST_STREAM')
      return
    }
    const stream = this.#streams.open.get(id)
    if (stream === undefined) {
      if (host.isIdle(id)) host.fail(PROTOCOL_ERROR, 'RST_STREAM on an idle stream')
      return
    }
    const code = frame.readUint32(bytes, payload)
    if (code === REFUSED_STREAM) this.#counters.streamsRefused++
    const { events, answered, localEnded } = stream
    const budget = answered ? this.#budgets.cancelledAnswers : this.#budgets.resets
    this.#streams.kill(stream)
    // After a complete response it only means that the client stops sending, which is allowed.
    if (host.isServer && !localEnded && !budget.take(host.nowMs)) host.abuse('rapidReset')
    events.onReset(resetReason(code))
    host.closeIfIdle()
  }

  onPing(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    const host = this.#host
    if (id !== 0) {
      host.fail(PROTOCOL_ERROR, 'PING on a stream')
      return
    }
    if (length !== 8) {
      host.fail(FRAME_SIZE_ERROR, 'PING')
      return
    }
    if (!this.#budgets.pings.take(host.nowMs)) {
      host.abuse('pingFlood')
      return
    }
    const high = frame.readUint32(bytes, payload)
    if ((flags & FLAG_ACK) === 0) this.#sender.ping(high, frame.readUint32(bytes, payload + 4), true)
    else host.onPingAnswered(high)
  }

  onGoaway(bytes: Buffer, payload: number, length: number, id: number): void {
    const host = this.#host
    if (id !== 0) {
      host.fail(PROTOCOL_ERROR, 'GOAWAY on a stream')
      return
    }
    if (length < 8) {
      host.fail(FRAME_SIZE_ERROR, 'GOAWAY')
      return
    }
    this.#counters.goawayReceived++
    this.#goaway.received = true
    host.onPeerGoaway(frame.readUint32(bytes, payload) & LARGEST_STREAM_ID, frame.readUint32(bytes, payload + 4))
    host.closeIfIdle()
  }

  onWindowUpdate(bytes: Buffer, payload: number, length: number, id: number): void {
    const host = this.#host
    if (length !== 4) {
      host.fail(FRAME_SIZE_ERROR, 'WINDOW_UPDATE')
      return
    }
    if (!this.#budgets.windowUpdates.take(host.nowMs)) {
      host.abuse('windowUpdateFlood')
      return
    }
    const increment = frame.readUint32(bytes, payload) & LARGEST_WINDOW_BYTES
    if (id === 0) this.#openConnection(increment)
    else this.#openStream(id, increment)
  }

  #openConnection(increment: number): void {
    const sender = this.#sender
    if (increment === 0) {
      this.#host.fail(PROTOCOL_ERROR, 'WINDOW_UPDATE of 0')
      return
    }
    sender.window += increment
    if (sender.window > LARGEST_WINDOW_BYTES) this.#host.fail(FLOW_CONTROL_ERROR, 'window of the connection')
    else sender.windowOpened()
  }

  #openStream(id: number, increment: number): void {
    const host = this.#host
    const stream = this.#streams.open.get(id)
    if (stream === undefined) {
      if (host.isIdle(id)) host.fail(PROTOCOL_ERROR, 'WINDOW_UPDATE on an idle stream')
      return
    }
    if (increment === 0) {
      host.blame(stream, PROTOCOL_ERROR)
      return
    }
    stream.sendWindow += increment
    if (stream.sendWindow > LARGEST_WINDOW_BYTES) {
      host.blame(stream, FLOW_CONTROL_ERROR)
      return
    }
    if (stream.queued > 0) this.#sender.schedule(stream)
  }
}
