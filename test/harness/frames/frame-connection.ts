// One end of an HTTP/2 connection on a socket, frame by frame: it acknowledges SETTINGS and answers PING, and does nothing else by itself.

import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { waitFor } from '../wait.ts'
import {
  ACK,
  DATA,
  type Frame,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  RST_STREAM,
  SETTINGS,
  settings,
  statusOf,
} from './h2-frames.ts'

const FRAME_HEADER_BYTES = 9
const NOTHING = Buffer.alloc(0)

export interface FrameOptions {
  readonly port: number
  /** SNI. Default: none. */
  readonly serverName?: string
  readonly cert?: KeyPair
  /** Pairs of setting and value of the first SETTINGS frame. */
  readonly settings?: readonly (readonly [number, number])[]
}

/** A client that has sent the preface and SETTINGS. Rejects when the handshake fails. */
export async function connectFrames(options: FrameOptions): Promise<FrameConnection> {
  const { port, serverName, cert } = options
  const socket = connect({
    host: '127.0.0.1',
    port,
    ALPNProtocols: ['h2'],
    rejectUnauthorized: false,
    ...(serverName !== undefined && { servername: serverName }),
    ...(cert !== undefined && { cert: cert.certPem, key: cert.keyPem }),
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
  })
  const connection = new FrameConnection(socket)
  connection.send(Buffer.from(PREFACE), settings(...(options.settings ?? [])))
  return connection
}

export class FrameConnection {
  readonly socket: Socket
  /** All frames so far, in order. */
  readonly frames: Frame[] = []
  /** Resolves when the peer has closed or reset the connection. */
  readonly closed: Promise<void>
  isClosed = false
  /** DATA received, by stream; 0 = all. */
  readonly dataBytes: Map<number, number> = new Map()
  /** Called for each frame as it comes. */
  onFrame: (frame: Frame) => void = () => undefined
  /** False: SETTINGS and PING are not answered. */
  answers = true
  #rest: Buffer = NOTHING
  /** Bytes of the peer's preface that are still to come. */
  #preface: number

  /** @param prefaceBytes what the peer sends before its first frame: nothing when it is the server */
  constructor(socket: Socket, prefaceBytes: number = 0) {
    this.socket = socket
    this.#preface = prefaceBytes
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', () => undefined) // a reset is an answer like any other: 'close' follows
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.isClosed = true
        resolve()
      })
    })
  }

  send(...parts: readonly Buffer[]): void {
    if (!this.socket.destroyed) this.socket.write(parts.length === 1 ? (parts[0] ?? NOTHING) : Buffer.concat(parts))
  }

  /** The first frame that matches. Throws when the connection closes before it comes. */
  async frame(what: string, matches: (frame: Frame) => boolean): Promise<Frame> {
    const found = await waitFor(what, () => this.frames.find(matches) ?? (this.isClosed && 'closed'), {
      intervalMs: 5,
    })
    if (found === 'closed') throw new Error(`closed before ${what}; GOAWAY: ${this.goawayCode}`)
    return found
  }

  /** Status of the first response head of a stream. */
  async status(stream: number): Promise<number> {
    const head = await this.frame(`a response on stream ${stream}`, (f) => f.type === HEADERS && f.stream === stream)
    return statusOf(head.payload)
  }

  /** Code of the RST_STREAM of a stream, once it has come. */
  async reset(stream: number): Promise<number> {
    const found = await this.frame(`RST_STREAM of ${stream}`, (f) => f.type === RST_STREAM && f.stream === stream)
    return found.payload.readUInt32BE()
  }

  /** Resolves when the peer has ended this stream in good order. */
  async end(stream: number): Promise<void> {
    const isEnd = (f: Frame): boolean => (f.type === DATA || f.type === HEADERS) && (f.flags & 1) !== 0
    await this.frame(`the end of stream ${stream}`, (f) => f.stream === stream && isEnd(f))
  }

  /** The code of the last GOAWAY; undefined before one has come. */
  get goawayCode(): number | undefined {
    return this.frames.findLast(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4)
  }

  resets(): Frame[] {
    return this.frames.filter(({ type }) => type === RST_STREAM)
  }

  destroy(): void {
    this.socket.destroy()
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = Math.min(this.#preface, bytes.length)
    this.#preface -= at
    while (at + FRAME_HEADER_BYTES <= bytes.length) {
      const end = at + FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3)
      if (end > bytes.length) break
      const type = bytes[at + 3] ?? 0
      this.#take({
        type,
        flags: bytes[at + 4] ?? 0,
        stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
        payload: bytes.subarray(at + FRAME_HEADER_BYTES, end),
      })
      at = end
    }
    this.#rest = bytes.subarray(at)
  }

  #take(received: Frame): void {
    const { type, flags, stream, payload } = received
    if (type === DATA) {
      this.dataBytes.set(stream, (this.dataBytes.get(stream) ?? 0) + payload.length)
      this.dataBytes.set(0, (this.dataBytes.get(0) ?? 0) + payload.length)
    }
    this.frames.push(received)
    if (this.answers && (flags & ACK) === 0) {
      if (type === SETTINGS) this.send(frame(SETTINGS, ACK, 0))
      if (type === PING) this.send(frame(PING, ACK, 0, payload))
    }
    this.onFrame(received)
  }
}
