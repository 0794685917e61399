// HTTP/2 connections to one endpoint, one group for each class of requests, so that a large list, thousands of watches or
// a 401 (which makes kube-apiserver close the connection) never disturb requests of another class.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { HeaderList, ResetReason, Stream, StreamEvents } from '../api/stream.ts'
import { flatHeaders, Http2Body, resetStream } from './http2-stream.ts'

export interface Http2Connector {
  /** A TLS socket that negotiated h2, or an error. */
  connect(): Promise<TLSSocket>
  readonly authority: string
  /** Told when a connection broke that had not been asked to close: a reason to doubt the endpoint. */
  onBroken(error: Error): void
}

const STREAM_WINDOW_BYTES = 1024 * 1024
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
const MAX_HEADER_BLOCK_BYTES = 4 * 1024 * 1024
const MAX_HEADER_PAIRS = 4000
const SESSION_MEMORY_MB = 256
/** client-go's own numbers (HTTP2_READ_IDLE_TIMEOUT_SECONDS, HTTP2_PING_TIMEOUT_SECONDS): a dead path is noticed. */
const PING_INTERVAL_MS = 30_000
const PING_TIMEOUT_MS = 15_000
/** What a peer may refuse at most before its SETTINGS have come (RFC 9113 section 6.5.2 recommends no smaller limit). */
const STREAMS_BEFORE_SETTINGS = 100
/** Connections of a class at most; beyond it requests queue inside a connection. */
const MAX_SESSIONS = 64
const IDLE_CLOSE_MS = 60_000
/** A server that has not sent its SETTINGS by then will not: the connection counts as failed. */
const SETTINGS_TIMEOUT_MS = 5_000
/** Connections that may close under a waiting request before it is given up. */
const MAX_LOST_CONNECTIONS = 2

interface Waiting {
  readonly head: HeaderList
  readonly end: boolean
  readonly stream: ClientStream
  /** Connections that closed before they could take it. */
  tries: number
}

/** A group of HTTP/2 sessions to one endpoint. */
export class Http2Sessions {
  readonly #connector: Http2Connector
  /** Those whose peer has sent its SETTINGS. */
  readonly #sessions: Session[] = []
  readonly #opening = new Set<Session>()
  #waiting: Waiting[] = []
  /** Connections on their way, from the call until the SETTINGS. */
  #connecting = 0
  #state: 'open' | 'draining' | 'destroyed' = 'open'

  constructor(connector: Http2Connector) {
    this.#connector = connector
  }

  get size(): number {
    return this.#sessions.length
  }

  /** Sends a request; never fails at once: what goes wrong is told by `events.onReset`. */
  open(head: HeaderList, end: boolean, events: StreamEvents): Stream {
    const stream = new ClientStream(events)
    const session = this.#free()
    if (session !== undefined) session.request(head, end, stream)
    else this.#enqueue({ head, end, stream, tries: 0 })
    return stream
  }

  /** No new requests; those that were taken go on until they end, also when they wait for a connection. */
  drain(): void {
    if (this.#state === 'open') this.#state = 'draining'
    for (const session of this.#sessions) session.drain()
  }

  destroy(): void {
    this.#state = 'destroyed'
    for (const session of [...this.#sessions, ...this.#opening]) session.destroy()
  }

  #free(): Session | undefined {
    let best: Session | undefined
    for (const session of this.#sessions) {
      if (!session.usable || session.streams >= session.maxStreams) continue
      if (best === undefined || session.streams < best.streams) best = session
    }
    return best
  }

  #enqueue(waiting: Waiting): void {
    const total = this.#sessions.length + this.#connecting
    if (total >= MAX_SESSIONS) {
      const least = this.#sessions.filter((session) => session.usable).sort((a, b) => a.streams - b.streams)[0]
      if (least !== undefined) {
        least.request(waiting.head, waiting.end, waiting.stream)
        return
      }
    }
    this.#waiting.push(waiting)
    if (this.#waiting.length > this.#connecting * STREAMS_BEFORE_SETTINGS) this.#connect()
  }

  #connect(): void {
    this.#connecting++
    this.#connector.connect().then(
      (socket) => this.#start(socket),
      (error: Error) => {
        this.#connector.onBroken(error)
        this.#onConnectFailed()
      },
    )
  }

  #start(socket: TLSSocket): void {
    if (this.#state === 'destroyed') {
      socket.destroy()
      this.#onConnectFailed()
      return
    }
    const session = new Session(socket, this.#connector, {
      onReady: () => {
        this.#opening.delete(session)
        this.#connecting--
        this.#sessions.push(session)
        this.#dispatch()
        if (this.#state === 'draining') session.drain()
      },
      onGone: () => {
        if (this.#opening.delete(session)) this.#onConnectFailed()
        const at = this.#sessions.indexOf(session)
        if (at >= 0) this.#sessions.splice(at, 1)
      },
    })
    this.#opening.add(session)
  }

  #dispatch(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const next of waiting) {
      if (next.stream.aborted) continue
      const session = this.#free()
      if (session !== undefined) session.request(next.head, next.end, next.stream)
      else if (++next.tries <= MAX_LOST_CONNECTIONS) this.#enqueue(next)
      // A server that accepts and closes is as good as one that refuses: no loop.
      else next.stream.fail('refused')
    }
  }

  /** Nothing of those that wait has been sent: every one may be sent elsewhere. */
  #onConnectFailed(): void {
    this.#connecting--
    if (this.#connecting > 0) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const next of waiting) next.stream.fail('refused')
  }
}

