// A WebSocket of which the gateway itself is the server: it sends what it is given, and reads what a client may say meanwhile, which is nothing but pings and
// the end. As kube-apiserver's server of watches does (apiserver/pkg/endpoints/handlers/watch.go, HandleWS), it ignores messages.

import { createHash } from 'node:crypto'
import { type Duplex, Writable } from 'node:stream'
import type { Charge } from '../../../../kit/api/stream.ts'
import { CLOSURES, closeFrame, OPCODES, pongFrame } from '../../../core/websocket/frames.ts'
import { WebSocketReader, type WebSocketSink } from '../../../core/websocket/websocket-reader.ts'
import { FairPipe } from '../../socket/fair-pipe.ts'
import { closeBehind } from '../../socket/socket-close.ts'

/** RFC 6455 section 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** A longer frame of a client ends it, as in kube-apiserver (golang.org/x/net/websocket, DefaultMaxPayloadBytes); shorter ones are skipped. */
const MOST_SKIPPED_BYTES = 32 * 1024 * 1024

/** How long a client has to take what was written before the close: it has no place among watches any more. */
const MOST_CLOSING_MS = 60_000

/** Sec-WebSocket-Accept. */
export function webSocketAccept(key: string): string {
  return createHash('sha1')
    .update(key + GUID, 'latin1')
    .digest('base64')
}

class MalformedFrames extends Error {}

export class Http1WebSocket {
  readonly #socket: Duplex
  readonly #onGone: () => void
  readonly #received: WebSocketReader
  /** Where frames end that are sent: nothing else goes in between. */
  readonly #sent: WebSocketReader
  /** Payload of a ping that is not answered yet: of several, the last (section 5.5.3). */
  #ping: Buffer | undefined
  #isPonging = false
  #isOver = false

  /**
   * @param first what has come of the client already
   * @param charge the source that is charged for what else it sends
   * @param onGone called once if it was the client that ended it
   */
  constructor(socket: Duplex, first: Buffer, charge: Charge, onGone: () => void) {
    this.#socket = socket
    this.#onGone = onGone
    const received: WebSocketSink = { ...UNREAD, control: (opcode, payload) => this.#control(opcode, payload) }
    this.#received = new WebSocketReader({ isMasked: true, inOneFrame: false, mostBytes: MOST_SKIPPED_BYTES }, received)
    this.#sent = new WebSocketReader({ isMasked: false, inOneFrame: false }, UNREAD)
    const input = new Writable({
      write: (chunk: Buffer, _, done) => {
        this.#read(chunk)
        done()
      },
      final: (done) => {
        this.#gone(CLOSURES.normal)
        done()
      },
    })
    // Read in a later turn: the answer has only begun.
    if (first.length > 0) socket.unshift(first)
    new FairPipe(socket, input, charge)
  }

  /** @param chunk of frames, which may go on in the next one */
  send(chunk: Buffer): void {
    this.#socket.write(Buffer.from(chunk))
    this.#sent.read(chunk)
    this.#pong()
  }

  /** Nothing more is sent. */
  end(): void {
    if (!this.#isOver) this.#close(CLOSURES.normal)
  }

  #control(opcode: number, payload: Uint8Array): void {
    if (opcode === OPCODES.close) this.#gone(CLOSURES.normal)
    if (opcode === OPCODES.ping) this.#ping = Buffer.from(payload)
  }

  #read(chunk: Buffer): void {
    if (this.#isOver) return
    try {
      this.#received.read(chunk)
    } catch (error) {
      if (!(error instanceof MalformedFrames)) throw error
      this.#gone(CLOSURES.protocolError)
    }
    this.#pong()
  }

  /** Once for all pings that came together, and not again before the client has taken it. */
  #pong(): void {
    if (this.#ping === undefined || this.#isPonging || this.#isOver || !this.#sent.isBetweenFrames) return
    this.#isPonging = true
    this.#socket.write(pongFrame(this.#ping), (error) => {
      this.#isPonging = false
      if (!error) this.#pong()
    })
    this.#ping = undefined
  }

  #gone(status: number): void {
    if (this.#isOver) return
    this.#close(status)
    this.#onGone()
  }

  #close(status: number): void {
    this.#isOver = true
    // Within a message a close frame would be a part of it.
    const socket = this.#socket
    if (!this.#sent.isBetweenFrames) {
      socket.destroy()
      return
    }
    const deadline = setTimeout(() => socket.destroy(), MOST_CLOSING_MS).unref()
    socket.once('close', () => clearTimeout(deadline))
    closeBehind(socket, closeFrame(status).toString('latin1'))
  }
}

/** Messages are of no interest. */
const UNREAD: WebSocketSink = {
  wants: false,
  begin: () => undefined,
  add: () => undefined,
  end: () => undefined,
  control: () => undefined,
  malformed: (what) => new MalformedFrames(what),
}
