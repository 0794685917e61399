// HTTP/1.1 connections to one endpoint: for API servers that do not negotiate h2, and for plain http.

import type { Socket } from 'node:net'
import type { HeadMemory } from '../../../http2/header-frames.ts'
import type { Charge, HeaderList, SharedFields, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import { Http1ClientConnection, type Http1ConnectionOwner } from './http1/connection.ts'
import { Http1ClientStream } from './http1/stream.ts'
import { readBeforeWriteFails } from './last-answer.ts'
import { NO_STREAM, type SpareStreams, StreamQueue } from './stream-queue.ts'
import { UnsentStream } from './unsent-stream.ts'
import type { Carrier } from './waiting.ts'

interface Http1PoolOptions {
  /** Opens a connection. @throws (rejects) the endpoint cannot be reached, or may not be */
  connect(): Promise<Socket>
  /** The source that is charged for the head of an incoming response; called for each connection. */
  memory(): HeadMemory
  onBroken(error: Error): void
}

/** Connections of each kind, one request each: long-running requests keep theirs. */
export const MAX_HTTP1_CONNECTIONS = 256
const MAX_HTTP1_LONG_RUNNING = 1024
/** Extra connections for sources below their share while all regular ones are taken: for short and long-running requests each. */
export const MAX_HTTP1_SPARE = 64
/** For requests that must never wait. */
export const MAX_HTTP1_RESERVED = 64

/**
 * Largest header list sent over HTTP/1.1, which has no SETTINGS: net/http's limit (DefaultMaxHeaderBytes). Beyond it net/http closes the connection,
 * which would count against the endpoint.
 */
export const HTTP1_MAX_LIST_BYTES: number = 1024 * 1024
const TCP_KEEP_ALIVE_MS = 60_000
const NO_FIELDS: HeaderList = []

export class Http1Pool implements Http1ConnectionOwner {
  readonly short: Http1Class
  readonly longRunning: Http1Class
  readonly reserved: Http1Class
  readonly #options: Http1PoolOptions
  readonly #connections = new Set<Http1ClientConnection>()
  /** Those without a request; the last one was used last. */
  readonly #free: Http1ClientConnection[] = []
  /** Requests without a connection, in order; at least as many are being opened. */
  readonly #unsent = new Set<Http1ClientStream>()
  #opening = 0
  #state: 'open' | 'draining' | 'destroyed' = 'open'

  constructor(options: Http1PoolOptions) {
    this.#options = options
    this.short = new Http1Class(this, MAX_HTTP1_CONNECTIONS, MAX_HTTP1_SPARE)
    this.longRunning = new Http1Class(this, MAX_HTTP1_LONG_RUNNING, MAX_HTTP1_SPARE)
    this.reserved = new Http1Class(this, MAX_HTTP1_RESERVED)
  }

  get draining(): boolean {
    return this.#state !== 'open'
  }

  /** Sends a request, on a free connection or a new one. */
  send(stream: Http1ClientStream): void {
    const nowMs = performance.now()
    for (let free = this.#free.pop(); free !== undefined; free = this.#free.pop()) {
      if (free.isUsable(nowMs)) {
        free.carry(stream)
        return
      }
      free.closeIfFree()
    }
    this.resend(stream)
  }

  resend(stream: Http1ClientStream): void {
    this.#unsent.add(stream)
    if (this.#opening < this.#unsent.size) this.#connect()
  }

  /** It is not wanted any more. */
  forget(stream: Http1ClientStream): void {
    this.#unsent.delete(stream)
  }

  #connect(): void {
    this.#opening++
    this.#options.connect().then(
      (socket) => this.#start(socket),
      (error: Error) => this.#onFailed(error),
    )
  }

  #start(socket: Socket): void {
    this.#opening--
    if (this.#state === 'destroyed') {
      socket.destroy()
      return
    }
    readBeforeWriteFails(socket)
    // Otherwise a watch would never notice that the endpoint's machine is gone.
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS)
    const connection = new Http1ClientConnection(socket, this, this.#options.memory())
    this.#connections.add(connection)
    this.onFree(connection)
  }

  /** Nothing was sent: the oldest request may be sent elsewhere. The others wait for the connections that are still being opened. */
  #onFailed(error: Error): void {
    this.#opening--
    if (this.#state === 'destroyed') return
    this.#options.onBroken(error)
    if (this.#opening < this.#unsent.size) this.#nextUnsent()?.fail('refused')
  }

  #nextUnsent(): Http1ClientStream | undefined {
    for (const stream of this.#unsent) {
      this.#unsent.delete(stream)
      return stream
    }
    return undefined
  }

  // === called by connections ===

  onFree(connection: Http1ClientConnection): void {
    const stream = this.#nextUnsent()
    if (stream !== undefined) connection.carry(stream)
    else if (this.draining) connection.closeIfFree()
    else this.#free.push(connection)
  }

  onGone(connection: Http1ClientConnection): void {
    this.#connections.delete(connection)
    const at = this.#free.lastIndexOf(connection)
    if (at >= 0) this.#free.splice(at, 1)
  }

  onBroken(error: Error): void {
    this.#options.onBroken(error)
  }

  // === time ===

  tick(nowMs: number): void {
    this.short.tick(nowMs)
    this.longRunning.tick(nowMs)
    this.reserved.tick(nowMs)
  }

  /** Takes no new requests; running ones finish. */
  drain(): void {
    if (this.#state !== 'open') return
    this.#state = 'draining'
    for (const connection of this.#free.splice(0)) connection.closeIfFree()
  }

  destroy(): void {
    this.#state = 'destroyed'
    this.short.refuseWaiting()
    this.longRunning.refuseWaiting()
    this.reserved.refuseWaiting()
    for (const connection of [...this.#connections]) connection.abort()
    for (const stream of [...this.#unsent]) stream.fail('refused')
  }
}

/** Requests of one kind: a limited number in flight, the others wait. */
export class Http1Class implements SpareStreams {
  readonly #pool: Http1Pool
  readonly #most: number
  readonly #queue: StreamQueue
  readonly #open = new Set<Http1ClientStream>()
  /** For requests whose turn has come. */
  readonly #inTurn: Carrier = {
    open: (head, shared, end, events, charge) => this.#send(head, shared, end, events, charge),
  }

  readonly #spare: Http1Class | undefined
  /** Called when spare connections become free; set if these are spare. */
  readonly #onSpareRoom: (() => void) | undefined

  constructor(pool: Http1Pool, most: number, spare = 0, onSpareRoom?: () => void) {
    this.#onSpareRoom = onSpareRoom
    if (spare > 0) this.#spare = new Http1Class(pool, spare, 0, () => this.#useSpare())
    this.#pool = pool
    this.#most = most
    this.#queue = new StreamQueue(() => this.#holders())
  }

  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents, charge: Charge): Stream {
    if (this.#pool.draining) return new UnsentStream(events, 'refused')
    if (!this.full) return this.#send(head, shared, end, events, charge)
    if (this.#spare !== undefined && this.#queue.isLight(charge) && this.#spare.admits(charge))
      return this.#spare.open(head, shared, end, events, charge)
    return this.#queue.wait(head, shared, end, events, charge)
  }

  get hasRoom(): boolean {
    return this.#queue.hasRoom(this.#most - this.#open.size)
  }

  admits(charge: Charge): boolean {
    return this.#queue.admits(charge, this.#most - this.#open.size)
  }

  #useSpare(): void {
    if (this.#spare !== undefined) this.#queue.sendLight(this.#spare)
  }

  #send(
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
  ): Stream {
    const stream = new Http1ClientStream(head, shared?.list ?? NO_FIELDS, end, events, charge, this)
    if (stream.listBytes > HTTP1_MAX_LIST_BYTES) return new UnsentStream(events, 'head-too-large')
    if (!stream.isSendable) return new UnsentStream(events, 'refused')
    this.#open.add(stream)
    this.#queue.opened(charge)
    this.#pool.send(stream)
    return stream
  }

  *#holders(): Iterable<Charge> {
    for (const { charge } of this.#open) yield charge
  }

  get full(): boolean {
    return this.#queue.count > 0 || this.#open.size >= this.#most
  }

  get streams(): number {
    return this.#open.size + (this.#spare?.streams ?? 0)
  }

  get waiting(): number {
    return this.#queue.count + (this.#spare?.waiting ?? 0)
  }

  onOver(stream: Http1ClientStream): void {
    if (!this.#open.delete(stream)) return
    this.#pool.forget(stream)
    this.#queue.ended(stream.charge)
    while (this.#queue.count > 0 && this.#open.size < this.#most) this.#queue.next()?.send(this.#inTurn)
    this.#onSpareRoom?.()
  }

  tick(nowMs: number): void {
    this.#queue.tick(nowMs, NO_STREAM)
    this.#spare?.tick(nowMs)
    this.#useSpare()
  }

  /** Refuses everything that waits. */
  refuseWaiting(): void {
    this.#spare?.refuseWaiting()
    for (const stream of this.#queue.takeAll()) stream.refuse()
  }
}
