// Splits the bytes of a peer into frames (RFC 9113 section 4.1). The sink gets whole frames, however the bytes were chunked;
// DATA is passed on as it arrives, so that bodies are not copied.

import * as frame from './frames.ts'
import { FRAME_MEMORY_BYTES, releaseFrameMemory, takeFrameMemory } from './slabs.ts'

/** Receives the frames. */
export interface FrameSink {
  /** A whole frame other than DATA; its payload is `length` bytes of `bytes` from `payload` on, valid during the call. */
  onFrame(type: number, flags: number, id: number, bytes: Buffer, payload: number, length: number): void
  /**
   * A partial large frame needs `bytes` of memory; 0 = released, since the frame was handled. False: out of memory, and the
   * connection is over.
   */
  onPartial(bytes: number): boolean
  /** DATA begins; `length` includes the padding. False: skip its bytes. */
  onDataStart(length: number, flags: number, id: number): boolean
  /** Padding, including its length octet. `all` = the frame contains nothing else. */
  onPadding(bytes: number, all: boolean): void
  /** The next bytes of the body; `last` = the end of the frame. */
  onDataBytes(chunk: Buffer, from: number, to: number, last: boolean): void
  onDataEnd(): void
  /** The bytes are not HTTP/2: a connection error. */
  onFrameError(code: number, message: string): void
}

/** Limits how long frames are read in one go: one chunk may hold thousands of small requests. */
export interface Pace {
  /** Called after each frame, or piece of one. */
  goOn(): boolean
}

export const WITHOUT_PAUSE: Pace = { goOn: () => true }

const EMPTY = Buffer.alloc(0)
/** Shorter partial frames are kept in slices of Node's shared Buffer pool. */
const SHORT_BYTES = 4096
/** Memory for longer ones has to be granted. */
const LARGE_BYTES = 8192
const { DATA, FLAG_PADDED, FRAME_HEADER_BYTES, LARGEST_STREAM_ID } = frame

export class FrameReader {
  readonly #sink: FrameSink
  readonly #maxFrameBytes: number
  readonly #preface: string
  #prefaceSeen = 0
  #stopped = false
  // A partial frame; of DATA, only its header.
  #held: Buffer = EMPTY
  #heldBytes = 0
  #heldNeed = 0
  #heldSinceMs = 0
  // The current DATA frame.
  #dataLeft = 0
  #pad = 0
  #padUnread = false

  /** @param preface the peer's connection preface; '' on the client side */
  constructor(sink: FrameSink, maxFrameBytes: number, preface: string) {
    this.#sink = sink
    this.#maxFrameBytes = maxFrameBytes
    this.#preface = preface
  }

  /** When the incomplete frame began; -1 = none. */
  get heldSinceMs(): number {
    return this.#heldBytes > 0 ? this.#heldSinceMs : -1
  }

  /** Stops passing on frames. */
  stop(): void {
    this.#stopped = true
    this.#drop()
  }

  /** Reads `chunk` from `from` on, until `pace` stops it. @returns how far: the rest has to be read before anything else */
  read(chunk: Buffer, from: number, nowMs: number, pace: Pace): number {
    let at = this.#prefaceSeen < this.#preface.length ? this.#readPreface(chunk, from) : from
    while (at < chunk.length && !this.#stopped) {
      if (this.#dataLeft > 0) at = this.#readData(chunk, at)
      else if (this.#heldBytes > 0 || chunk.length - at < FRAME_HEADER_BYTES) at = this.#hold(chunk, at, nowMs)
      else at = this.#readFrame(chunk, at, nowMs)
      if (!pace.goOn()) return this.#stopped ? chunk.length : at
    }
    return chunk.length
  }

  #readPreface(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length && this.#prefaceSeen < this.#preface.length) {
      if (chunk[at] !== this.#preface.charCodeAt(this.#prefaceSeen)) {
        this.#sink.onFrameError(frame.PROTOCOL_ERROR, 'invalid connection preface')
        return chunk.length
      }
      at++
      this.#prefaceSeen++
    }
    return at
  }

