// HTTP/1.1 connections to one endpoint, through undici: for API servers that do not negotiate h2, and for plain http.

import { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import type { HeadMemory } from '../../../http2/header-frames.ts'
import { CLIENT_SIDE_LIMITS } from '../../../http2/limits.ts'
import {
  ANSWER_WATER_BYTES,
  type Charge,
  type HeaderList,
  HIGH_WATER_BYTES,
  type ResetReason,
  type SharedFields,
  type Stream,
  type StreamEvents,
} from '../../../kit/api/stream.ts'
import { type GuardedServer, guardedConnector } from '../../../kit/io/dial/dial-guard.ts'
import { headerListBytes } from '../../core/request/header-list.ts'
import { HeadExcessError, withHeadLimits } from './http1-head.ts'
import { readBeforeWriteFails } from './last-answer.ts'
import { NO_STREAM, type SpareStreams, StreamQueue } from './stream-queue.ts'
import { UnsentStream } from './unsent-stream.ts'
import type { Carrier } from './waiting.ts'

interface Http1PoolOptions {
  /** `https://host:port` or `http://host:port`. */
  readonly origin: string
  readonly tls: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly servername?: string
    readonly rejectUnauthorized: boolean
  }
  /** The server at `origin`. */
  readonly server: GuardedServer
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

const CONNECT_TIMEOUT_MS = 5_000
/**
 * Largest header list sent over HTTP/1.1, which has no SETTINGS: net/http's limit (DefaultMaxHeaderBytes). Beyond it net/http closes the connection,
 * which would count against the endpoint.
 */
export const HTTP1_MAX_LIST_BYTES: number = 1024 * 1024
/** Below the 90 s after which kube-apiserver closes idle connections, so that we never write into a closing one. */
const KEEP_ALIVE_MS = 60_000
const EMPTY = Buffer.alloc(0)
/** Overhead of each waiting body chunk: a client may send byte by byte. */
const CHUNK_BYTES = 128
/** Node and undici error codes for failures before any byte of the request was sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_INVALID_ARG',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'ERR_LOCAL_SERVER',
])
/** The response head is too large. */
const TOO_LARGE = new Set([HeadExcessError.code, 'UND_ERR_HEADERS_OVERFLOW'])

export class Http1Pool {
  readonly short: Http1Class
  readonly longRunning: Http1Class
  readonly reserved: Http1Class
  readonly #pool: Pool

  constructor(options: Http1PoolOptions) {
    const connect = guardedConnector(() => options.server, {
      allowH2: false,
      timeout: CONNECT_TIMEOUT_MS,
      noDelay: true,
      ...options.tls,
    })
    const bounded = withHeadLimits(connect, options.memory)
    this.#pool = new Pool(options.origin, {
      allowH2: false,
      useMilo: false,
      connect: (target, done) => {
        bounded(target, (...outcome) => {
          const [, socket] = outcome
          // undici omits it if there is none, despite its types.
          if (socket?.destroyed === false) readBeforeWriteFails(socket)
          done(...outcome)
        })
      },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: CLIENT_SIDE_LIMITS.maxHeaderListBytes,
      pipelining: 1,
      connections: MAX_HTTP1_CONNECTIONS + MAX_HTTP1_LONG_RUNNING + MAX_HTTP1_RESERVED + 2 * MAX_HTTP1_SPARE,
    })
    this.short = new Http1Class(this.#pool, options, MAX_HTTP1_CONNECTIONS, MAX_HTTP1_SPARE)
    this.longRunning = new Http1Class(this.#pool, options, MAX_HTTP1_LONG_RUNNING, MAX_HTTP1_SPARE)
    this.reserved = new Http1Class(this.#pool, options, MAX_HTTP1_RESERVED)
  }

  tick(nowMs: number): void {
    this.short.tick(nowMs)
    this.longRunning.tick(nowMs)
    this.reserved.tick(nowMs)
  }

  drain(): void {
    this.#pool.close().catch(() => undefined)
  }

  destroy(): void {
    this.short.refuseWaiting()
    this.longRunning.refuseWaiting()
    this.reserved.refuseWaiting()
    this.#pool.destroy().catch(() => undefined)
  }
}

/** Requests of one kind: a limited number in flight, the others wait. */
export class Http1Class implements SpareStreams {
  readonly #pool: Pool
  readonly #options: Http1PoolOptions
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

  constructor(pool: Pool, options: Http1PoolOptions, most: number, spare = 0, onSpareRoom?: () => void) {
    this.#onSpareRoom = onSpareRoom
    if (spare > 0) this.#spare = new Http1Class(pool, options, spare, 0, () => this.#useSpare())
    this.#pool = pool
    this.#options = options
    this.#most = most
    this.#queue = new StreamQueue(() => this.#holders())
  }

  open(head: HeaderList, shared: SharedFields | undefined, end: boolean, events: StreamEvents, charge: Charge): Stream {
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
    const list = shared === undefined ? head : head.concat(shared.list)
    if (headerListBytes(list) > HTTP1_MAX_LIST_BYTES) return new UnsentStream(events, 'head-too-large')
    const stream = new Http1ClientStream(list, end, events, charge, this)
    this.#open.add(stream)
    this.#queue.opened(charge)
    stream.send(this.#pool)
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

  onBroken(error: Error): void {
    this.#options.onBroken(error)
  }

  onOver(stream: Http1ClientStream): void {
    if (!this.#open.delete(stream)) return
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

function isTransportError(error: NodeJS.ErrnoException): boolean {
  return error.code !== 'UND_ERR_ABORTED' && error.code !== 'UND_ERR_INVALID_ARG'
}

class Http1ClientStream implements Stream, Dispatcher.DispatchHandler {
  readonly #head: HeaderList
  readonly #events: StreamEvents
  readonly charge: Charge
  readonly #class: Http1Class
  readonly #body: Readable | undefined
  #controller: Dispatcher.DispatchController | undefined
  #uncredited = 0
  #queued = 0
  #over = false
  #expectsContinue = false

  constructor(head: HeaderList, end: boolean, events: StreamEvents, charge: Charge, requests: Http1Class) {
    this.#head = head
    this.#events = events
    this.charge = charge
    this.#class = requests
    this.#body = end
      ? undefined
      : new Readable({
          highWaterMark: HIGH_WATER_BYTES,
          read: () => {
            this.#queued = 0
            events.onDrained()
          },
        })
  }

  send(pool: Pool): void {
    const fields: string[] = []
    let method = 'GET'
    let path = '/'
    for (let i = 0; i + 1 < this.#head.length; i += 2) {
      const name = this.#head[i] ?? ''
      const value = this.#head[i + 1] ?? ''
      if (name === ':method') method = value
      else if (name === ':path') path = value
      else if (name === ':authority') fields.push('host', value)
      // undici neither waits for 100 (Continue) nor reports one.
      else if (name === 'expect') this.#expectsContinue = true
      else if (!name.startsWith(':') && name !== 'te') fields.push(name, value)
    }
    try {
      pool.dispatch({ method: method as Dispatcher.HttpMethod, path, headers: fields, body: this.#body ?? null }, this)
    } catch {
      queueMicrotask(() => this.#fail('refused'))
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#over) {
      controller.abort(new Error('aborted'))
      return
    }
    // A client that waits for 100 (Continue) would wait forever: from here on its body is consumed.
    if (this.#expectsContinue) this.#events.onHeaders([':status', '100'], false)
    this.#expectsContinue = false
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.#over) return
    // Not a valid HTTP status (RFC 9110 section 15): HTTP/2 clients would take it for a broken connection.
    if (status < 100 || status > 599) {
      controller.abort(new Error('invalid status'))
      this.#fail('protocol')
      return
    }
    const raw = controller.rawHeaders
    const list: HeaderList = [':status', String(status)]
    if (Array.isArray(raw)) {
      for (let i = 0; i + 1 < raw.length; i += 2) list.push(latin1(raw[i]).toLowerCase(), latin1(raw[i + 1]))
    }
    this.#events.onHeaders(list, false)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    this.#uncredited += chunk.length
    if (this.#uncredited >= ANSWER_WATER_BYTES) controller.pause()
    this.#events.onBody(chunk, false)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#over) return
    this.#end()
    const raw = controller.rawTrailers
    if (Array.isArray(raw) && raw.length > 0) {
      this.#events.onTrailers(raw.map((text, i) => (i % 2 === 0 ? latin1(text).toLowerCase() : latin1(text))))
    } else this.#events.onBody(EMPTY, true)
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: NodeJS.ErrnoException): void {
    // It may come from a pod, through a healthy server.
    if (TOO_LARGE.has(error.code ?? '')) {
      this.#fail('protocol')
      return
    }
    if (isTransportError(error) && !this.#over) this.#class.onBroken(error)
    this.#fail(NOT_SENT.has(error.code ?? '') ? 'refused' : 'connection')
  }

  #fail(reason: ResetReason): void {
    if (this.#over) return
    this.#end()
    this.#body?.destroy()
    this.#events.onReset(reason)
  }

  #end(): void {
    this.#over = true
    this.#class.onOver(this)
  }

  get queued(): number {
    return this.#queued
  }

  headers(_list: HeaderList, _end: boolean): void {
    // open() sent the request head.
  }

  body(chunk: Buffer, end: boolean): void {
    const body = this.#body
    if (body === undefined || this.#over) return
    if (chunk.length > 0) {
      this.#queued += chunk.length + CHUNK_BYTES
      body.push(Buffer.from(chunk))
    }
    if (end) body.push(null)
  }

  trailers(_list: HeaderList): void {
    // undici sends no request trailers; kube-apiserver reads none.
    this.body(EMPTY, true)
  }

  credit(bytes: number): void {
    const before = this.#uncredited
    this.#uncredited = Math.max(0, before - bytes)
    if (before >= ANSWER_WATER_BYTES && this.#uncredited < ANSWER_WATER_BYTES) this.#controller?.resume()
  }

  reset(_reason: ResetReason): void {
    if (this.#over) return
    this.#end()
    this.#body?.destroy()
    this.#controller?.abort(new Error('aborted'))
  }
}

function latin1(value: Buffer | string | undefined): string {
  return typeof value === 'string' ? value : (value?.toString('latin1') ?? '')
}
