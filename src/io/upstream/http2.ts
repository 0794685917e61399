// HTTP/2 connections to one endpoint for one class of requests, so that a large list, thousands of watches or a 401 (which
// makes kube-apiserver close the connection) never disturb requests of another class.

import type { Duplex } from 'node:stream'
import type { HeaderList, SharedFields, Stream, StreamEvents } from '../../api/ports/stream.ts'
import type { Http2Counters } from '../../http2/counters.ts'
import type { UpstreamCounters } from '../metrics/upstream-counters.ts'
import { type CloseCause, type ConnectionOwner, UpstreamConnection } from './http2-connection.ts'
import { type Carrier, WaitingStream } from './waiting.ts'

export interface Http2Connector {
  /** A socket that negotiated h2, or an error. */
  connect(): Promise<Duplex>
  /** A connection could not be made: a reason to doubt the endpoint. */
  onFailed(error: Error): void
  /** One broke that had not been asked to close: another reason. */
  onLost(error: Error): void
}

/** What is counted: by the engine, and of connections. */
export interface Http2GroupCounters {
  readonly http2: Http2Counters
  readonly pool: UpstreamCounters
}

/** How requests are laid on connections. */
export interface Http2GroupShape {
  /**
   * Connections among which requests are spread once each has some load; more are opened only when streams run out. One:
   * a connection is filled before the next is used.
   */
  readonly spread: number
  /** At most; beyond it requests wait for a free stream. */
  readonly connections: number
}

/**
 * A request that waits for a connection or a stream for so long is refused: twice what connecting may take. Its client gets
 * an answer rather than silence, and may come back when there is room, or go elsewhere.
 */
const LONGEST_WAIT_MS = 10_000
/** Load (streams, and bytes counted as such) that one connection carries before requests go to another one as well. */
const SPREAD_LOAD = 16
/** Connections that have not answered yet at most, so that a server which has just started is not met by all at once. */
const MAX_UNPROVEN = 2

export class Http2Group implements ConnectionOwner {
  readonly #connector: Http2Connector
  readonly #shape: Http2GroupShape
  readonly #counters: Http2GroupCounters
  /** All that are open, and those that are coming up: also what was retired and still carries streams. */
  readonly #connections: UpstreamConnection[] = []
  readonly #waiting = new Set<WaitingStream>()
  readonly #onAbandoned = (stream: WaitingStream): void => void this.#waiting.delete(stream)
  /** One connection is on its way, from the call until its SETTINGS: there is only ever one. */
  #opening = false
  /** The last one failed: not again before the next tick, unless somebody waits who has nothing else. */
  #failed = false
  #state: 'open' | 'draining' | 'destroyed' = 'open'

  constructor(connector: Http2Connector, shape: Http2GroupShape, counters: Http2GroupCounters) {
    this.#connector = connector
    this.#counters = counters
    this.#shape = shape
  }

