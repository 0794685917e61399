// SETTINGS of the peer (RFC 9113 section 6.5), applied on arrival, and whether it has acknowledged ours.

import type { Budget } from '../kit/api/limits/budget.ts'
import type { FrameHost } from './frame-host.ts'
import * as frame from './frames.ts'
import type { Sender } from './sender.ts'
import type { StreamTable } from './stream-table.ts'

/** The connection. */
export interface SettingsHost extends FrameHost {
  onPeerSettings(): void
}

const { FLAG_ACK, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, LARGEST_WINDOW_BYTES } = frame

export class PeerSettings {
  /** The first SETTINGS have arrived. */
  received: boolean = false
  /** Our SETTINGS were acknowledged. */
  acknowledged: boolean = false
  /** INITIAL_WINDOW_SIZE of each stream. */
  windowBytes: number = frame.DEFAULT_WINDOW_BYTES
  maxStreams: number = Number.POSITIVE_INFINITY
  readonly #host: SettingsHost
  readonly #sender: Sender
  readonly #streams: StreamTable
  readonly #budget: Budget

  constructor(host: SettingsHost, sender: Sender, streams: StreamTable, budget: Budget) {
    this.#host = host
    this.#sender = sender
    this.#streams = streams
    this.#budget = budget
  }

  onSettings(bytes: Buffer, payload: number, length: number, flags: number, id: number): void {
    const host = this.#host
    if (id !== 0) {
      host.fail(PROTOCOL_ERROR, 'SETTINGS on a stream')
      return
    }
    if ((flags & FLAG_ACK) !== 0) {
      if (length !== 0) {
        host.fail(FRAME_SIZE_ERROR, 'SETTINGS acknowledgement with a payload')
        return
      }
      this.acknowledged = true
      if (!this.#budget.take(host.nowMs)) host.abuse('settingsFlood')
      return
    }
    if (length % 6 !== 0) {
      host.fail(FRAME_SIZE_ERROR, 'SETTINGS')
      return
    }
    if (!this.#budget.take(host.nowMs)) {
      host.abuse('settingsFlood')
      return
    }
    for (let at = payload; at < payload + length && !host.closed; at += 6) {
      this.#apply(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0), frame.readUint32(bytes, at + 2))
    }
    if (host.closed) return
    this.#sender.settingsAck()
    this.received = true
    host.onPeerSettings()
  }

  #apply(setting: number, value: number): void {
    const host = this.#host
    switch (setting) {
      case frame.HEADER_TABLE_SIZE:
        this.#sender.setMaxTableBytes(value)
        return
      case frame.ENABLE_PUSH:
        if (value > 1 || (value === 1 && !host.isServer)) host.fail(PROTOCOL_ERROR, 'ENABLE_PUSH')
        return
      case frame.MAX_CONCURRENT_STREAMS:
        this.maxStreams = value
        return
      case frame.INITIAL_WINDOW_SIZE:
        if (value > LARGEST_WINDOW_BYTES) host.fail(FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE')
        else this.#resizeWindows(value)
        return
      case frame.MAX_FRAME_SIZE:
        if (value < frame.DEFAULT_FRAME_BYTES || value > frame.LARGEST_FRAME_BYTES) {
          host.fail(PROTOCOL_ERROR, 'MAX_FRAME_SIZE')
        } else this.#sender.frameBytes = value
        return
      case frame.MAX_HEADER_LIST_SIZE:
        this.#sender.maxListBytes = value
        return
      case frame.ENABLE_CONNECT_PROTOCOL:
        if (value > 1) host.fail(PROTOCOL_ERROR, 'ENABLE_CONNECT_PROTOCOL')
        return
      default:
      // Unknown settings are ignored (RFC 9113 section 6.5.2).
    }
  }

  /** RFC 9113 section 6.9.2: windows of open streams change, too, and may become negative. */
  #resizeWindows(bytes: number): void {
    const change = bytes - this.windowBytes
    this.windowBytes = bytes
    for (const stream of this.#streams.all()) {
      stream.sendWindow += change
      if (stream.sendWindow > LARGEST_WINDOW_BYTES) {
        this.#host.fail(FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE makes a window overflow')
        return
      }
      if (change > 0 && stream.queued > 0) this.#sender.schedule(stream)
    }
  }
}
