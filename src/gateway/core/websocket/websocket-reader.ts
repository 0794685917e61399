// Reads the frames of one direction of a WebSocket (RFC 6455 section 5), in whatever pieces they come. Payloads are passed on as they arrive: nothing is kept
// but the head of a frame, and the payload of a control frame.

import { FIN, LENGTH_16, LENGTH_64, MASKED, MAX_CONTROL_BYTES, OPCODES } from './frames.ts'

export interface WebSocketSink {
  /** Whether what follows of the message is looked at: only then it is unmasked. */
  readonly wants: boolean
  /** A message begins: text, or binary. */
  begin(isText: boolean): void
  /** The bytes are valid until it returns. */
  add(bytes: Uint8Array): void
  end(): void
  /** A control frame. @param payload valid until it returns */
  control(opcode: number, payload: Uint8Array): void
  /** What is thrown for bytes that cannot be frames of this direction. */
  malformed(what: string): Error
}

interface FrameRules {
  /** As frames of a client are. */
  readonly isMasked: boolean
  /** Messages in several frames are malformed. */
  readonly inOneFrame: boolean
  /** Payload of a frame. Default: any that a number can say. */
  readonly mostBytes?: number
}

const RESERVED = 0x70
const MASK_BYTES = 4
const MAX_HEAD_BYTES = 14
const MAX_WORD = 0x1_0000_0000
/** Bytes unmasked at a time. */
const UNMASKED_BYTES = 16 * 1024

export class WebSocketReader {
  readonly #rules: FrameRules
  readonly #sink: WebSocketSink
  readonly #head = new Uint8Array(MAX_HEAD_BYTES)
  #headBytes = 0
  /** Bytes of the head, as far as they are known. */
  #headLength = 2
  /** Bytes of the payload that are still to come; -1 = the head is not complete. */
  #left = -1
  #opcode = 0
  #isFinal = false
  /** A message has begun, and goes on in the next data frame. */
  #inMessage = false
  /** A close frame has come: nothing behind it is read (section 5.5.1). */
  #isClosed = false
  #maskAt = 0
  #unmasked: Uint8Array | undefined
  /** Payload of a control frame. */
  #control: Uint8Array | undefined
  #controlBytes = 0

  constructor(rules: FrameRules, sink: WebSocketSink) {
    this.#rules = rules
    this.#sink = sink
  }

  /** What was read so far is whole frames. */
  get isBetweenFrames(): boolean {
    return this.#left < 0 && this.#headBytes === 0
  }

  read(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length && !this.#isClosed) {
      if (this.#left < 0) {
        this.#head[this.#headBytes++] = chunk[at++] ?? 0
        if (this.#headBytes === 2) this.#begin()
        if (this.#headBytes === this.#headLength) this.#open()
      } else {
        const end = Math.min(chunk.length, at + this.#left)
        this.#left -= end - at
        this.#pass(chunk, at, end)
        at = end
      }
      if (this.#left === 0) this.#close()
    }
  }

  get #isControl(): boolean {
    return this.#opcode >= OPCODES.close
  }

  #begin(): void {
    const { isMasked, inOneFrame } = this.#rules
    const [first = 0, second = 0] = this.#head
    const sink = this.#sink
    if ((first & RESERVED) !== 0) throw sink.malformed('a frame with reserved bits')
    if (((second & MASKED) !== 0) !== isMasked) throw sink.malformed('a frame that is masked, or is not')
    const opcode = first & 0x0f
    const length = second & ~MASKED
    this.#isFinal = (first & FIN) !== 0
    this.#opcode = opcode
    if (opcode > OPCODES.pong || (opcode > OPCODES.binary && opcode < OPCODES.close))
      throw sink.malformed('a frame of an unknown type')
    if (this.#isControl) {
      if (!this.#isFinal || length > MAX_CONTROL_BYTES) throw sink.malformed('a control frame in parts')
    } else {
      if ((opcode === OPCODES.continuation) !== this.#inMessage) throw sink.malformed('a frame out of order')
      if (inOneFrame && !this.#isFinal) throw sink.malformed('a message in parts')
      if (!this.#inMessage) sink.begin(opcode === OPCODES.text)
      this.#inMessage = !this.#isFinal
    }
    const extra = length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0
    this.#headLength = 2 + extra + (isMasked ? MASK_BYTES : 0)
  }

  #open(): void {
    const view = new DataView(this.#head.buffer)
    const length = view.getUint8(1) & ~MASKED
    this.#left = length
    if (length === LENGTH_16) this.#left = view.getUint16(2)
    if (length === LENGTH_64) this.#left = view.getUint32(2) * MAX_WORD + view.getUint32(6)
    if (this.#left > (this.#rules.mostBytes ?? Number.MAX_SAFE_INTEGER))
      throw this.#sink.malformed('a frame that is too long')
    this.#maskAt = 0
  }

  #close(): void {
    this.#left = -1
    this.#headBytes = 0
    this.#headLength = 2
    if (this.#isControl) {
      const bytes = this.#controlBytes
      this.#controlBytes = 0
      this.#isClosed = this.#opcode === OPCODES.close
      this.#sink.control(this.#opcode, this.#control?.subarray(0, bytes) ?? NO_BYTES)
    } else if (this.#isFinal) this.#sink.end()
  }

  #pass(chunk: Uint8Array, start: number, end: number): void {
    const { isMasked } = this.#rules
    if (!isMasked || !(this.#isControl || this.#sink.wants)) {
      this.#take(chunk.subarray(start, end))
      this.#maskAt += end - start
      return
    }
    // The chunk may be on its way to upstream, and stays as it is.
    this.#unmasked ??= new Uint8Array(UNMASKED_BYTES)
    const mask = this.#headLength - MASK_BYTES
    for (let from = start; from < end; ) {
      const length = Math.min(UNMASKED_BYTES, end - from)
      for (let i = 0; i < length; i++) {
        this.#unmasked[i] = (chunk[from + i] ?? 0) ^ (this.#head[mask + (this.#maskAt & 3)] ?? 0)
        this.#maskAt++
      }
      this.#take(this.#unmasked.subarray(0, length))
      from += length
    }
  }

  #take(bytes: Uint8Array): void {
    if (!this.#isControl) {
      this.#sink.add(bytes)
      return
    }
    this.#control ??= new Uint8Array(MAX_CONTROL_BYTES)
    this.#control.set(bytes, this.#controlBytes)
    this.#controlBytes += bytes.length
  }
}

const NO_BYTES = new Uint8Array(0)
