// The connections that a pool of HTTP/1.1 opens, and the endpoint that a test plays on them: bytes come, and go back.

import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { Http1Pool } from '../../../src/gateway/io/upstream/http1.ts'
import type { HeaderList, Stream } from '../../../src/kit/api/stream.ts'
import { turns } from '../turns.ts'
import { Received } from './http2-sides.ts'

/** One connection, from the endpoint's side. */
export class EndpointSocket extends Duplex {
  /** What the gateway has sent. */
  text = ''
  /** One entry for each write. */
  readonly writes: string[] = []
  /** Writes are not completed before `unblock`. */
  isBlocked = false
  #done: (() => void) | undefined

  override _read(): void {
    // The test says what comes.
  }

  override _write(chunk: Buffer, _encoding: unknown, done: () => void): void {
    this.#take(chunk, done)
  }

  override _writev(chunks: { readonly chunk: Buffer }[], done: () => void): void {
    this.#take(Buffer.concat(chunks.map(({ chunk }) => chunk)), done)
  }

  #take(bytes: Buffer, done: () => void): void {
    const text = bytes.toString('latin1')
    this.text += text
    this.writes.push(text)
    if (this.isBlocked) this.#done = done
    else done()
  }

  setKeepAlive(): this {
    return this
  }

  unblock(): void {
    this.isBlocked = false
    const done = this.#done
    this.#done = undefined
    done?.()
  }

  /** The endpoint sends. */
  async send(text: string): Promise<void> {
    this.push(Buffer.from(text, 'latin1'))
    await turns()
  }

  /** The endpoint closes its half. */
  async finish(): Promise<void> {
    this.push(null)
    await turns()
  }
}

export interface Asked extends Received {
  readonly stream: Stream
}

export class Http1Endpoint {
  readonly sockets: EndpointSocket[] = []
  readonly broken: string[] = []
  readonly pool: Http1Pool
  /** Bytes of heads that may be kept; above them they are refused. */
  mostHeadBytes: number = Number.POSITIVE_INFINITY
  heldBytes = 0
  /** Connections fail with it. */
  failure: Error | undefined

  constructor() {
    this.pool = new Http1Pool({
      connect: async () => {
        if (this.failure !== undefined) throw this.failure
        const socket = new EndpointSocket()
        this.sockets.push(socket)
        return socket as unknown as Socket
      },
      memory: () => ({
        hold: (bytes) => {
          this.heldBytes = bytes
          return bytes > this.mostHeadBytes ? { message: 'no memory' } : undefined
        },
      }),
      onBroken: (error) => void this.broken.push(error.message),
    })
  }

  /** The connection that was opened last. */
  get socket(): EndpointSocket {
    const socket = this.sockets.at(-1)
    if (socket === undefined) throw new Error('no connection was opened')
    return socket
  }

  /** Sends a request, and lets turns pass. */
  async ask(method = 'GET', { fields = [] as HeaderList, end = true, path = '/', body = '' } = {}): Promise<Asked> {
    const received = this.open([':method', method, ':path', path, ...fields], end)
    if (body !== '') received.stream.body(Buffer.from(body), true)
    await turns()
    return received
  }

  /** In this turn. */
  askNow(path: string): Asked {
    return this.open([':method', 'GET', ':path', path], true)
  }

  /** In this turn. */
  open(head: HeaderList, end: boolean): Asked {
    const received = new Received()
    const charge = { source: 'alice', weight: 1, known: true }
    const list = [...head.slice(0, 4), ':authority', 'a', ':scheme', 'https', ...head.slice(4)]
    received.stream = this.pool.short.open(list, undefined, end, received, charge)
    return received as Asked
  }
}
