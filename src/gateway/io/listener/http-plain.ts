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
import { BoundedConnections, endsOf } from './bounded-connections.ts'
import { isRefusedByTls } from './handshakes/failed-handshake.ts'
import { Http1Feed } from './http1-feed.ts'
import { PresentedChains } from './peer.ts'
import { watchRecords } from './record-watch.ts'
import type { ServingPair } from './tls-contexts.ts'
import type { TlsPolicy } from './tls-policy.ts'

export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** The field as it came; '' = there is none. */
  readonly authorization: string
  readonly remoteAddress: string
  /** Another field as it came; '' = there is none. @param name in lower case */
  header(name: string): string
  /** undefined = none was asked for, or presented. */
  readonly certificate: PeerCertificate | undefined
  /** Aborts when the client has gone, or has its whole answer. */
  readonly signal: AbortSignal
  /** The body as text. Rejects with a BodyError when it has more bytes, or breaks off. */
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

/** A response whose length is not known when it begins. */
export interface StreamedResponse extends ResponseHead {
  /** Writes it; the response ends when it resolves, and breaks off when it rejects. It has to end when the request's signal aborts. */
  stream(out: StreamOut): Promise<void>
}

export interface StreamOut {
  /** Resolves when there is room for more; rejects when the client has gone. */
  write(chunk: string | Uint8Array): Promise<void>
}

export type AnyResponse = PlainResponse | StreamedResponse

/** The body cannot be read, and what to answer then. */
export class BodyError extends Error {
  readonly code: 400 | 413

  constructor(code: 400 | 413, message: string) {
    super(message)
    this.code = code
  }
}

export interface PlainServer {
  /** The port in use, also when 0 was asked for. */
  readonly port: number
  /** For new connections. Without TLS nothing happens. @param clientCA default: as before */
  setServing(serving: ServingPair, clientCA?: string): void
  /** Takes no more connections, and closes those that are open once their answer is out. */
  stop(): Promise<void>
}

export interface PlainTls {
  /** PEM. */
  readonly serving: ServingPair
  readonly policy: TlsPolicy
  /** PEM; clients are asked for certificates, which it verifies. Connections without one are open. Default: they are not asked. */
  readonly clientCA?: string
  /** A client has sent what cannot be a handshake, has refused ours, or has not come to its end. Default: nobody. */
  onHandshakeFailed?(source: string): void
}

/** Responses are small: a connection on which nothing moves is closed, unless it waits for an answer, which may be a profile of a minute. */
const SILENCE_MS = 30_000
/** How long a TLS handshake, and how long the head of a request may take. */
const HEAD_MS = 10_000
/** Probes and scrapes are short; a token may be some ten thousand characters. */
const MAX_HEAD_BYTES = 64 * 1024
/** How often deadlines are checked. */
const CHECK_MS = 1000
const MAX_CONNECTIONS = 256
/** So that one client leaves room for others. */
const MAX_CONNECTIONS_PER_ADDRESS = 64
/** Requests of a connection that wait for answers: nearly all clients send the next one after the answer. */
const MAX_PIPELINED = 16
/** How long `stop` waits for answers under way. */
const STOP_MS = 1000
/** The other connections are for requests that are over in a moment. */
const MAX_STREAMS = 64
const TEXT = 'text/plain; charset=utf-8'

const TOO_MANY_STREAMS: PlainResponse = {
  code: 429,
  contentType: TEXT,
  body: `this listener serves ${MAX_STREAMS} streams already\n`,
  headers: { 'retry-after': '5' },
}

/**
 * Rejects with the system's error (EADDRINUSE ...) when it cannot listen.
 * @param tls default: none
 * @param onBug hears why `answer` rejected, where the request is not to blame; the client is told 500 and no more. Default: nobody
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
    // Of what came with the request that was one too many.
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
    // Its body has a limit of its own: requestTimeout.
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
        // What nobody wants of the body.
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
    // node:tls reports a handshake that takes too long, and leaves the socket open.
    socket.destroy()
  })
  server.setTimeout(SILENCE_MS)
  server.on('connection', (socket) => connections.admit(socket))
  // Behind node:http's own listener. It shares the thread with verdicts, probes and changes of objects.
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

/** As at the gateway's ports: silence is not an attempt, and neither is a look whether the port is open. */
function isFailedHandshake(error: Error, socket: Socket): boolean {
  const isTooLate = Reflect.get(error, 'code') === 'ERR_TLS_HANDSHAKE_TIMEOUT'
  return isRefusedByTls(error) || (isTooLate && socket.bytesRead > 0)
}

function own({ serving, policy, clientCA }: PlainTls): ServingPair & TlsPolicy & { ca?: string } {
  return { cert: serving.cert, key: serving.key, ...policy, ...(clientCA && { ca: clientCA }) }
}

/** Who presents none, or one that is not verified, may have another credential. */
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

/** Not by iteration, whose end would destroy the socket before the answer is out. */
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

/** Little of what is left of the body is read: the connection ends with the answer. */
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
  // A stream may have nothing to say for long; a client that does not read is closed, and so is one that has vanished.
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
