// Sessions over WebSocket (RFC 6455): messages that begin with the number of a channel (k8s.io/streaming/pkg/httpstream/wsstream/conn.go), or whose
// contents are SPDY (apiserver/pkg/util/proxy/streamtunnel.go).

import { MalformedSession, type SessionReader, type TakeBytes } from './channels.ts'

/** Whether payloads are text, by subprotocol: a digit, then base64. */
const SUBPROTOCOLS: ReadonlyMap<string, boolean> = new Map([
  ['', false],
  ['channel.k8s.io', false],
  ['base64.channel.k8s.io', true],
  ['v4.channel.k8s.io', false],
  ['v4.base64.channel.k8s.io', true],
  ['v5.channel.k8s.io', false],
])
/** The subprotocol of kubectl's port-forward: SPDY, and what is inside that. */
export const TUNNELLED_PORT_FORWARD = 'SPDY/3.1+portforward.k8s.io'

/** What is looked at of each direction, by number of the channel. */
export interface MessageChannels {
  readonly fromClient: readonly TakeBytes[]
  readonly toClient: readonly TakeBytes[]
}

/** @param subprotocol as upstream chose it; '' = none @returns undefined if its messages have no such channels */
export function channelsReader(subprotocol: string, channels: MessageChannels): SessionReader | undefined {
  const isBase64 = SUBPROTOCOLS.get(subprotocol)
  if (isBase64 === undefined) return undefined
  const client = new FrameReader(true, new Messages(channels.fromClient, isBase64))
  const server = new FrameReader(false, new Messages(channels.toClient, isBase64))
  return { fromClient: (chunk) => client.read(chunk), toClient: (chunk) => server.read(chunk) }
}

/** @param inner reads what is in the tunnel */
export function tunnelReader(inner: SessionReader): SessionReader {
  const client = new FrameReader(true, new Tunnel((bytes) => inner.fromClient(bytes)))
  const server = new FrameReader(false, new Tunnel((bytes) => inner.toClient(bytes)))
  return { fromClient: (chunk) => client.read(chunk), toClient: (chunk) => server.read(chunk) }
}

/** The data frames of one direction. */
interface Payloads {
  /** Whether a message of a client may be several frames. */
  readonly mayBeInParts: boolean
  /** Whether what follows of the message is looked at. */
  readonly wants: boolean
  begin(isText: boolean): void
  add(bytes: Uint8Array): void
  end(): void
}

const FIN = 0x80
const RESERVED = 0x70
const MASKED = 0x80
const LENGTH_16 = 126
const LENGTH_64 = 127
const MASK_BYTES = 4
const MAX_HEAD_BYTES = 14
const MAX_CONTROL_BYTES = 125
const CONTINUATION = 0
const TEXT = 1
const BINARY = 2
const CLOSE = 8
const PONG = 10
const MAX_WORD = 0x1_0000_0000
/** Bytes unmasked at a time. */
const UNMASKED_BYTES = 16 * 1024

/**
 * One direction. Messages of a client with a channel are one frame: servers of all versions (golang.org/x/net/websocket) take each frame for a message with
 * a channel of its own, where others would join them, so that the same bytes would be read in two ways.
 */
class FrameReader {
  /** As those of a client are. */
  readonly #isMasked: boolean
  readonly #payloads: Payloads
  readonly #head = new Uint8Array(MAX_HEAD_BYTES)
  #headBytes = 0
  /** Bytes of the head, as far as they are known. */
  #headLength = 2
  /** Bytes of the payload that are still to come; -1 = the head is not complete. */
  #left = -1
  #isControl = false
  #isFinal = false
  /** A message has begun, and goes on in the next data frame. */
  #inMessage = false
  /** A close frame has come: the other side reads nothing behind it. */
  #isClosed = false
  #maskAt = 0
  #unmasked: Uint8Array | undefined

  constructor(isMasked: boolean, payloads: Payloads) {
    this.#isMasked = isMasked
    this.#payloads = payloads
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
        if (!this.#isControl) this.#pass(chunk, at, end)
        at = end
      }
      if (this.#left === 0) this.#close()
    }
  }

