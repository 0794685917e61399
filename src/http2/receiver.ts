// Receiving: checks the order of frames (SETTINGS first, header blocks uninterrupted) and passes each
// to the part that handles it.

import type { Budget } from '../kit/api/limits/budget.ts'
import type { ControlFrames } from './control-frames.ts'
import type { DataFrames } from './data-frames.ts'
import type { FrameHost } from './frame-host.ts'
import { FrameReader, type FrameSink, type Pace } from './frame-reader.ts'
import * as frame from './frames.ts'
import type { HeaderFrames } from './header-frames.ts'
import type { PeerSettings } from './peer-settings.ts'

const { HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } = frame
const { FLAG_ACK, PROTOCOL_ERROR } = frame

/** The handlers of frames. */
interface FrameHandlers {
  readonly settings: PeerSettings
  readonly headers: HeaderFrames
  readonly data: DataFrames
  readonly control: ControlFrames
}

export class Receiver implements FrameSink {
  readonly #host: FrameHost
  readonly #settings: PeerSettings
  readonly #headers: HeaderFrames
  readonly #data: DataFrames
  readonly #control: ControlFrames
  readonly #ignored: Budget
  readonly #reader: FrameReader
  /** The stream of the current frame, or the last one; 0 = none. */
  stream = 0

  /**
   * @param ignored budget for frames of unknown types
   * @param preface the peer's connection preface; '' on the client side
   */
  constructor(host: FrameHost, parts: FrameHandlers, ignored: Budget, maxFrameBytes: number, preface: string) {
    this.#host = host
    this.#settings = parts.settings
    this.#headers = parts.headers
    this.#data = parts.data
    this.#control = parts.control
    this.#ignored = ignored
    this.#reader = new FrameReader(this, maxFrameBytes, preface)
  }

  /** When the incomplete frame, or header block of several frames, began; -1 = none. */
  get heldSinceMs(): number {
    const frameMs = this.#reader.heldSinceMs
    const blockMs = this.#headers.openSinceMs
    return blockMs < 0 || (frameMs >= 0 && frameMs < blockMs) ? frameMs : blockMs
  }

  /** See FrameReader.read. */
  read(chunk: Buffer, from: number, nowMs: number, pace: Pace): number {
    return this.#reader.read(chunk, from, nowMs, pace)
  }

  /** Stops passing on frames. */
  stop(): void {
    this.#reader.stop()
    this.#headers.stop()
  }

  onFrameError(code: number, message: string): void {
    this.#host.fail(code, message)
  }

  onFrame(type: number, flags: number, id: number, bytes: Buffer, payload: number, length: number): void {
    this.stream = id
    const block = this.#headers.open
    if (block !== 0 && (type !== CONTINUATION || id !== block)) {
      this.#host.fail(PROTOCOL_ERROR, 'a header block was not continued')
      return
    }
    if (!this.#settings.received && (type !== SETTINGS || (flags & FLAG_ACK) !== 0)) {
      this.#host.fail(PROTOCOL_ERROR, 'the first frame is not SETTINGS')
      return
    }
    switch (type) {
      case HEADERS:
        this.#headers.onHeaders(bytes, payload, length, flags, id)
        return
      case PRIORITY:
        this.#control.onPriority(bytes, payload, length, id)
        return
      case RST_STREAM:
        this.#control.onReset(bytes, payload, length, id)
        return
      case SETTINGS:
        this.#settings.onSettings(bytes, payload, length, flags, id)
        return
      case PUSH_PROMISE:
        this.#host.fail(PROTOCOL_ERROR, 'PUSH_PROMISE')
        return
      case PING:
        this.#control.onPing(bytes, payload, length, flags, id)
        return
      case GOAWAY:
        this.#control.onGoaway(bytes, payload, length, id)
        return
      case WINDOW_UPDATE:
        this.#control.onWindowUpdate(bytes, payload, length, id)
        return
      case CONTINUATION:
        this.#headers.onContinuation(bytes, payload, length, flags, id)
        return
      default:
        // RFC 9113 section 4.1: unknown types are ignored.
        if (!this.#ignored.take(this.#host.nowMs)) this.#host.abuse('unknownFrames')
    }
  }

  onPartial(bytes: number): boolean {
    return this.#headers.holdFrame(bytes)
  }

  onDataStart(length: number, flags: number, id: number): boolean {
    this.stream = id
    if (!this.#settings.received || this.#headers.open !== 0 || id === 0) {
      this.#host.fail(PROTOCOL_ERROR, 'DATA where none may be')
      return false
    }
    return this.#data.onStart(length, flags, id)
  }

  onPadding(bytes: number, all: boolean): void {
    this.#data.onPadding(bytes, all)
  }

  onDataBytes(chunk: Buffer, from: number, to: number, last: boolean): void {
    this.#data.onBytes(chunk, from, to, last)
  }

  onDataEnd(): void {
    this.#data.onEnd()
  }
}
