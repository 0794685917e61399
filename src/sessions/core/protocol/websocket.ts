// Sessions over WebSocket (RFC 6455): messages that begin with the number of a channel (k8s.io/streaming/pkg/httpstream/wsstream/conn.go), or whose
// contents are SPDY (apiserver/pkg/util/proxy/streamtunnel.go).

import { WebSocketReader, type WebSocketSink } from '../../../gateway/core/websocket/websocket-reader.ts'
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
/**
 * Channels whose number is one character in base64. A Go server writes those behind them as two bytes, and reads characters in front of the digits as
 * further ones (wsstream: string('0'+num), and channel - '0' of a byte): what passes there would belong to none here, or to another one.
 */
const MAX_BASE64_CHANNELS = 80
/** The subprotocol of kubectl's port-forward: SPDY, and what is inside that. */
export const TUNNELLED_PORT_FORWARD = 'SPDY/3.1+portforward.k8s.io'

/** What is looked at of each direction, by number of the channel. */
export interface MessageChannels {
  readonly fromClient: readonly TakeBytes[]
  readonly toClient: readonly TakeBytes[]
}

/**
 * Messages of a client are one frame: servers of all versions (golang.org/x/net/websocket) take each frame for a message with a channel of its own, where
 * others would join them, so that the same bytes would be read in two ways.
 * @param subprotocol as upstream chose it; '' = none
 * @returns undefined if its messages have no such channels
 */
export function channelsReader(subprotocol: string, channels: MessageChannels): SessionReader | undefined {
  const isBase64 = SUBPROTOCOLS.get(subprotocol)
  if (isBase64 === undefined || (isBase64 && channels.fromClient.length > MAX_BASE64_CHANNELS)) return undefined
  const client = new WebSocketReader({ isMasked: true, inOneFrame: true }, new Messages(channels.fromClient, isBase64))
  const server = new WebSocketReader({ isMasked: false, inOneFrame: false }, new Messages(channels.toClient, isBase64))
  return { fromClient: (chunk) => client.read(chunk), toClient: (chunk) => server.read(chunk) }
}

/** @param inner reads what is in the tunnel */
export function tunnelReader(inner: SessionReader): SessionReader {
  const inParts = { inOneFrame: false }
  const client = new WebSocketReader({ isMasked: true, ...inParts }, new Tunnel((bytes) => inner.fromClient(bytes)))
  const server = new WebSocketReader({ isMasked: false, ...inParts }, new Tunnel((bytes) => inner.toClient(bytes)))
  return { fromClient: (chunk) => client.read(chunk), toClient: (chunk) => server.read(chunk) }
}

const DIGIT_ZERO = 0x30
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const NO_BYTES = new Uint8Array(0)

/** A stream of bytes, however it is cut. */
class Tunnel implements WebSocketSink {
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

  control(): void {
    // Not in the tunnel.
  }

  malformed(what: string): Error {
    return new MalformedSession(what)
  }
}

/** Which channel each message belongs to. */
class Messages implements WebSocketSink {
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

  control(): void {
    // No part of the session.
  }

  malformed(what: string): Error {
    return new MalformedSession(what)
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