  /** Sends a request; never fails at once: what goes wrong is told by `events.onReset`. */
  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents): Stream {
    // First come, first served: who waits goes before.
    const connection = this.#waiting.size === 0 ? this.#pick() : undefined
    if (connection !== undefined) return connection.open(head, shared, end, events)
    const stream = new WaitingStream(head, shared, end, events, this.#onAbandoned, performance.now())
    if (this.#state === 'destroyed') queueMicrotask(() => stream.refuse())
    else {
      this.#waiting.add(stream)
      this.#connectForWaiting()
    }
    return stream
  }

  /** The connection for the next request; undefined = none has a free stream. */
  #pick(): UpstreamConnection | undefined {
    const connections = this.#connections
    const { spread } = this.#shape
    let best: UpstreamConnection | undefined
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < connections.length; i++) {
      const connection = connections[i]
      if (connection === undefined || !connection.takesMore) continue
      const load = connection.load
      // The first that has little to do: requests that share a connection share its writes, and the others become idle.
      if (spread === 1 || load < SPREAD_LOAD) return connection
      if (load >= least) continue
      best = connection
      least = load
    }
    if (best?.proven === true && !this.#opening && !this.#failed && this.#active() < spread) this.#connect()
    return best
  }

  // === opening ===

  #connectForWaiting(): void {
    if (this.#opening || this.#waiting.size === 0 || this.#state === 'destroyed') return
    const active = this.#active()
    if (active >= this.#shape.connections || (this.#failed && active > 0)) return
    // What is still in slow start will take more before long.
    let unproven = 0
    let room = 0
    for (const connection of this.#connections) {
      if (!connection.active || connection.proven) continue
      unproven++
      room += connection.room
    }
    if (unproven < MAX_UNPROVEN && room < this.#waiting.size) this.#connect()
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
    this.#connections.push(new UpstreamConnection(socket, http2, this, performance.now(), Math.random()))
  }

  /** Nothing of what waits has been sent: it may be sent elsewhere, where nothing here will take it. */
  #onFailed(): void {
    this.#opening = false
    this.#failed = true
    if (this.#active() > 0 && this.#state !== 'destroyed') return
    for (const stream of this.takeWaiting()) stream.refuse()
  }

  /** The requests that wait are somebody else's from here on. */
  takeWaiting(): WaitingStream[] {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    return waiting
  }

  /** Everything that waits goes over something else: the endpoint speaks no h2. */
  handOver(carrier: Carrier): void {
    for (const stream of this.takeWaiting()) stream.send(carrier)
  }

  // === what connections say ===

  onReady(): void {
    this.#counters.pool.opened++
    this.#opening = false
    this.#failed = false
    this.#retireExpired(performance.now())
    this.onRoom()
    if (this.#state === 'draining') this.#retireAll()
  }

  onRoom(): void {
    if (this.#waiting.size === 0) return
    for (const stream of this.#waiting) {
      const connection = this.#pick()
      if (connection === undefined) break
      this.#waiting.delete(stream)
      stream.send(connection)
    }
    this.#connectForWaiting()
  }

  onGone(connection: UpstreamConnection, cause: CloseCause, broken: Error | undefined, wasReady: boolean): void {
    const at = this.#connections.indexOf(connection)
    if (at >= 0) this.#connections.splice(at, 1)
    this.#counters.pool[wasReady ? cause : 'connectFailed']++
    if (broken !== undefined && wasReady) this.#connector.onLost(broken)
    if (broken !== undefined && !wasReady) this.#connector.onFailed(broken)
    // One that ends before its SETTINGS is as good as one that was refused.
    if (!wasReady) this.#onFailed()
    else this.#connectForWaiting()
  }

  // === time ===

  tick(nowMs: number): void {
    this.#failed = false
    this.#refuseLate(nowMs)
    for (const connection of [...this.#connections]) connection.tick(nowMs)
    this.#retireExpired(nowMs)
    this.onRoom()
    if (this.#state === 'draining') this.#retireAll()
  }

  /** Those that have waited for too long; they stand in the order in which they came. */
  #refuseLate(nowMs: number): void {
    for (const stream of this.#waiting) {
      if (nowMs - stream.sinceMs < LONGEST_WAIT_MS) return
      this.#waiting.delete(stream)
      stream.refuse()
    }
  }

  /** An old connection goes when there is another: no request waits for its successor. */
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

  /** No new requests; those that were taken go on until they end, also when they wait for a connection. */
  drain(): void {
    if (this.#state !== 'open') return
    this.#state = 'draining'
    this.#retireAll()
  }

  #retireAll(): void {
    if (this.#waiting.size > 0) return
    const nowMs = performance.now()
    for (const connection of [...this.#connections]) connection.retire('closedByDrain', nowMs)
  }

  destroy(): void {
    this.#state = 'destroyed'
    for (const connection of [...this.#connections]) connection.destroy()
    for (const stream of this.takeWaiting()) stream.refuse()
  }

  /** Largest header list that the server takes on all of them; infinite when it does not say. */
  get maxListBytes(): number {
    return Math.min(...this.#connections.map((connection) => connection.maxListBytes))
  }

  get connections(): number {
    return this.#connections.length
  }

  get streams(): number {
    let sum = 0
    for (const connection of this.#connections) sum += connection.streams
    return sum
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Nothing is left of it. */
  get over(): boolean {
    return this.#connections.length === 0 && this.#waiting.size === 0 && !this.#opening
  }
}