  #begin(): void {
    const [first = 0, second = 0] = this.#head
    if ((first & RESERVED) !== 0) throw new MalformedSession('a frame with reserved bits')
    if (((second & MASKED) !== 0) !== this.#isMasked) throw new MalformedSession('a frame that is masked, or is not')
    const opcode = first & 0x0f
    const length = second & ~MASKED
    this.#isFinal = (first & FIN) !== 0
    this.#isControl = opcode >= CLOSE
    if (opcode > PONG || (opcode > BINARY && opcode < CLOSE)) throw new MalformedSession('a frame of an unknown type')
    if (this.#isControl) {
      if (!this.#isFinal || length > MAX_CONTROL_BYTES) throw new MalformedSession('a control frame in parts')
    } else {
      if ((opcode === CONTINUATION) !== this.#inMessage) throw new MalformedSession('a frame out of order')
      if (this.#isMasked && !this.#isFinal && !this.#payloads.mayBeInParts)
        throw new MalformedSession('a message in parts')
      if (!this.#inMessage) this.#payloads.begin(opcode === TEXT)
      this.#inMessage = !this.#isFinal
    }
    const extra = length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0
    this.#headLength = 2 + extra + (this.#isMasked ? MASK_BYTES : 0)
  }

  #open(): void {
    const view = new DataView(this.#head.buffer)
    const length = view.getUint8(1) & ~MASKED
    this.#left = length
    if (length === LENGTH_16) this.#left = view.getUint16(2)
    if (length === LENGTH_64) this.#left = view.getUint32(2) * MAX_WORD + view.getUint32(6)
    if (!Number.isSafeInteger(this.#left)) throw new MalformedSession('a frame without end')
    this.#maskAt = 0
  }

  #close(): void {
    this.#left = -1
    this.#headBytes = 0
    this.#headLength = 2
    this.#isClosed = ((this.#head[0] ?? 0) & 0x0f) === CLOSE
    if (!this.#isControl && this.#isFinal) this.#payloads.end()
  }

  #pass(chunk: Uint8Array, start: number, end: number): void {
    if (!this.#isMasked || !this.#payloads.wants) {
      this.#payloads.add(chunk.subarray(start, end))
      this.#maskAt += end - start
      return
    }
    // The chunk is on its way to upstream, and stays as it is.
    this.#unmasked ??= new Uint8Array(UNMASKED_BYTES)
    const mask = this.#headLength - MASK_BYTES
    for (let from = start; from < end; ) {
      const length = Math.min(UNMASKED_BYTES, end - from)
      for (let i = 0; i < length; i++) {
        this.#unmasked[i] = (chunk[from + i] ?? 0) ^ (this.#head[mask + (this.#maskAt & 3)] ?? 0)
        this.#maskAt++
      }
      this.#payloads.add(this.#unmasked.subarray(0, length))
      from += length
    }
  }
}

const DIGIT_ZERO = 0x30
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const NO_BYTES = new Uint8Array(0)

/** A stream of bytes, however it is cut. */
class Tunnel implements Payloads {
  readonly mayBeInParts = true
  readonly wants = true
  readonly add: (bytes: Uint8Array) => void

  constructor(take: (bytes: Uint8Array) => void) {
    this.add = take
  }

  begin(isText: boolean): void {
    if (isText) throw new MalformedSession('a message of text')
  }

  end(): void {
    // Nothing depends on where a message ends.
  }
}

/** Which channel each message belongs to. */
class Messages implements Payloads {
  readonly mayBeInParts = false
  readonly #channels: readonly TakeBytes[]
  readonly #isBase64: boolean
  #isNew = true
  #take: TakeBytes
  /** Characters of base64 that do not make a whole group yet. */
  #group = ''
  /** Nothing may follow padding. */
  #isPadded = false

  constructor(channels: readonly TakeBytes[], isBase64: boolean) {
    this.#channels = channels
    this.#isBase64 = isBase64
  }

  get wants(): boolean {
    return this.#isNew || this.#take !== undefined
  }

  begin(): void {
    this.#isNew = true
    this.#group = ''
    this.#isPadded = false
  }

  add(bytes: Uint8Array): void {
    let rest = bytes
    if (this.#isNew && rest.length > 0) {
      const number = (rest[0] ?? 0) - (this.#isBase64 ? DIGIT_ZERO : 0)
      this.#take = this.#channels[number]
      this.#isNew = false
      rest = rest.subarray(1)
    }
    if (this.#take === undefined || rest.length === 0) return
    const decoded = this.#isBase64 ? this.#decode(rest) : rest
    if (decoded.length > 0) this.#take(decoded)
  }

  end(): void {
    if (this.#group !== '') throw new MalformedSession('base64 that ends within a group')
  }

  #decode(bytes: Uint8Array): Uint8Array {
    const text = this.#group + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
    const whole = text.length - (text.length % 4)
    this.#group = text.slice(whole)
    if (whole === 0) return NO_BYTES
    // Strict: what a server reads in another way must not look the same here.
    if (this.#isPadded || !BASE64.test(text)) throw new MalformedSession('a message that is not base64')
    this.#isPadded = text[whole - 1] === '='
    return Buffer.from(text.slice(0, whole), 'base64')
  }
}
