// All connections to one kube-apiserver: HTTP/2 with separate classes, or HTTP/1.1, as negotiated.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Charge, HeaderList, SharedFields, Stream, StreamEvents } from '../../../kit/api/stream.ts'
import type { DialGuard, GuardedServer } from '../../../kit/io/dial/dial-guard.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import { AnswerHead } from '../../../kube/io/answers/thread-answers.ts'
import type { CompiledClient, CompiledEndpoint } from '../../core/cluster/compiled-cluster.ts'
import type { UpstreamCounters } from '../../metrics/upstream-counters.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'
import { UpstreamConnector } from './connect.ts'
import { HTTP1_MAX_LIST_BYTES, type Http1Class, Http1Pool } from './http1.ts'
import { Http2Group, type Http2GroupCounters, type Http2GroupShape } from './http2.ts'
import { Offences, type SharedByCluster } from './offences.ts'
import type { Relists } from './relists.ts'
import type { Carrier } from './waiting.ts'
/** Requests of different classes never share a connection. */
export type RequestClass = 'unary' | 'watch' | 'anonymous' | 'reserved'

/** `bulk`: unary requests of a source that has many in flight while others are there. */
type ConnectionClass = RequestClass | 'bulk'

/**
 * Requests paced by the server's responses after connections broke: lists, on `unary` connections, and new watches, on `watch` connections.
 * Everything else is unaffected.
 */
export type RequestKind = RequestClass | 'list' | 'watch-opening'

/** The connections of one class. */
interface ClassConnections {
  readonly connections: number
  /** Requests on them. */
  readonly streams: number
  /** Requests that wait for a connection or a free stream. */
  readonly waiting: number
}

/** The HTTP/2 connections of one endpoint. */
export interface EndpointConnections {
  /** What the server negotiated; 'unknown' until the first connection. */
  readonly protocol: 'unknown' | 'h2' | 'http/1.1'
  /** Includes those of `lanes`. */
  readonly connections: number
  /** Groups of connections for sources that have broken others. */
  readonly lanes: number
  readonly classes: Readonly<Record<ConnectionClass, ClassConnections>>
  readonly counters: UpstreamCounters
}

export interface UpstreamEndpoint {
  /**
   * Sends a request on behalf of a client. Errors are reported by `events.onReset`, never thrown.
   * @param shared fields after those of `head`, encoded once for many requests
   * @param end the request has no body
   * @param charge the request's source: streams are shared among sources
   */
  open(
    kind: RequestKind,
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
  ): Stream
  /** A separate HTTP/1.1 connection, for upgrades. */
  connectHttp1(): Promise<TLSSocket | Socket>
  /** Why the last connection was not opened, if the operator does not allow its address; '' = it was allowed. */
  readonly dialRefusal: string
  /** Whether such a request of this source would have to wait for a stream. */
  isFull(kind: RequestKind, charge: Charge): boolean
  /** Whether lists and watches are being paced. */
  readonly relisting: boolean
  /** Largest header list that the server accepts (RFC 9113 section 6.5.2); larger ones are not sent. */
  maxListBytes(): number
  /** Takes no new requests; running ones finish. */
  drain(): void
  destroy(): void
  /** HTTP/2 connections of all classes. */
  readonly connections: number
  describe(): EndpointConnections
}

interface UpstreamEvents {
  /** A connection failed or broke: the endpoint may be down. */
  onBroken(error: Error): void
}

/** For short requests: 64 x 100 streams (kube-apiserver even allows 250) are more than one endpoint can process. */
const MAX_CONNECTIONS = 64
/** Watches hold their streams for minutes, and one endpoint may have 100,000 of them. */
const MAX_WATCH_CONNECTIONS = 1_024
/** For all requests of a source that has broken connections. */
const MAX_LANE_CONNECTIONS = 16
/** For each class with spare streams, for sources below their share while others hold all regular ones. */
const MAX_SPARE_CONNECTIONS = 8
/**
 * Four for unary requests: measured with lists of 20 MB along with requests of 1 KiB, the small ones took a third of the time that they take on one
 * connection, and the CPU time per request was the same.
 */
const SHAPES: Readonly<Record<ConnectionClass | 'lane' | 'spare', Http2GroupShape>> = {
  unary: { spread: 4, connections: MAX_CONNECTIONS },
  // Just as many, so that hundreds of lists do not delay small responses of other sources.
  bulk: { spread: 4, connections: MAX_CONNECTIONS, isBulk: true },
  watch: { spread: 1, connections: MAX_WATCH_CONNECTIONS },
  anonymous: { spread: 1, connections: MAX_CONNECTIONS },
  // Never waits for others: used while the unary ones are full.
  reserved: { spread: 1, connections: MAX_CONNECTIONS },
  lane: { spread: 1, connections: MAX_LANE_CONNECTIONS },
  spare: { spread: 1, connections: MAX_SPARE_CONNECTIONS },
}
const SAME_ACCIDENT_MS = 100
/** How long a server is assumed not to speak h2; then the next request negotiates again. */
const HTTP1_BELIEVED_MS = 10 * 60_000

