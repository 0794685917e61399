// A small HTTP/1.1 server for small responses: the admin listener, and the health listener, which may have TLS.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import { BoundedConnections, endsOf } from './bounded-connections.ts'
import type { ServingPair } from './tls-contexts.ts'
import type { TlsPolicy } from './tls-policy.ts'

export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** The field as it came; '' = there is none. */
  readonly authorization: string
  readonly remoteAddress: string
}

export interface PlainResponse {
  readonly code: number
  readonly contentType: string
  readonly body: string
  /** Additional header fields. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface PlainServer {
  /** The port in use, also when 0 was asked for. */
  readonly port: number
  /** The certificate for new connections. Without TLS nothing happens. */
  setServing(serving: ServingPair): void
  /** Takes no more connections, and closes those that are open once their answer is out. */
  stop(): Promise<void>
}

export interface PlainTls {
  /** PEM. */
  readonly serving: ServingPair
  readonly policy: TlsPolicy
}

/** Responses are small: a connection on which nothing moves is closed. */
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
/** How long `stop` waits for answers under way. */
const STOP_MS = 1000

/**
 * Rejects with the system's error (EADDRINUSE ...) when it cannot listen.
 * @param tls default: none
 */
export function startPlainServer(
  listen: ListenAddress,
  answer: (request: PlainRequest) => Promise<PlainResponse>,
  tls?: PlainTls,
): Promise<PlainServer> {
  const connections = new BoundedConnections({ total: MAX_CONNECTIONS, perAddress: MAX_CONNECTIONS_PER_ADDRESS })
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const ends = endsOf(request.socket)
    connections.answering(ends, 1)
    response.once('close', () => connections.answering(ends, -1))
    request.resume()
    answer(plainRequest(request)).then(
      (result) => send(response, result),
      () => send(response, { code: 500, contentType: 'text/plain; charset=utf-8', body: 'internal error\n' }),
    )
  }
  const options = {
    requestTimeout: HEAD_MS,
    headersTimeout: HEAD_MS,
    connectionsCheckingInterval: CHECK_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
  }
  const secure = tls === undefined ? undefined : createTlsServer({ ...options, handshakeTimeout: HEAD_MS, ...own(tls) })
  const server: Server | TlsServer = secure ?? createServer(options)
  server.on('request', onRequest)
  // node:tls reports a handshake that takes too long, and leaves the socket open.
  secure?.on('tlsClientError', (_, socket) => socket.destroy())
  server.setTimeout(SILENCE_MS)
  server.on('connection', (socket) => connections.admit(socket))
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), STOP_MS).unref()
    })
  const setServing = (serving: ServingPair): void => {
    if (tls !== undefined) secure?.setSecureContext(own({ ...tls, serving }))
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

function own({ serving, policy }: PlainTls): ServingPair & TlsPolicy {
  return { cert: serving.cert, key: serving.key, ...policy }
}

function plainRequest(request: IncomingMessage): PlainRequest {
  const target = request.url ?? '/'
  const mark = target.indexOf('?')
  return {
    method: request.method ?? '',
    path: mark < 0 ? target : target.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1)),
    authorization: request.headers.authorization ?? '',
    remoteAddress: request.socket.remoteAddress ?? '',
  }
}

function send(response: ServerResponse, result: PlainResponse): void {
  response.writeHead(result.code, {
    'content-type': result.contentType,
    'content-length': Buffer.byteLength(result.body),
    'cache-control': 'no-cache, private',
    'x-content-type-options': 'nosniff',
    ...result.headers,
  })
  response.end(result.body)
}
