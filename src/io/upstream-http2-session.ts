// One HTTP/2 connection to an endpoint: its settings, its health by PING, and when it takes no more requests.

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { HeaderList } from '../api/stream.ts'
import type { ClientStream } from './upstream-http2-stream.ts'

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
/** A client's duplicate fields are upstream's to judge. Apart, because the types of node:http2 know it for servers only. */
const LENIENT = { strictSingleValueFields: false }
const SESSION_MEMORY_MB = 256
/** client-go's own numbers (HTTP2_READ_IDLE_TIMEOUT_SECONDS, HTTP2_PING_TIMEOUT_SECONDS): a dead path is noticed. */
const PING_INTERVAL_MS = 30_000
const PING_TIMEOUT_MS = 15_000
/** What a peer may refuse at most before its SETTINGS have come (RFC 9113 section 6.5.2 recommends no smaller limit). */
export const STREAMS_BEFORE_SETTINGS: number = 100
const IDLE_CLOSE_MS = 60_000
/** A server that has not sent its SETTINGS by then will not: the connection counts as failed. */
const SETTINGS_TIMEOUT_MS = 5_000

export interface SessionEvents {
  /** The peer's SETTINGS have come. At most once, and not after `onGone`. */
  onReady(): void
  /** The connection is over, whether or not it was ever ready. */
  onGone(): void
}

/** One connection: `connecting` until the peer's SETTINGS have come, `open`, `draining` after GOAWAY, then gone. */
export class Session {
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
      ...LENIENT,
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