/** @param shared by all endpoints of its cluster */
export function createUpstreamEndpoint(
  endpoint: CompiledEndpoint,
  client: CompiledClient,
  events: UpstreamEvents,
  counters: Http2GroupCounters,
  shared: SharedByCluster,
  guard: DialGuard,
): UpstreamEndpoint {
  return new PooledEndpoint(endpoint, client, events, counters, shared, guard)
}

class PooledEndpoint implements UpstreamEndpoint, Tickable {
  readonly #endpoint: CompiledEndpoint
  readonly #events: UpstreamEvents
  readonly #counters: Http2GroupCounters
  readonly #server: GuardedServer
  readonly #connector: UpstreamConnector
  /** Protocol of the last connection; plain http has no negotiation. */
  #protocol: 'unknown' | 'h2' | 'http/1.1'
  #protocolSinceMs = 0
  #lostAtMs: number = Number.NEGATIVE_INFINITY
  readonly #unary: Http2Group
  readonly #bulk: Http2Group
  readonly #watch: Http2Group
  readonly #anonymous: Http2Group
  readonly #reserved: Http2Group
  #http1: Http1Pool | undefined
  readonly #cluster: string
  readonly #idleCloseMs: () => number
  /** Shared by its cluster. */
  readonly #relists: Relists
  readonly #offences: Offences
  /** Connections of sources that have broken others. */
  readonly #lanes = new Map<number, Http2Group>()
  /** There is a pending deadline. */
  #ticking = false

  constructor(
    endpoint: CompiledEndpoint,
    client: CompiledClient,
    events: UpstreamEvents,
    counters: Http2GroupCounters,
    shared: SharedByCluster,
    guard: DialGuard,
  ) {
    this.#cluster = shared.cluster
    this.#relists = shared.relists
    this.#idleCloseMs = shared.idleCloseMs
    this.#offences = new Offences(shared, counters.pool)
    this.#endpoint = endpoint
    this.#counters = counters
    this.#events = events
    this.#server = guard.to(endpoint.host, endpoint.port)
    this.#connector = new UpstreamConnector(endpoint, client, this.#server)
    this.#protocol = endpoint.scheme === 'http' ? 'http/1.1' : 'unknown'
    this.#unary = this.#createGroup('unary')
    this.#bulk = this.#createGroup('bulk')
    this.#watch = this.#createGroup('watch')
    this.#anonymous = this.#createGroup('anonymous')
    this.#reserved = this.#createGroup('reserved')
  }

  /** @param onSpareRoom only for a group of spare streams for `kind` */
  #createGroup(kind: ConnectionClass | 'lane', onSpareRoom?: () => void): Http2Group {
    const connector = {
      connect: () => this.#connectH2(),
      head: () => new AnswerHead(this.#cluster),
      idleCloseMs: this.#idleCloseMs,
      onFailed: (error: Error) => {
        if (!(error instanceof SpeaksHttp1)) this.#events.onBroken(error)
      },
      onBroken: (error: Error) => this.#onBroken(error),
      onSuspects: (charges: readonly Charge[], certain: boolean, readyAtMs: number) =>
        this.#offences.onSuspects(charges, certain, readyAtMs, performance.now()),
      onReady: () => this.#offences.onReady(performance.now()),
      ...(kind === 'watch' && {
        onStreamsEnded: (count: number) => this.#relists.onStreamsEnded(count, () => this.#watch.streams),
      }),
    }
    if (onSpareRoom !== undefined) {
      const shape = { ...SHAPES.spare, isBulk: kind === 'bulk' }
      return new Http2Group(connector, shape, this.#counters, { onRoom: onSpareRoom })
    }
    // No spare streams for the reserved class, which few requests use, nor for lanes, whose sources share with no others.
    const create = (onRoom: () => void): Http2Group => this.#createGroup(kind, onRoom)
    const spare = kind === 'lane' || kind === 'reserved' ? {} : { create }
    return new Http2Group(connector, SHAPES[kind], this.#counters, spare)
  }

  #group(kind: ConnectionClass): Http2Group {
    switch (kind) {
      case 'unary':
        return this.#unary
      case 'bulk':
        return this.#bulk
      case 'watch':
        return this.#watch
      case 'anonymous':
        return this.#anonymous
      case 'reserved':
        return this.#reserved
    }
  }

  open(
    kind: RequestKind,
    head: HeaderList,
    shared: SharedFields | undefined,
    end: boolean,
    events: StreamEvents,
    charge: Charge,
  ): Stream {
    if (!this.#ticking) {
      this.#ticking = true
      addTickable(this)
    }
    const to = this.#carrierOf(kind, charge)
    if (this.#relists.active && (kind === 'list' || kind === 'watch-opening'))
      return this.#relists.open(to, kind === 'watch-opening', head, shared, end, events, charge)
    return to.open(head, shared, end, events, charge)
  }

  /** With an unknown protocol it waits for the first connection, which decides. */
  #carrierOf(kind: RequestKind, charge: Charge): Carrier {
    return this.#protocol === 'http/1.1' ? this.#http1Class(classOf(kind)) : this.#groupFor(kind, charge)
  }

  #groupFor(kind: RequestKind, charge: Charge): Http2Group {
    const lane = this.#offences.laneOf(charge)
    if (lane >= 0) return this.#laneGroup(lane)
    const ofClass = classOf(kind)
    return this.#group(ofClass === 'unary' && threadScheduler.isBulk(charge) ? 'bulk' : ofClass)
  }