  /** Called with at least a frame header and no partial frame. */
  #readFrame(chunk: Buffer, at: number, nowMs: number): number {
    const length = lengthAt(chunk, at)
    if (length > this.#maxFrameBytes) return this.#tooLong(chunk.length)
    const payload = at + FRAME_HEADER_BYTES
    if (chunk[at + 3] === DATA) {
      this.#startData(length, chunk, at)
      return payload
    }
    if (chunk.length - payload < length) return this.#hold(chunk, at, nowMs)
    this.#sink.onFrame(chunk[at + 3] ?? 0, chunk[at + 4] ?? 0, streamAt(chunk, at), chunk, payload, length)
    return payload + length
  }

  #tooLong(end: number): number {
    this.#sink.onFrameError(frame.FRAME_SIZE_ERROR, 'frame above SETTINGS_MAX_FRAME_SIZE')
    return end
  }

  /** Keeps a partial frame until it is complete; of DATA, only until its header is. */
  #hold(chunk: Buffer, from: number, nowMs: number): number {
    let at = from
    if (this.#heldBytes === 0) {
      this.#heldSinceMs = nowMs
      this.#heldNeed = FRAME_HEADER_BYTES
      this.#held = Buffer.allocUnsafe(FRAME_HEADER_BYTES)
    }
    for (;;) {
      const size = Math.min(this.#heldNeed - this.#heldBytes, chunk.length - at)
      chunk.copy(this.#held, this.#heldBytes, at, at + size)
      at += size
      this.#heldBytes += size
      if (this.#heldBytes < this.#heldNeed) return at
      const held = this.#held
      const length = lengthAt(held, 0)
      if (length > this.#maxFrameBytes) return this.#tooLong(chunk.length)
      if (held[3] === DATA || this.#heldNeed === FRAME_HEADER_BYTES + length) {
        this.#held = EMPTY
        this.#heldBytes = 0
        if (held[3] === DATA) this.#startData(length, held, 0)
        else this.#sink.onFrame(held[3] ?? 0, held[4] ?? 0, streamAt(held, 0), held, FRAME_HEADER_BYTES, length)
        releaseFrameMemory(held)
        if (length > LARGE_BYTES && held[3] !== DATA) this.#sink.onPartial(0)
        return at
      }
      if (length > LARGE_BYTES && !this.#sink.onPartial(FRAME_MEMORY_BYTES)) return chunk.length
      this.#heldNeed = FRAME_HEADER_BYTES + length
      this.#held = memoryFor(this.#heldNeed)
      held.copy(this.#held, 0, 0, FRAME_HEADER_BYTES)
    }
  }

  #drop(): void {
    releaseFrameMemory(this.#held)
    this.#held = EMPTY
    this.#heldBytes = 0
  }

  #startData(length: number, bytes: Buffer, at: number): void {
    const flags = bytes[at + 4] ?? 0
    if (!this.#sink.onDataStart(length, flags, streamAt(bytes, at))) return
    this.#dataLeft = length
    this.#pad = 0
    this.#padUnread = (flags & FLAG_PADDED) !== 0
    if (length === 0) this.#sink.onDataEnd()
  }

  #readData(chunk: Buffer, from: number): number {
    let at = from
    if (this.#padUnread) {
      const pad = chunk[at++] ?? 0
      this.#dataLeft--
      if (pad > this.#dataLeft) {
        this.#sink.onFrameError(frame.PROTOCOL_ERROR, 'padding as long as the frame or longer')
        return chunk.length
      }
      this.#padUnread = false
      this.#pad = pad
      this.#sink.onPadding(pad + 1, pad === this.#dataLeft)
      if (this.#stopped) return chunk.length
    }
    const size = Math.min(this.#dataLeft - this.#pad, chunk.length - at)
    if (size > 0) {
      this.#dataLeft -= size
      this.#sink.onDataBytes(chunk, at, at + size, this.#dataLeft === 0)
      at += size
      if (this.#stopped) return chunk.length
    }
    if (this.#dataLeft === this.#pad) {
      const skipped = Math.min(this.#pad, chunk.length - at)
      this.#dataLeft -= skipped
      this.#pad -= skipped
      at += skipped
    }
    if (this.#dataLeft === 0) this.#sink.onDataEnd()
    return at
  }
}

/** The largest frame that we allow fits into the pool's pieces. */
function memoryFor(size: number): Buffer {
  return size > SHORT_BYTES && size <= FRAME_MEMORY_BYTES ? takeFrameMemory() : Buffer.allocUnsafe(size)
}

function lengthAt(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
}

function streamAt(bytes: Buffer, at: number): number {
  return frame.readUint32(bytes, at + 5) & LARGEST_STREAM_ID
}
