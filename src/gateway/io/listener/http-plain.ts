// A small HTTP/1.1 server for small responses, and for streams with back pressure: the admin listener and the health listener.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { Socket } from 'node:net'
import { TLSSocket, type TlsOptions } from 'node:tls'
import type { PeerCertificate } from '../../../kit/api/stream.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { ListenAddress } from '../../../kit/core/listen-address.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import { inStep } from '../../../kit/io/stalls/steps.ts'
import { lingerBehindAnswer } from '../socket/socket-close.ts'
import { isRefusedByTls } from './handshakes/failed-handshake.ts'
import { Http1Feed } from './http1/feed.ts'
import { BoundedConnections, endsOf } from './open-connections.ts'
import { PresentedChains } from './peer.ts'
import { watchRecords } from './record-watch.ts'
import type { ServingPair } from './tls-contexts.ts'
import type { TlsPolicy } from './tls-policy.ts'

export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** The field as received; '' = absent. */
  readonly authorization: string
  readonly remoteAddress: string
  /** Another field as received; '' = absent. @param name in lower case */
  header(name: string): string
  /** undefined = none was requested or presented. */
  readonly certificate: PeerCertificate | undefined
  /** Aborts when the client disconnects or has received the whole response. */
  readonly signal: AbortSignal
  /** The body as text. Rejects with a BodyError if it exceeds maxBytes or is cut off. */
  readBody(maxBytes: number): Promise<string>
}

interface ResponseHead {
  readonly code: number
  readonly contentType: string
  /** Additional header fields. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface PlainResponse extends ResponseHead {
  readonly body: string | Uint8Array
}

/** A response whose length is not known in advance. */
interface StreamedResponse extends ResponseHead {
  /** Writes the body; the response ends when it resolves, and is cut off when it rejects. It must end when the request's signal aborts. */
  stream(out: StreamOut): Promise<void>
}

export interface StreamOut {
  /** Resolves when there is room for more; rejects if the client has disconnected. */
  write(chunk: string | Uint8Array): Promise<void>
}

export type AnyResponse = PlainResponse | StreamedResponse

/** The body cannot be read; contains the response. */
class BodyError extends Error {
  readonly code: 400 | 413

