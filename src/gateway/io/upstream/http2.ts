// HTTP/2 connections to one endpoint for one class of requests, so that a large list, thousands of watches or a 401 (which makes kube-apiserver close
// the connection) never affect requests of another class.

import type { Duplex } from 'node:stream'
import type { Http2Counters } from '../../../http2/counters.ts'
import type { HeadMemory } from '../../../http2/header-frames.ts'
import type { Charge, HeaderList, SharedFields, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import type { UpstreamCounters } from '../../metrics/upstream-counters.ts'
import { type CloseCause, type ConnectionOwner, SLOW_START_STREAMS, UpstreamConnection } from './http2-connection.ts'
import { NO_STREAM, type SpareStreams, StreamQueue } from './stream-queue.ts'
import { UnsentStream } from './unsent-stream.ts'
import type { Carrier, WaitingStream } from './waiting.ts'

interface Http2Connector {
  /** A socket that negotiated h2, or an error. */
  connect(): Promise<Duplex>
  /** Accounts for incoming heads, per connection. Default: unlimited memory. */
  head?(): HeadMemory
  /** After how long a connection without requests is closed. Default: a minute. */
  idleCloseMs?(): number
  /** A connection could not be opened: the endpoint may be down. */
  onFailed(error: Error): void
  /** A connection broke unexpectedly: the endpoint may be down. */
  onBroken(error: Error): void
  /** Sources whose requests probably broke a connection. Called before its streams are notified. */
  onSuspects(charges: readonly Charge[], certain: boolean, readyAtMs: number): void
  /** A connection is ready for use. */
  onReady?(): void
  /** This many streams were ended by upstream, or by the end of a connection. */
  onStreamsEnded?(count: number): void
}

/** Counters of the engine and of connections. */
export interface Http2GroupCounters {
  readonly http2: Http2Counters
  readonly pool: UpstreamCounters
}

/** How requests are assigned to connections. */
export interface Http2GroupShape {
  /**
   * Connections among which requests are spread once each has some load; more are opened only when streams run out. One: a connection is filled
   * before the next is used.
   */
  readonly spread: number
  /** Maximum connections; beyond that, requests wait for a free stream. */
  readonly connections: number
  /** Answers wait behind those of other groups. Default: false */
  readonly isBulk?: boolean
}

/** Another connection is opened when fewer spare streams than this are free. */
const SPARE_AHEAD = 16
/** Maximum connections that have not responded yet, so that a server that has just started does not get all at once. */
const MAX_UNPROVEN = 2

export class Http2Group implements ConnectionOwner, SpareStreams {
  readonly #connector: Http2Connector
  readonly #shape: Http2GroupShape
  readonly #counters: Http2GroupCounters
  /** All connections that are open or opening, including retired ones that still carry streams. */
  readonly #connections: UpstreamConnection[] = []
  readonly #queue: StreamQueue
  /** Whether a connection is being opened, until its SETTINGS arrive: at most one at a time. */
  #opening = false
  /** The last attempt failed: no new one before the next tick, unless a waiting request has no alternative. */
  #failed = false
  #state: 'open' | 'draining' | 'destroyed' = 'open'
  /** Called when spare streams become free; set if these are spare. */
  readonly #onSpareRoom: (() => void) | undefined
  readonly #createSpare: ((onRoom: () => void) => Http2Group) | undefined
  /** Streams for sources below their share while others hold all regular ones. Absent until needed. */
  #spare: Http2Group | undefined

  /** @param spare creates the group of spare streams for this one, with a callback for when it has more; or states that this is such a group */
  constructor(
    connector: Http2Connector,
    shape: Http2GroupShape,
    counters: Http2GroupCounters,
    spare: { readonly create?: (onRoom: () => void) => Http2Group; readonly onRoom?: () => void } = {},
  ) {
    this.#createSpare = spare.create
    this.#onSpareRoom = spare.onRoom
    this.#connector = connector
    this.#counters = counters
    this.#shape = shape
    this.#queue = new StreamQueue(() => this.#holders())
  }

  /** Sends a request; errors are reported asynchronously by `events.onReset`. */
  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents, charge: Charge): Stream {
    // Waiting requests go first.
    const connection = this.#queue.count === 0 ? this.#pick() : undefined
    if (connection !== undefined) {
      this.#queue.opened(charge)
      return connection.open(head, shared, end, events, charge)
    }
    if (this.#state === 'destroyed') return new UnsentStream(events, 'refused')
    const spare = this.#spareFor(charge)
    if (spare !== undefined) {
      this.#connectForWaiting()
      return spare.open(head, shared, end, events, charge)
    }
    const stream = this.#queue.wait(head, shared, end, events, charge)
    this.#connectForWaiting()
    return stream
  }

  /** undefined: the request has to wait. */
  #spareFor(charge: Charge): Http2Group | undefined {
    // Without a connection, other sources cannot hold any streams.
    if (this.#createSpare === undefined || this.#state !== 'open' || this.#active() === 0) return undefined
    if (!this.#queue.isLight(charge)) return undefined
    this.#spare ??= this.#createSpare(() => this.#useSpare())
    this.#spare.#connectAhead()
    return this.#spare.admits(charge) ? this.#spare : undefined
  }

  #useSpare(): void {
    if (this.#spare !== undefined) this.#queue.sendLight(this.#spare)
  }

  /** For use as the spare streams of another group. */
  get hasRoom(): boolean {
    return this.#state === 'open' && this.#queue.hasRoom(this.#free)
  }

  /** Likewise. */
  admits(charge: Charge): boolean {
    return this.#state === 'open' && this.#queue.admits(charge, this.#free)
  }

  /** Streams that could be opened now, or on the first connection. */
  get #free(): number {
    if (this.#active() === 0) return this.#failed ? 0 : SLOW_START_STREAMS
    let free = 0
    for (const connection of this.#connections) free += connection.free
    return free
  }

  /** The source of every open stream. */
  *#holders(): Iterable<Charge | undefined> {
    for (const connection of this.#connections) yield* connection.charges()
  }

  /** The connection for the next request; undefined = no free stream. */
  #pick(): UpstreamConnection | undefined {
    const connections = this.#connections
    const { spread } = this.#shape
    let best: UpstreamConnection | undefined
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < connections.length; i++) {
      const connection = connections[i]
      if (connection === undefined || !connection.takesMore) continue
      // The first lightly loaded one: requests on one connection share its writes, and the others become idle.
      if (spread === 1 || connection.isLight) return connection
      const { load } = connection
      if (load >= least) continue
      best = connection
      least = load
    }
    if (best?.proven === true && !this.#opening && !this.#failed && this.#active() < spread) this.#connect()
    return best
  }

  // === opening ===

  #connectForWaiting(): void {
    if (this.#opening || this.#queue.count === 0 || this.#state === 'destroyed') return
    const active = this.#active()
    if (active >= this.#shape.connections || (this.#failed && active > 0)) return
    // Connections in slow start will take more soon.
    let unproven = 0
    let room = 0
    for (const connection of this.#connections) {
      if (!connection.active || connection.proven) continue
      unproven++
      room += connection.room
    }
    if (unproven < MAX_UNPROVEN && room < this.#queue.count) this.#connect()
  }

  /** For spare streams: waits for them are too short to trigger opening a connection. */
  #connectAhead(): void {
    if (this.#opening || this.#failed || this.#state !== 'open' || this.#free >= SPARE_AHEAD) return
    const unproven = this.#connections.filter((connection) => connection.active && !connection.proven).length
    if (this.#active() < this.#shape.connections && unproven < MAX_UNPROVEN) this.#connect()
  }

  #active(): number {
    let count = 0
    for (const connection of this.#connections) if (connection.active) count++
    return count
  }

  #connect(): void {
    this.#opening = true
    this.#connector.connect().then(
      (socket) => this.#start(socket),
      (error: Error) => {
        this.#counters.pool.connectFailed++
        this.#connector.onFailed(error)
        this.#onFailed()
      },
    )
  }

  #start(socket: Duplex): void {
    if (this.#state === 'destroyed') {
      socket.destroy()
      this.#onFailed()
      return
    }
    const { http2 } = this.#counters
    const { isBulk = false } = this.#shape
    const head = this.#connector.head?.()
    this.#connections.push(new UpstreamConnection(socket, http2, this, performance.now(), Math.random(), isBulk, head))
  }

  /** Rejects all waiting requests: none was sent, so they may be sent elsewhere. */
  #onFailed(): void {
    this.#opening = false
    this.#failed = true
    if (this.#active() > 0 && this.#state !== 'destroyed') return
    for (const stream of this.takeWaiting()) stream.refuse()
  }

  /** Removes and returns the waiting requests. */
  takeWaiting(): WaitingStream[] {
    return this.#queue.takeAll()
  }

  /** The endpoint does not speak h2: waiting requests use another transport. */
  handOver(carrier: Carrier): void {
    for (const stream of this.takeWaiting()) stream.send(carrier)
    this.#spare?.handOver(carrier)
  }

  // === called by connections ===

  onReady(): void {
    this.#counters.pool.opened++
    this.#connector.onReady?.()
    this.#opening = false
    this.#failed = false
    this.#retireExpired(performance.now())
    this.onRoom()
    if (this.#state === 'draining') this.#retireAll()
  }

  onRoom(): void {
    if (this.#queue.count > 0) this.#sendWaiting()
    if (this.#queue.count === 0) this.#onSpareRoom?.()
  }

  #sendWaiting(): void {
    for (let connection = this.#pick(); connection !== undefined; connection = this.#pick()) {
      const stream = this.#queue.next()
      if (stream === undefined) return
      this.#queue.opened(stream.charge)
      stream.send(connection)
    }
    this.#connectForWaiting()
  }

  onStreamGone(charge: Charge | undefined, byUs: boolean): void {
    this.#queue.ended(charge)
    if (!byUs) this.#connector.onStreamsEnded?.(1)
  }

  onSuspects(charges: readonly Charge[], certain: boolean, readyAtMs: number): void {
    this.#connector.onSuspects(charges, certain, readyAtMs)
  }

  onStreamsEnded(streams: number): void {
    if (this.#state !== 'destroyed') this.#connector.onStreamsEnded?.(streams)
  }

  onGone(connection: UpstreamConnection, cause: CloseCause, broken: Error | undefined, wasReady: boolean): void {
    const at = this.#connections.indexOf(connection)
    if (at >= 0) this.#connections.splice(at, 1)
    this.#queue.recount()
    this.#counters.pool[wasReady ? cause : 'connectFailed']++
    if (broken !== undefined && wasReady) this.#connector.onBroken(broken)
    if (broken !== undefined && !wasReady) this.#connector.onFailed(broken)
    // One that ends before its SETTINGS counts as refused.
    if (!wasReady) this.#onFailed()
    else this.#connectForWaiting()
  }

  // === time ===

  tick(nowMs: number): void {
    this.#failed = false
    this.#queue.tick(nowMs, this.#active() > 0 ? NO_STREAM : undefined)
    const idleCloseMs = this.#connector.idleCloseMs?.()
    for (const connection of [...this.#connections]) connection.tick(nowMs, idleCloseMs)
    this.#retireExpired(nowMs)
    this.onRoom()
    if (this.#state === 'draining') this.#retireAll()
    this.#spare?.tick(nowMs)
    if (this.#spare?.over === true) this.#spare = undefined
  }

  /** Retires an old connection if there is another one, so that no request waits for its successor. */
  #retireExpired(nowMs: number): void {
    let expired = false
    let fresh = false
    for (const connection of this.#connections) {
      if (connection.expired) expired = true
      else if (connection.takesMore) fresh = true
    }
    if (!expired) return
    for (const connection of [...this.#connections]) {
      if (connection.expired && (fresh || connection.streams === 0)) connection.retire('closedByAge', nowMs)
    }
    if (!fresh && this.#active() > 0 && this.#state === 'open' && !this.#opening && !this.#failed) this.#connect()
  }

  /** Takes no new requests; accepted ones finish, even if they still wait for a connection. */
  drain(): void {
    if (this.#state !== 'open') return
    this.#state = 'draining'
    this.#retireAll()
    this.#spare?.drain()
  }

  #retireAll(): void {
    if (this.#queue.count > 0) return
    const nowMs = performance.now()
    for (const connection of [...this.#connections]) connection.retire('closedByDrain', nowMs)
  }

  destroy(): void {
    this.#state = 'destroyed'
    this.#spare?.destroy()
    for (const connection of [...this.#connections]) connection.destroy()
    for (const stream of this.takeWaiting()) stream.refuse()
  }

  /** The smallest SETTINGS_MAX_HEADER_LIST_SIZE of all connections; infinite if not sent. */
  get maxListBytes(): number {
    return Math.min(...this.#connections.map((connection) => connection.maxListBytes))
  }

  /** The next request would have to wait for a stream. */
  get full(): boolean {
    if (this.#queue.count > 0) return true
    for (const connection of this.#connections) if (connection.takesMore) return false
    return this.#connections.length > 0
  }

  /** Includes the spare ones, as do the next two. */
  get connections(): number {
    return this.#connections.length + (this.#spare?.connections ?? 0)
  }

  get streams(): number {
    let sum = this.#spare?.streams ?? 0
    for (const connection of this.#connections) sum += connection.streams
    return sum
  }

  get waiting(): number {
    return this.#queue.count + (this.#spare?.waiting ?? 0)
  }

  /** Everything is closed. */
  get over(): boolean {
    if (this.#spare?.over === false) return false
    return this.#connections.length === 0 && this.#queue.count === 0 && !this.#opening
  }
}
