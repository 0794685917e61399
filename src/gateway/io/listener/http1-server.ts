// Clients' HTTP/1.1 connections, on node:http: each request becomes a Stream, as over HTTP/2.
// Upgrades (exec, attach, port-forward) exist only here; they are passed on with the raw socket.

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { HeaderList, Peer, RequestHandler } from '../../../kit/api/stream.ts'
import type { UpgradeHandler } from '../../../kit/api/upgrade.ts'
import { type Refusal, refusalResponse } from '../../../kit/core/refusal/refusal.ts'
import type { OpenHeads } from '../../../kit/core/shares/open-heads.ts'
import { headerListBytes } from '../../core/request/header-list.ts'
import { closeAfter } from '../socket/socket-close.ts'
import { Http1Feed } from './http1-feed.ts'
import { Http1OpenHead } from './http1-open-head.ts'
import { type Http1Connection, Http1Stream } from './http1-stream.ts'
import { UpgradeAnswer } from './http1-upgrade-answer.ts'

interface Http1ServerLimits {
  readonly maxHeaderBytes: number
  /** Limit of pipelined requests awaiting a response: at the limit, the next one is the connection's last. */
  readonly maxConcurrentStreams: number
  /** Deadline of a complete request head, against slowloris. Milliseconds. */
  readonly headerTimeoutMs: number
  /** A connection without running requests is closed after this time. */
  readonly idleTimeoutMs: number
  /** Accounts for incomplete heads. Default: not counted. */
  readonly heads?: OpenHeads
}

const CONNECTIONS_CHECK_INTERVAL_MS = 1_000
/** More fields than any client sends. */
const MAX_HEADER_PAIRS = 2000
const NO_HEAD: HeaderList = []
const BAD_REQUEST = '400 Bad Request'
const TOO_LARGE = '431 Request Header Fields Too Large'

export interface Http1Server {
  /** Takes over a connection that negotiated http/1.1 or nothing. */
  serve(socket: TLSSocket, peer: Peer): void
  /** From now on every response closes its connection; idle connections stay. */
  leave(): void
  /** No new requests on idle connections; running ones get `Connection: close`. */
  drain(): void
  /** The next response on this connection is its last. False: it already was. */
  drainConnection(socket: TLSSocket): boolean
  close(): void
}

export function createHttp1Server(
  limits: Http1ServerLimits,
  handler: RequestHandler,
  onUpgrade: UpgradeHandler,
): Http1Server {
  const connections = new Map<Duplex, Http1Connection>()
  const feeds = new WeakMap<Duplex, Http1Feed>()
  const state = { draining: false }
  const server = createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headerTimeoutMs,
    // Long uploads are legal (kubectl cp over HTTP/1.1); only the head has a deadline.
    requestTimeout: 0,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: CONNECTIONS_CHECK_INTERVAL_MS,
    insecureHTTPParser: false,
    noDelay: true,
    shouldUpgradeCallback: isUpgrade,
  })
  // Applies to head and trailers separately. Node 24.20 reports an excess as HPE_HEADER_OVERFLOW; other versions drop it silently, so one more than
  // allowed is read.
  server.maxHeadersCount = MAX_HEADER_PAIRS + 1
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.get(request.socket)
    if (connection === undefined) {
      response.destroy()
      return
    }
    connection.head?.onMessage(request, hasBody(request))
    if (connection.closing) request.resume()
    else serveRequest(connection, request, response, limits, handler)
  }
  server.on('request', onRequest)
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, first: Buffer) => {
    const connection = connections.get(socket)
    connection?.head?.end()
    const rest = feeds.get(socket)?.end()
    if (rest !== undefined && rest.length > 0) socket.unshift(rest)
    socket.on('error', () => undefined)
    // Behind pending requests, bytes of the new protocol would be read as a response to one of them.
    if (connection === undefined || connection.closing || connection.answering > 0) {
      socket.destroy()
      return
    }
    const head = requestHead(request)
    if (headerListBytes(head) > limits.maxHeaderBytes) {
      connection.refused = true
      closeAfter(socket, bareAnswer(TOO_LARGE))
      return
    }
    const answer = new UpgradeAnswer(socket, first, connection.peer)
    answer.events = onUpgrade(connection.peer, answer, head, { socket, first })
    socket.once('close', () => answer.onClosed())
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const connection = connections.get(socket)
    // Discard whatever follows.
    feeds.get(socket)?.end()
    // The parser may report a message that was already answered, and then again for each further piece.
    if (connection?.refused === true) return
    if (connection !== undefined) connection.refused = true
    // A response to the malformed message would be read as part of the one being sent.
    if (connection === undefined || connection.answering > 0) socket.destroy()
    else answerBadRequest(error, socket)
  })
  // node:http starts its deadlines on 'listening'; this server is given sockets and never listens itself.
  server.emit('listening')
  return {
    serve(socket, peer) {
      const flags = { draining: false, closing: false, refused: false, answering: 0, newest: undefined }
      const head = limits.heads && new Http1OpenHead(limits.heads.of(peer), limits.maxHeaderBytes)
      const connection: Http1Connection = { peer, server: state, ...flags, head }
      connections.set(socket, connection)
      socket.once('close', () => connections.delete(socket))
      server.emit('connection', socket)
      const onNoRoom = (refusal: Refusal): void => refuseOpenHead(refusal, connection, socket, feeds.get(socket))
      feeds.set(socket, new Http1Feed(socket, peer, head && { head, onNoRoom }))
    },
    drainConnection(socket) {
      const connection = connections.get(socket)
      if (connection === undefined || connection.draining) return false
      connection.draining = true
      return true
    },
    leave() {
      state.draining = true
    },
    drain() {
      state.draining = true
      // After the event loop has read pending input: a request that has already arrived is answered.
      setImmediate(() =>
        closeIdle(server, connections.keys(), (socket) => {
          const answering = connections.get(socket)?.answering ?? 0
          return answering > 0 || socket.writableLength > 0 || feeds.get(socket)?.isWaiting === true
        }),
      )
    },
    close: () => closeServer(server),
  }
}