  constructor(code: 400 | 413, message: string) {
    super(message)
    this.code = code
  }
}

export interface PlainServer {
  /** The actual port, also if 0 was requested. */
  readonly port: number
  /** Applies to new connections; no effect without TLS. @param clientCA default: unchanged */
  setServing(serving: ServingPair, clientCA?: string): void
  /** Accepts no more connections, and closes open ones once their response is sent. */
  stop(): Promise<void>
}

export interface PlainTls {
  /** PEM. */
  readonly serving: ServingPair
  readonly policy: TlsPolicy
  /** PEM; verifies client certificates, which are requested but optional. Default: none are requested. */
  readonly clientCA?: string
  /** A client sent something that is not a handshake, rejected ours, or timed out. Default: ignored. */
  onHandshakeFailed?(source: string): void
}

/** Responses are small: a silent connection is closed, unless it awaits a response, which may be a one-minute profile. */
const SILENCE_MS = 30_000
/** Timeout of a TLS handshake, and of a request head. */
const HEAD_MS = 10_000
/** Probes and scrapes are short; a token may have some ten thousand characters. */
const MAX_HEAD_BYTES = 64 * 1024
/** How often deadlines are checked. */
const CHECK_MS = 1000
const MAX_CONNECTIONS = 256
/** Leaves room for other clients. */
const MAX_CONNECTIONS_PER_ADDRESS = 64
/** Pipelined requests per connection: nearly all clients send the next one after the response. */
const MAX_PIPELINED = 16
/** How long `stop` waits for pending responses. */
const STOP_MS = 1000
/** The remaining connections are for short requests. */
const MAX_STREAMS = 64
const TEXT = 'text/plain; charset=utf-8'

const TOO_MANY_STREAMS: PlainResponse = {
  code: 429,
  contentType: TEXT,
  body: `this listener serves ${MAX_STREAMS} streams already\n`,
  headers: { 'retry-after': '5' },
}

/**
 * Rejects with the system's error (EADDRINUSE ...) if it cannot listen.
 * @param tls default: none
 * @param onBug called if `answer` rejects through no fault of the request; the client only gets a 500. Default: ignored
 */
export function startPlainServer(
  listen: ListenAddress,
  answer: (request: PlainRequest) => Promise<AnyResponse>,
  tls?: PlainTls,
  onBug?: (error: unknown, path: string) => void,
): Promise<PlainServer> {
  const connections = new BoundedConnections({ total: MAX_CONNECTIONS, perAddress: MAX_CONNECTIONS_PER_ADDRESS })
  const feeds = new WeakMap<Socket, Http1Feed>()
  let streams = 0
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    // Sent along with a request that exceeded the limit.
    if (request.socket.destroyed) return
    const ends = endsOf(request.socket)
    if (connections.answering(ends, 1) > MAX_PIPELINED) return void request.socket.destroy()
    response.once('close', () => connections.answering(ends, -1))
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    let read = false
    const readBody = (maxBytes: number): Promise<string> => {
      read = true
      return readText(request, maxBytes)
    }
    const failed = { code: 500, contentType: TEXT, body: 'internal error\n' }
    const certificate = tls?.clientCA === undefined ? undefined : certificateOf(request.socket, chains)
    const asked = { ...plainRequest(request), certificate, signal: gone.signal, readBody }
    // The body has its own limit: requestTimeout.
    request.socket.setTimeout(0)
    inStep('admin', () => answer(asked))
      .catch((error: unknown) => {
        if (error instanceof BodyError) {
          lingerBehindAnswer(request.socket, () => feeds.get(request.socket)?.end())
          return refusedBody(error)
        }
        onBug?.(error, asked.path)
        return failed
      })
      .then((result) => {
        request.socket.setTimeout(SILENCE_MS)
        // Discard the rest of the body.
        if (!read) request.resume()
        if (!('stream' in result)) return send(response, result)
        if (streams >= MAX_STREAMS) return send(response, TOO_MANY_STREAMS)
        streams++
        return sendStream(response, result).finally(() => {
          streams--
        })
      })
      .catch(() => response.destroy())
  }
  const options = {
    requestTimeout: HEAD_MS,
    headersTimeout: HEAD_MS,
    connectionsCheckingInterval: CHECK_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
  }
  const chains = new PresentedChains()
  const secure = tls && createTlsServer({ ...options, handshakeTimeout: HEAD_MS, ...own(tls), ...asking(tls, chains) })
  const server: Server | TlsServer = secure ?? createServer(options)
  server.on('request', onRequest)
  secure?.on('tlsClientError', (error, socket) => {
    if (isFailedHandshake(error, socket)) tls?.onHandshakeFailed?.(addressSource(socket.remoteAddress ?? ''))
    // On a handshake timeout, node:tls reports the error but leaves the socket open.
    socket.destroy()
  })
  server.setTimeout(SILENCE_MS)
  server.on('connection', (socket) => connections.admit(socket))
  // After node:http's own listener. It shares the thread with verdicts, probes and object changes.
  server.on(secure === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    const below: unknown = Reflect.get(socket, '_parent')
    const source = addressSource(socket.remoteAddress ?? '')
    if (secure !== undefined && below instanceof Socket) {
      watchRecords(socket, below, () => tls?.onHandshakeFailed?.(source))
    }
    if (socket.destroyed) return
    feeds.set(socket, new Http1Feed(socket, { charge: addressCharge(socket.remoteAddress ?? '') }))
  })
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), STOP_MS).unref()
    })
  let inForce = tls
  const setServing = (serving: ServingPair, clientCA = inForce?.clientCA): void => {
    if (inForce === undefined) return
    inForce = { ...inForce, serving, ...(clientCA !== undefined && { clientCA }) }
    secure?.setSecureContext(own(inForce))
  }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen.port, listen.host, () => {
      server.off('error', reject)
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : listen.port
      resolve({ port, setServing, stop })
    })
  })
}