  #laneGroup(lane: number): Http2Group {
    const known = this.#lanes.get(lane)
    if (known !== undefined) return known
    const group = this.#createGroup('lane')
    this.#lanes.set(lane, group)
    return group
  }

  /** The shared groups and those of lanes. */
  get #groups(): Http2Group[] {
    return [this.#unary, this.#bulk, this.#watch, this.#anonymous, this.#reserved, ...this.#lanes.values()]
  }

  async #connectH2(): Promise<TLSSocket> {
    const socket = await this.#connector.tls(['h2', 'http/1.1'])
    this.#protocolSinceMs = performance.now()
    if (socket.alpnProtocol === 'h2') {
      this.#protocol = 'h2'
      return socket
    }
    this.#protocol = 'http/1.1'
    socket.destroy()
    for (const group of this.#lanes.values()) group.handOver(this.#http1Class('unary'))
    this.#unary.handOver(this.#http1Class('unary'))
    this.#bulk.handOver(this.#http1Class('unary'))
    this.#watch.handOver(this.#http1Class('watch'))
    this.#anonymous.handOver(this.#http1Class('anonymous'))
    this.#reserved.handOver(this.#http1Class('reserved'))
    throw new SpeaksHttp1()
  }

  /** Connections that break together count as one failure. */
  #onBroken(error: Error): void {
    const nowMs = performance.now()
    if (nowMs - this.#lostAtMs < SAME_ACCIDENT_MS) return
    this.#lostAtMs = nowMs
    this.#events.onBroken(error)
  }

  connectHttp1(): Promise<TLSSocket | Socket> {
    return this.#connector.http1()
  }

  get relisting(): boolean {
    return this.#relists.active
  }

  get dialRefusal(): string {
    return this.#server.refusal
  }

  isFull(kind: RequestKind, charge: Charge): boolean {
    if (this.#protocol === 'http/1.1') return this.#http1Class(classOf(kind)).full
    return this.#protocol === 'h2' && this.#groupFor(kind, charge).full
  }

  maxListBytes(): number {
    if (this.#protocol === 'http/1.1') return HTTP1_MAX_LIST_BYTES
    return Math.min(...this.#groups.map((group) => group.maxListBytes))
  }

  #http1Class(kind: RequestClass): Http1Class {
    const pool = this.#http1Pool()
    if (kind === 'reserved') return pool.reserved
    return kind === 'watch' ? pool.longRunning : pool.short
  }

  #http1Pool(): Http1Pool {
    if (this.#http1 === undefined) {
      this.#http1 = new Http1Pool({
        connect: () => this.#connector.http1(),
        memory: () => new AnswerHead(this.#cluster),
        onBroken: (error) => this.#events.onBroken(error),
      })
    }
    return this.#http1
  }

  tick(nowMs: number): void {
    for (const group of this.#groups) group.tick(nowMs)
    for (const [lane, group] of this.#lanes) if (group.over) this.#lanes.delete(lane)
    this.#http1?.tick(nowMs)
    const believed = this.#protocol === 'http/1.1' && this.#endpoint.scheme === 'https'
    if (believed && nowMs - this.#protocolSinceMs >= HTTP1_BELIEVED_MS) this.#protocol = 'unknown'
    else if (!believed && this.#isOver) this.#rest()
  }

  get #isOver(): boolean {
    return this.#groups.every((group) => group.over)
  }

  /** Unused endpoints, of which there may be thousands, are not ticked every second. */
  #rest(): void {
    this.#ticking = false
    removeTickable(this)
  }

  drain(): void {
    for (const group of this.#groups) group.drain()
    this.#http1?.drain()
  }

  destroy(): void {
    for (const group of this.#groups) group.destroy()
    this.#http1?.destroy()
    this.#rest()
  }

  get connections(): number {
    let sum = 0
    for (const group of this.#groups) sum += group.connections
    return sum
  }

  describe(): EndpointConnections {
    const classes = {
      unary: describeGroup(this.#unary),
      bulk: describeGroup(this.#bulk),
      watch: describeGroup(this.#watch),
      anonymous: describeGroup(this.#anonymous),
      reserved: describeGroup(this.#reserved),
    }
    return {
      protocol: this.#protocol,
      connections: this.connections,
      lanes: this.#lanes.size,
      classes,
      counters: { ...this.#counters.pool },
    }
  }
}

function classOf(kind: RequestKind): RequestClass {
  if (kind === 'list') return 'unary'
  return kind === 'watch-opening' ? 'watch' : kind
}

function describeGroup(group: Http2Group): ClassConnections {
  return { connections: group.connections, streams: group.streams, waiting: group.waiting }
}

/** The server negotiated HTTP/1.1: not a failure, but not h2. */
class SpeaksHttp1 extends Error {}