function serveRequest(
  connection: Http1Connection,
  request: IncomingMessage,
  response: ServerResponse,
  { maxHeaderBytes, maxConcurrentStreams }: Http1ServerLimits,
  handler: RequestHandler,
): void {
  if (connection.answering >= maxConcurrentStreams) connection.closing = true
  connection.answering++
  connection.newest = response
  response.once('close', () => {
    connection.answering--
    if (connection.newest === response) connection.newest = undefined
  })
  const malformed = messageProblem(request)
  const head = malformed === '' ? requestHead(request) : NO_HEAD
  // Counted as in HTTP/2, which expresses the next hop's limit: 32 extra bytes per field.
  const problem = headerListBytes(head) > maxHeaderBytes ? TOO_LARGE : malformed
  if (problem !== '') {
    connection.closing = true
    connection.refused = true
    refuseMessage(request, response, problem)
    return
  }
  const end = !hasBody(request)
  const stream = new Http1Stream(request, response, connection, end)
  stream.start(handler(connection.peer, stream, head, end))
}

/**
 * Only node:http knows which connections are in the middle of a request, but it would also close those whose complete response is still being sent,
 * and it does not know about bytes waiting for their turn.
 */
function closeIdle(server: Server, sockets: Iterable<Duplex>, isBusy: (socket: Duplex) => boolean): void {
  const busy = [...sockets].filter(isBusy)
  for (const socket of busy) socket.destroy = () => socket
  server.closeIdleConnections()
  for (const socket of busy) Reflect.deleteProperty(socket, 'destroy')
}

function closeServer(server: Server): void {
  server.closeAllConnections()
  // Stops the deadline timer; the server never listened, so the callback's error is expected.
  server.close(() => undefined)
}

/**
 * kube-apiserver upgrades to SPDY/3.1 and WebSocket (k8s.io/streaming; RFC 6455); `Upgrade: h2c` from curl is an ordinary request. So is one with a
 * body, which could not be told apart from the new protocol's bytes, and one over HTTP/1.0 (RFC 9110 section 7.8).
 */
function isUpgrade(request: IncomingMessage): boolean {
  if (messageProblem(request) !== '') return false
  const wanted = request.headers.upgrade?.trim().toLowerCase()
  if (wanted !== 'websocket' && wanted !== 'spdy/3.1') return false
  return request.httpVersionMinor > 0 && !hasBody(request)
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

function requestHead(request: IncomingMessage): HeaderList {
  const raw = request.rawHeaders
  const list: HeaderList = [
    ':method',
    request.method ?? 'GET',
    ':path',
    request.url ?? '/',
    ':authority',
    request.headers.host ?? '',
    ':scheme',
    'https',
  ]
  for (let i = 0; i + 1 < raw.length; i += 2) list.push((raw[i] ?? '').toLowerCase(), raw[i + 1] ?? '')
  return list
}

/**
 * Detects what node:http accepts but another parser may read differently: then not just this request but the whole connection is untrustworthy (RFC
 * 9112 section 6.1 on Transfer-Encoding). Returns a status line, '' if all is well.
 */
function messageProblem(request: IncomingMessage): string {
  if (request.rawHeaders.length > 2 * MAX_HEADER_PAIRS) return TOO_LARGE
  if (request.httpVersionMajor !== 1) return BAD_REQUEST
  const encoding = request.headers['transfer-encoding']
  if (encoding === undefined) return ''
  return request.httpVersionMinor === 0 || encoding.toLowerCase() !== 'chunked' ? BAD_REQUEST : ''
}

function refuseMessage(request: IncomingMessage, response: ServerResponse, status: string): void {
  request.on('error', () => undefined)
  request.resume()
  response.on('error', () => undefined)
  response.writeHead(Number(status.slice(0, 3)), ['connection', 'close', 'content-length', '0'])
  response.end()
}

/** Out of memory for an incoming head: the connection ends, with a response unless that could be mistaken for another request's. */
function refuseOpenHead(
  refusal: Refusal,
  connection: Http1Connection,
  socket: Duplex,
  feed: Http1Feed | undefined,
): void {
  connection.refused = true
  feed?.end()
  const isAnswered = connection.answering > 0 || connection.head?.isInMessage === true
  if (isAnswered || socket.writableEnded) socket.destroy()
  else closeAfter(socket, refusalText(refusal))
}

function refusalText(refusal: Refusal): string {
  const { headers, body } = refusalResponse(refusal, { isEvents: false })
  const lines: string[] = []
  for (let i = 2; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}\r\n`)
  const status = Number(headers[1])
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\n${lines.join('')}\r\n${body.toString('latin1')}`
}

/** Unparseable input gets a plain response, and the connection is closed (RFC 9112 section 2.2). */
function answerBadRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (socket.destroyed || socket.writableEnded) return
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? TOO_LARGE
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : BAD_REQUEST
  closeAfter(socket, bareAnswer(status))
}

function bareAnswer(status: string): string {
  return `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
}
