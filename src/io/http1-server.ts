// HTTP/1.1 connections of clients, on node:http: each request becomes a Stream, as if it had come by HTTP/2.
// Upgrades (exec, attach, port-forward) exist only here; they are handed on with the raw socket.

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import {
  type HeaderList,
  HIGH_WATER_BYTES,
  type Peer,
  type RequestHandler,
  type ResetReason,
  type Stream,
  type StreamEvents,
} from '../api/stream.ts'
import type { ClientUpgrade, UpgradeHandler } from '../api/upgrade.ts'

export interface Http1ServerLimits {
  readonly maxHeaderBytes: number
  /** A request head must be complete by then: slowloris. Milliseconds. */
  readonly headerTimeoutMs: number
}

/** Longer than the 90 s after which client-go drops idle connections, so that the client is the one who closes. */
const KEEP_ALIVE_TIMEOUT_MS = 120_000
const CONNECTIONS_CHECK_INTERVAL_MS = 1_000
/** As many fields as HTTP/2 takes. node:http's own maxHeadersCount would leave fields out without a word. */
const MAX_HEADER_PAIRS = 2000
/**
 * How long a connection that we want to close is still read: closing on unread bytes makes TCP reset the connection, and
 * the client never sees the answer (RFC 9112 section 9.6; net/http's rstAvoidanceDelay).
 */
const LINGER_MS = 500
const EMPTY = Buffer.alloc(0)

export interface Http1Server {
  /** Takes over a connection that negotiated http/1.1 or nothing. */
  serve(socket: TLSSocket, peer: Peer): void
  /** No new requests on idle connections; running ones get `Connection: close`. */
  drain(): void
  /** The next answer on this connection is its last. */
  drainConnection(socket: TLSSocket): void
  close(): void
}

export function createHttp1Server(
  limits: Http1ServerLimits,
  handler: RequestHandler,
  onUpgrade: UpgradeHandler,
): Http1Server {
  const peers = new WeakMap<Duplex, Peer>()
  /** Connections that end with the answer under way: node:http would still serve what is pipelined behind it. */
  const closing = new WeakSet<Duplex>()
  /** Those of them that had the one answer to a malformed message. */
  const refused = new WeakSet<Duplex>()
  /** Requests whose answer is not out yet, by connection. */
  const answering = new WeakMap<Duplex, number>()
  /** Connections whose next answer is their last. */
  const last = new WeakSet<Duplex>()
  let draining = false
  const server = createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headerTimeoutMs,
    // A long upload is legal (kubectl cp over HTTP/1.1); only the head has a deadline.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: CONNECTIONS_CHECK_INTERVAL_MS,
    insecureHTTPParser: false,
    noDelay: true,
    // Only what a kube-apiserver upgrades to; `Upgrade: h2c` from curl is an ordinary request.
    // One with a body, too: the body would have to be told from the bytes of the new protocol.
    shouldUpgradeCallback: (request) => isKubernetesUpgrade(request.headers.upgrade) && !hasBody(request),
  })
  server.maxHeadersCount = 0
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const peer = peers.get(request.socket)
    if (peer === undefined) {
      response.destroy()
      return
    }
    const { socket } = request
    if (closing.has(socket)) {
      request.resume()
      return
    }
    answering.set(socket, (answering.get(socket) ?? 0) + 1)
    response.once('close', () => answering.set(socket, (answering.get(socket) ?? 1) - 1))
    const problem = messageProblem(request)
    if (problem !== '') {
      closing.add(socket)
      refused.add(socket)
      refuseMessage(request, response, problem)
      return
    }
    const end = !hasBody(request)
    const stream = new Http1Stream(request, response, end, () => draining || last.has(socket), closing)
    stream.start(handler(peer, stream, requestHead(request), end))
  }
  server.on('request', onRequest)
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, first: Buffer) => {
    const peer = peers.get(socket)
    socket.on('error', () => undefined)
    if (peer === undefined) {
      socket.destroy()
      return
    }
    const upgrade: ClientUpgrade = { socket, first }
    const response = new UpgradeAnswer(socket)
    response.events = onUpgrade(peer, response, requestHead(request), upgrade)
    socket.once('close', () => response.onClosed())
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // The parser may complain of a message that was answered already, and of every further piece of it.
    if (refused.has(socket)) return
    refused.add(socket)
    // An answer to the broken message would be read as part of the one that is on its way.
    if ((answering.get(socket) ?? 0) > 0) socket.destroy()
    else answerBadRequest(error, socket)
  })
  // Deadlines of node:http start with 'listening'; this server is fed with sockets and never listens itself.
  server.emit('listening')
  return {
    serve(socket, peer) {
      peers.set(socket, peer)
      server.emit('connection', socket)
    },
    drainConnection: (socket) => void last.add(socket),
    drain() {
      draining = true
      server.closeIdleConnections()
    },
    close: () => closeServer(server),
  }
}