/** As on the gateway's ports: a silent connection is not an attempt, and neither is a port check. */
function isFailedHandshake(error: Error, socket: Socket): boolean {
  const isTooLate = Reflect.get(error, 'code') === 'ERR_TLS_HANDSHAKE_TIMEOUT'
  return isRefusedByTls(error) || (isTooLate && socket.bytesRead > 0)
}

function own({ serving, policy, clientCA }: PlainTls): ServingPair & TlsPolicy & { ca?: string } {
  return { cert: serving.cert, key: serving.key, ...policy, ...(clientCA && { ca: clientCA }) }
}

/** A client without a certificate, or with an unverified one, may have another credential. */
function asking({ clientCA }: PlainTls, chains: PresentedChains): TlsOptions {
  if (clientCA === undefined) return {}
  return {
    requestCert: true,
    rejectUnauthorized: false,
    ALPNCallback({ protocols }) {
      chains.takeEarly(this)
      return protocols.find((protocol) => protocol === 'http/1.1')
    },
    SNICallback(_, done) {
      chains.takeEarly(this)
      done(null)
    },
  }
}

function certificateOf(socket: Socket, chains: PresentedChains): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  const chain = chains.of(socket)
  if (chain.length === 0) return undefined
  return { chain, verified: socket.authorized, verifyError: String(socket.authorizationError ?? '') }
}

function plainRequest(request: IncomingMessage): Omit<PlainRequest, 'certificate' | 'signal' | 'readBody'> {
  const target = request.url ?? '/'
  const mark = target.indexOf('?')
  return {
    method: request.method ?? '',
    path: mark < 0 ? target : target.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1)),
    authorization: request.headers.authorization ?? '',
    remoteAddress: request.socket.remoteAddress ?? '',
    header: (name) => [request.headers[name] ?? ''].flat().join(', '),
  }
}

/** Not with an iterator, which would destroy the socket at its end, before the response is sent. */
function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= maxBytes) chunks.push(chunk)
      else {
        request.pause()
        reject(new BodyError(413, `the body has more than ${maxBytes} bytes`))
      }
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString()))
    request.on('error', (error) => reject(new BodyError(400, `the body broke off: ${errorMessage(error)}`)))
  })
}

/** Little of the remaining body is read: the connection ends with the response. */
function refusedBody({ code, message }: BodyError): PlainResponse {
  return { code, contentType: TEXT, body: `${message}\n`, headers: { connection: 'close' } }
}

function headOf({ contentType, headers }: AnyResponse): Record<string, string> {
  return {
    'content-type': contentType,
    'cache-control': 'no-cache, private',
    'x-content-type-options': 'nosniff',
    ...headers,
  }
}

function send(response: ServerResponse, result: PlainResponse): void {
  response.writeHead(result.code, { ...headOf(result), 'content-length': Buffer.byteLength(result.body) })
  response.end(result.body)
}

async function sendStream(response: ServerResponse, result: StreamedResponse): Promise<void> {
  const { socket } = response
  // A stream may be silent for long; a client that does not read is closed, and so is one that has vanished.
  socket?.setTimeout(0)
  socket?.setKeepAlive(true, SILENCE_MS)
  response.writeHead(result.code, headOf(result))
  response.flushHeaders()
  await result.stream({
    async write(chunk) {
      if (response.destroyed || socket === null) throw new Error('the client has gone')
      if (response.write(chunk)) return
      socket.setTimeout(SILENCE_MS)
      await drained(response)
      socket.setTimeout(0)
    },
  })
  socket?.setTimeout(SILENCE_MS)
  response.end()
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      response.off('drain', settle)
      response.off('close', settle)
      if (response.destroyed) reject(new Error('the client has gone'))
      else resolve()
    }
    response.on('drain', settle)
    response.on('close', settle)
  })
}
