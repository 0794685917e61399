// A connection over HTTP/1.1 without a socket, and the client that a test plays: bytes go in, and come out.

import { Http1Connection, type Http1ConnectionLimits } from '../../../src/gateway/io/listener/http1/connection.ts'
import { WITHOUT_PAUSE } from '../../../src/http2/frame-reader.ts'
import type { Charge, HeaderList, Peer } from '../../../src/kit/api/stream.ts'
import type { OpenHead } from '../../../src/kit/core/shares/open-heads.ts'
import { Received } from './http2-sides.ts'

const LIMITS: Http1ConnectionLimits = {
  maxHeaderBytes: 64 * 1024,
  maxConcurrentStreams: 10,
  headerTimeoutMs: 10_000,
  idleTimeoutMs: 120_000,
}

export interface Http1SideOptions {
  readonly limits?: Partial<Http1ConnectionLimits>
  readonly charge?: Charge
  readonly heads?: OpenHead
}

export class Http1Side {
  readonly requests: Received[] = []
  readonly connection: Http1Connection
  readonly peer: Peer
  readonly serving = { limits: LIMITS, draining: false, handler: this.#onRequest.bind(this) }
  /** What the connection has sent, as far as it was taken. */
  text = ''
  closed = false
  aborted = false
  outputEnded = false
  isWaiting = false
  upgraded: { readonly list: HeaderList; readonly first: string } | undefined
  nowMs = 0
  #rest: Buffer = Buffer.alloc(0)

  constructor({ limits = {}, charge = { source: 'alice', weight: 1, known: true }, heads }: Http1SideOptions = {}) {
    this.peer = { charge } as Peer
    const serving = Object.assign(this.serving, { limits: { ...LIMITS, ...limits } })
    this.connection = new Http1Connection(serving, this, this.peer, heads, (list, first) => {
      this.upgraded = { list, first: first.toString('latin1') }
    })
    this.connection.tick(this.nowMs)
  }

  #onRequest(_peer: Peer, stream: Received['stream'], head: HeaderList, end: boolean): Received {
    const received = new Received()
    Object.assign(received, { stream, head, end })
    this.requests.push(received)
    return received
  }

  /** The connection may take only a part of it: the rest follows with `goOn`. */
  send(bytes: string | Buffer): void {
    const chunk = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    this.goOn()
  }

  /** Bytes that the connection has not read. */
  get unread(): number {
    return this.#rest.length
  }

  goOn(): void {
    while (this.#rest.length > 0 && !this.connection.held) {
      const chunk = this.#rest
      this.#rest = Buffer.alloc(0)
      const at = this.connection.receive(chunk, this.nowMs, 0, WITHOUT_PAUSE)
      this.#rest = Buffer.concat([chunk.subarray(at), this.#rest])
    }
  }

  /** The socket takes one write. */
  take(bytes = 128 * 1024): string {
    const parts: Buffer[] = []
    this.connection.takeOutput(bytes, parts)
    const taken = Buffer.concat(parts).toString('latin1')
    this.connection.releaseOutput()
    this.text += taken
    return taken
  }

  takeAll(): string {
    while (this.connection.hasOutput) this.take()
    return this.text
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 1000) {
      this.nowMs += 1000
      this.connection.tick(this.nowMs)
    }
  }

  // === the driver ===

  get isEnded(): boolean {
    return this.outputEnded && !this.connection.hasOutput
  }

  onOutput(): void {
    // Taken when the test says so.
  }

  onClosed(): void {
    this.closed = true
  }

  endOutput(): void {
    this.outputEnded = true
  }

  abort(): void {
    if (this.aborted) return
    this.aborted = true
    this.connection.destroy(0)
  }
}