function closeServer(server: Server): void {
  server.closeAllConnections()
  // Stops the deadline timer; the server never listened, so the callback's error is expected.
  server.close(() => undefined)
}

/** SPDY/3.1 and WebSocket are what kube-apiserver upgrades to (k8s.io/streaming; RFC 6455). */
function isKubernetesUpgrade(upgrade: string | undefined): boolean {
  if (upgrade === undefined) return false
  const wanted = upgrade.trim().toLowerCase()
  return wanted === 'websocket' || wanted === 'spdy/3.1'
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
 * What node:http lets pass, but another reader may understand differently: the whole connection is in doubt then, not
 * only this request (RFC 9112 section 6.1 on Transfer-Encoding). A status line, '' when there is nothing.
 */
function messageProblem(request: IncomingMessage): '' | '400 Bad Request' | '431 Request Header Fields Too Large' {
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

const BAD_REQUEST = '400 Bad Request'
const TOO_LARGE = '431 Request Header Fields Too Large'

/** What cannot be parsed is answered as plainly as it was asked, and the connection ends (RFC 9112 section 2.2). */
function answerBadRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (socket.destroyed || socket.writableEnded) return
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? TOO_LARGE
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : BAD_REQUEST
  closeAfter(socket, `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

/** Sends the last bytes and closes, once the client has closed or had time to read them. What it still sends is thrown away. */
function closeAfter(socket: Duplex, last: string): void {
  const close = (): void => void socket.destroy()
  const deadline = setTimeout(close, LINGER_MS)
  socket.once('close', () => clearTimeout(deadline))
  socket.once('end', close)
  socket.on('error', () => undefined)
  // Takes the socket away from the parser of node:http, which hears of 'data' only.
  socket.removeAllListeners('data')
  socket.on('data', () => undefined)
  socket.resume()
  socket.end(last, 'latin1')
}

/** Splits off `:status`; node:http wants it apart. */
function fields(list: HeaderList): string[] {
  return list.slice(2)
}

class Http1Stream implements Stream {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #closing: WeakSet<Duplex>
  #uncredited = 0
  #requestEnded: boolean
  #over = false

  readonly #isLast: () => boolean

  /** @param isLast asked with each answer: whether the connection ends behind it */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    requestEnded: boolean,
    isLast: () => boolean,
    closing: WeakSet<Duplex>,
  ) {
    this.#isLast = isLast
    this.#request = request
    this.#response = response
    this.#requestEnded = requestEnded
    this.#closing = closing
    response.sendDate = false
  }

  /** Nothing is served behind this answer. */
  closeConnection(): void {
    this.#response.shouldKeepAlive = false
    this.#closing.add(this.#request.socket)
  }

  start(events: StreamEvents): void {
    const request = this.#request
    const response = this.#response
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    response.on('drain', () => events.onDrained())
    response.on('close', () => {
      if (response.writableFinished || this.#over) return
      this.#over = true
      events.onReset('connection')
    })
    if (this.#requestEnded) {
      request.resume()
      return
    }
    request.on('data', (chunk: Buffer) => {
      this.#uncredited += chunk.length
      if (this.#uncredited >= HIGH_WATER_BYTES) request.pause()
      events.onBody(chunk, false)
    })
    request.on('end', () => {
      this.#requestEnded = true
      if (request.rawTrailers.length > 0) events.onTrailers(lowerNames(request.rawTrailers))
      else events.onBody(EMPTY, true)
    })
  }

  get queued(): number {
    return this.#response.writableLength
  }

  headers(list: HeaderList, end: boolean): void {
    const response = this.#response
    if (response.destroyed || response.headersSent) return
    const status = Number(list[1])
    if (status < 200) {
      // RFC 9110 section 15.2: HTTP/1.0 knows no interim responses, and node:http sends only these two by itself.
      if (status === 100 && this.#request.httpVersionMinor > 0) response.writeContinue()
      return
    }
    // A body that nobody will read must not be taken for the next request.
    if (!this.#requestEnded || this.#isLast()) this.closeConnection()
    response.writeHead(status, fields(list))
    if (end) response.end()
    else response.flushHeaders()
  }

  body(chunk: Buffer, end: boolean): void {
    const response = this.#response
    if (response.destroyed || response.writableEnded) return
    if (chunk.length > 0) response.write(chunk)
    if (!end) return
    if (this.#requestEnded) response.end()
    else this.#endLater()
  }

  /** The connection closes with the answer; a client in the middle of an upload must get to read it first. */
  #endLater(): void {
    const response = this.#response
    const end = (): void => void response.end()
    const deadline = setTimeout(end, LINGER_MS)
    this.#request.once('end', end)
    response.once('close', () => clearTimeout(deadline))
  }

  trailers(list: HeaderList): void {
    const headers: [string, string][] = []
    for (let i = 0; i + 1 < list.length; i += 2) headers.push([list[i] ?? '', list[i + 1] ?? ''])
    this.#response.addTrailers(headers)
    this.#response.end()
  }

  credit(bytes: number): void {
    const before = this.#uncredited
    this.#uncredited = Math.max(0, before - bytes)
    if (before >= HIGH_WATER_BYTES && this.#uncredited < HIGH_WATER_BYTES) this.#request.resume()
  }

  /** HTTP/1.1 has no reset but the end of the connection: an unfinished message is never ended cleanly. */
  reset(_reason: ResetReason): void {
    this.#over = true
    this.#request.socket.destroy()
  }
}

function lowerNames(raw: readonly string[]): HeaderList {
  return raw.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
}

/** The answer to an upgrade request that is not switched: written by hand, because node:http has let go of the socket. */
class UpgradeAnswer implements Stream {
  events: StreamEvents | undefined
  readonly #socket: Duplex
  #chunked = false
  #ended = false

  constructor(socket: Duplex) {
    this.#socket = socket
    socket.on('drain', () => this.events?.onDrained())
  }

  onClosed(): void {
    if (!this.#ended) this.events?.onReset('connection')
    this.#ended = true
  }

  get queued(): number {
    return this.#socket.writableLength
  }

  headers(list: HeaderList, end: boolean): void {
    const status = list[1] ?? '500'
    if (Number(status) < 200) return
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[Number(status)] ?? ''}\r\n`
    let sized = false
    for (let i = 2; i + 1 < list.length; i += 2) {
      if (list[i] === 'content-length') sized = true
      head += `${list[i]}: ${list[i + 1]}\r\n`
    }
    const bodiless = status === '204' || status === '304'
    this.#chunked = !sized && !end && !bodiless
    if (this.#chunked) head += 'transfer-encoding: chunked\r\n'
    head += 'connection: close\r\n\r\n'
    this.#socket.write(head, 'latin1')
    if (end) this.#finish()
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#ended) return
    if (chunk.length > 0) {
      if (this.#chunked) this.#socket.write(`${chunk.length.toString(16)}\r\n`)
      this.#socket.write(chunk)
      if (this.#chunked) this.#socket.write('\r\n')
    }
    if (end) {
      if (this.#chunked) this.#socket.write('0\r\n\r\n')
      this.#finish()
    }
  }

  #finish(): void {
    this.#ended = true
    closeAfter(this.#socket, '')
  }

  trailers(_list: HeaderList): void {
    this.body(EMPTY, true)
  }

  credit(_bytes: number): void {
    // An upgrade request has no body.
  }

  reset(_reason: ResetReason): void {
    this.#ended = true
    this.#socket.destroy()
  }
}
