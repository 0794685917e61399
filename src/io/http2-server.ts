// HTTP/2 connections of clients, on node:http2: each request becomes a Stream for the request path.

import {
  type ClientHttp2Session,
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { HeaderList, Peer, RequestHandler, ResetReason, Stream } from '../api/stream.ts'
import { flatHeaders, Http2Body, resetStream } from './http2-stream.ts'

export interface Http2ServerLimits {
  /** SETTINGS_MAX_CONCURRENT_STREAMS. */
  readonly maxConcurrentStreams: number
  /** Largest header list accepted, bytes. */
  readonly maxHeaderBytes: number
  /** The client's preface and SETTINGS must have come by then. Milliseconds. */
  readonly headerTimeoutMs: number
}

/** Receive window of a stream: as kube-apiserver's (apiserver/pkg/server/secure_serving.go). */
const STREAM_WINDOW_BYTES = 256 * 1024
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024
/** Watches are cancelled by RST_STREAM, so an honest client may reset many; a flood of them is rapid reset (CVE-2023-44487). */
const RESET_BURST = 1000
const RESETS_PER_SECOND = 100
/** node:http2 counts pairs; a legal header list of 1 MiB has no more short pairs than this in practice. */
const MAX_HEADER_PAIRS = 2000
const SESSION_MEMORY_MB = 64
const END_STREAM = 1

/** Serves one connection that negotiated h2. */
export function serveHttp2(
  socket: TLSSocket,
  peer: Peer,
  limits: Http2ServerLimits,
  handler: RequestHandler,
): ServerHttp2Session {
  const session = performServerHandshake(socket, {
    settings: {
      maxConcurrentStreams: limits.maxConcurrentStreams,
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxHeaderListSize: limits.maxHeaderBytes,
      enablePush: false,
    },
    maxHeaderListPairs: MAX_HEADER_PAIRS,
    maxSendHeaderBlockLength: 4 * limits.maxHeaderBytes,
    maxSessionMemory: SESSION_MEMORY_MB,
    // Fields that may come once only are for those to judge who read them: duplicates stay as they are.
    strictSingleValueFields: false,
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
  })
  // Errors of a session end its streams; each of them is told by its own 'close'.
  session.on('error', () => undefined)
  const deadline = setTimeout(() => session.destroy(), limits.headerTimeoutMs)
  session.once('remoteSettings', () => clearTimeout(deadline))
  session.once('close', () => clearTimeout(deadline))
  session.on('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
  session.on('stream', (stream: ServerHttp2Stream, _headers: unknown, flags: number, raw: readonly unknown[]) => {
    const end = (flags & END_STREAM) !== 0
    const inbound = new ServerStream(stream, session, end)
    inbound.start(handler(peer, inbound, flatHeaders(raw), end))
  })
  return session
}

class ServerStream implements Stream {
  readonly #stream: ServerHttp2Stream
  readonly #body: Http2Body
  readonly #requestEnded: boolean
  #trailers: HeaderList | undefined
  #ended = false

  constructor(stream: ServerHttp2Stream, session: ServerHttp2Session, requestEnded: boolean) {
    this.#stream = stream
    this.#requestEnded = requestEnded
    this.#body = new Http2Body(
      stream,
      () => session.destroyed,
      // node:http2 ends our side by itself when the client closes in good order: only what we ended was answered whole.
      () => this.#ended && stream.writableFinished && stream.rstCode === constants.NGHTTP2_NO_ERROR,
    )
    this.#body.ended = requestEnded
  }

  start(events: Http2Body['events']): void {
    this.#body.events = events
    if (this.#requestEnded) this.#stream.resume()
    else this.#body.read()
  }

  get queued(): number {
    return this.#stream.writableLength
  }

  headers(list: HeaderList, end: boolean): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    const status = Number(list[1])
    try {
      if (status < 200) this.#informational(list, status)
      else this.#respond(list, end)
    } catch {
      // A status or a field that HTTP/2 cannot carry, from an upstream that speaks HTTP/1.1: nothing of it has been sent.
      this.reset('internal')
    }
  }

  #respond(list: HeaderList, end: boolean): void {
    const stream = this.#stream
    // Trailers can only follow where the length is not known beforehand.
    const waitForTrailers = !end && !list.includes('content-length')
    if (waitForTrailers) stream.on('wantTrailers', () => stream.sendTrailers(pairs(this.#trailers ?? [])))
    if (end) this.#ended = true
    stream.respond(list, { endStream: end, waitForTrailers, sendDate: false } as Parameters<typeof stream.respond>[1])
    if (end) this.#closeRequest()
  }

  #informational(list: HeaderList, status: number): void {
    if (status === 101 || this.#stream.headersSent) return
    this.#stream.additionalHeaders({ ...pairs(list.slice(2)), ':status': status })
  }

  body(chunk: Buffer, end: boolean): void {
    const stream = this.#stream
    if (stream.destroyed || this.#ended) return
    if (!end) {
      stream.write(chunk)
      return
    }
    this.#ended = true
    if (chunk.length > 0) stream.end(chunk)
    else stream.end()
    this.#closeRequest()
  }

  /** RFC 9113 section 8.1: a server that has answered and wants no more of the request resets with NO_ERROR. */
  #closeRequest(): void {
    if (this.#body.ended) return
    const stream = this.#stream
    stream.once('finish', () => {
      if (!this.#body.ended && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR)
    })
  }

  trailers(list: HeaderList): void {
    this.#trailers = list
    this.body(Buffer.alloc(0), true)
  }

  credit(bytes: number): void {
    this.#body.credit(bytes)
  }

  reset(reason: ResetReason): void {
    resetStream(this.#stream, reason)
  }
}

/** For the two calls of node:http2 that take no flat list: repeated names become arrays. */
function pairs(list: HeaderList): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {}
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = list[i] ?? ''
    const value = list[i + 1] ?? ''
    const before = result[name]
    if (before === undefined) result[name] = value
    else if (Array.isArray(before)) before.push(value)
    else result[name] = [before, value]
  }
  return result
}

/** GOAWAY, then the connection closes when its last stream has ended. */
export function drainSession(session: ServerHttp2Session | ClientHttp2Session): void {
  if (!session.closed && !session.destroyed) session.close()
}