interface SessionEvents {
  /** The peer's SETTINGS have come. At most once, and not after `onGone`. */
  onReady(): void
  /** The connection is over, whether or not it was ever ready. */
  onGone(): void
}

/** One connection: `connecting` until the peer's SETTINGS have come, `open`, `draining` after GOAWAY, then gone. */
class Session {
  readonly #session: ClientHttp2Session
  readonly #connector: Http2Connector
  readonly #events: SessionEvents
  readonly #ping: NodeJS.Timeout
  readonly #settingsDeadline: NodeJS.Timeout
  #ready = false
  #draining = false
  #lost = false
  #idleSince = 0
  #pingAnswered = true
  streams = 0
  maxStreams: number = STREAMS_BEFORE_SETTINGS

  constructor(socket: TLSSocket, connector: Http2Connector, events: SessionEvents) {
    this.#connector = connector
    this.#events = events
    const session = connect(`https://${connector.authority}`, {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW_BYTES,
        maxHeaderListSize: MAX_HEADER_BLOCK_BYTES,
      },
      maxSendHeaderBlockLength: MAX_HEADER_BLOCK_BYTES,
      maxHeaderListPairs: MAX_HEADER_PAIRS,
      maxSessionMemory: SESSION_MEMORY_MB,
      // Our own requests wait in the pool, not in here.
      peerMaxConcurrentStreams: STREAMS_BEFORE_SETTINGS,
    })
    this.#session = session
    session.on('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
    session.on('remoteSettings', (settings) => {
      this.maxStreams = Math.max(1, settings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY)
      this.#becomeReady()
    })
    session.on('goaway', () => {
      this.#draining = true
    })
    session.on('error', (error: Error) => this.#onLost(error))
    session.on('close', () => this.#onClose())
    this.#ping = setInterval(() => this.#check(), PING_INTERVAL_MS)
    this.#ping.unref()
    this.#settingsDeadline = setTimeout(() => this.#onLost(new Error('no SETTINGS')), SETTINGS_TIMEOUT_MS)
    this.#settingsDeadline.unref()
  }

  get usable(): boolean {
    return this.#ready && !this.#draining && !this.#lost && !this.#session.closed && !this.#session.destroyed
  }

  #becomeReady(): void {
    if (this.#ready || this.#lost) return
    this.#ready = true
    clearTimeout(this.#settingsDeadline)
    this.#events.onReady()
  }

  request(head: HeaderList, end: boolean, stream: ClientStream): void {
    let raw: ClientHttp2Stream
    try {
      const waitForTrailers = !end && !head.includes('content-length')
      raw = this.#session.request(head, { endStream: end, waitForTrailers })
    } catch {
      // ERR_HTTP2_GOAWAY_SESSION, ERR_HTTP2_INVALID_SESSION, out of stream ids: nothing was sent.
      stream.failSoon('refused')
      return
    }
    this.streams++
    raw.once('close', () => {
      this.streams--
      this.#idleSince = Date.now()
      if (this.#draining) this.#closeIdle()
    })
    stream.attach(raw, () => this.#lost)
  }

  drain(): void {
    this.#draining = true
    this.#closeIdle()
  }

  /** Not before the last stream is over: GOAWAY overtakes requests that nghttp2 has still to send, and they would be lost. */
  #closeIdle(): void {
    if (this.streams === 0 && !this.#session.closed && !this.#session.destroyed) this.#session.close()
  }

  destroy(): void {
    this.#draining = true
    this.#session.destroy()
  }

  #check(): void {
    if (this.#session.destroyed) return
    if (this.streams === 0 && this.#idleSince > 0 && Date.now() - this.#idleSince > IDLE_CLOSE_MS) {
      this.drain()
      return
    }
    if (!this.#pingAnswered) return
    this.#pingAnswered = false
    const deadline = setTimeout(() => this.#onLost(new Error('no answer to PING')), PING_TIMEOUT_MS)
    deadline.unref()
    const sent = this.#session.ping(() => {
      clearTimeout(deadline)
      this.#pingAnswered = true
    })
    if (!sent) clearTimeout(deadline)
  }

  #onLost(error: Error): void {
    if (this.#lost) return
    this.#lost = true
    if (!this.#draining) this.#connector.onBroken(error)
    if (!this.#session.destroyed) this.#session.destroy()
  }

  #onClose(): void {
    clearInterval(this.#ping)
    // A connection that ends without GOAWAY takes its streams with it.
    if (!this.#draining) this.#onLost(new Error('connection closed'))
    clearTimeout(this.#settingsDeadline)
    this.#events.onGone()
  }
}

/** The request side of an exchange with upstream. */
class ClientStream implements Stream {
  readonly #events: StreamEvents
  #raw: ClientHttp2Stream | undefined
  #body: Http2Body | undefined
  #trailers: HeaderList | undefined
  /** Body given before the connection was there. */
  #early: Buffer[] = []
  #earlyBytes = 0
  #earlyEnd = false
  #over = false

  constructor(events: StreamEvents) {
    this.#events = events
  }

  get aborted(): boolean {
    return this.#over
  }

  get queued(): number {
    return this.#raw === undefined ? this.#earlyBytes : this.#raw.writableLength
  }

  attach(raw: ClientHttp2Stream, connectionLost: () => boolean): void {
    this.#raw = raw
    const body = new Http2Body(raw, connectionLost, () => this.#over || body.ended)
    this.#body = body
    body.events = this.#events
    raw.on('headers', (_headers: unknown, _flags: number, list?: readonly unknown[]) => {
      if (list !== undefined && !this.#over) this.#events.onHeaders(flatHeaders(list), false)
    })
    raw.on('response', (_headers: unknown, flags: number, list?: readonly unknown[]) => {
      if (this.#over) return
      const end = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      if (end) body.ended = true
      this.#events.onHeaders(flatHeaders(list ?? []), end)
      if (end) raw.resume()
      else body.read()
    })
    raw.on('wantTrailers', () => raw.sendTrailers(this.#trailerRecord()))
    for (const chunk of this.#early) raw.write(chunk)
    if (this.#earlyEnd) raw.end()
    if (this.#early.length > 0) this.#events.onDrained()
    this.#early = []
    this.#earlyBytes = 0
  }

  #trailerRecord(): Record<string, string> {
    const record: Record<string, string> = {}
    const list = this.#trailers ?? []
    for (let i = 0; i + 1 < list.length; i += 2) record[list[i] ?? ''] = list[i + 1] ?? ''
    return record
  }

  fail(reason: ResetReason): void {
    if (this.#over) return
    this.#over = true
    this.#events.onReset(reason)
  }

  /** Never inside `open()`: the caller does not have the stream yet. */
  failSoon(reason: ResetReason): void {
    queueMicrotask(() => this.fail(reason))
  }

  headers(_list: HeaderList, _end: boolean): void {
    // The request head was sent by open().
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#over) return
    const raw = this.#raw
    if (raw === undefined) {
      if (chunk.length > 0) this.#early.push(chunk)
      this.#earlyBytes += chunk.length
      this.#earlyEnd ||= end
      return
    }
    if (raw.destroyed || raw.writableEnded) return
    if (chunk.length > 0) raw.write(chunk)
    if (end) raw.end()
  }

  trailers(list: HeaderList): void {
    this.#trailers = list
    this.body(Buffer.alloc(0), true)
  }

  credit(bytes: number): void {
    this.#body?.credit(bytes)
  }

  reset(reason: ResetReason): void {
    if (this.#over) return
    this.#over = true
    if (this.#raw !== undefined) resetStream(this.#raw, reason)
  }
}
