// A small HTTP/1.1 server without TLS for small responses: the admin listener.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import { SourceConnections } from './source-connections.ts'

export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
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
  /** Takes no more connections, and closes those that are open once their answer is out. */
  stop(): Promise<void>
}

/** Responses are small: a connection on which nothing moves is closed. */
const SILENCE_MS = 30_000
/** How often deadlines are checked. */
const CHECK_MS = 1000
const MAX_CONNECTIONS = 256
/** So that one client leaves room for others. */
const MAX_CONNECTIONS_PER_ADDRESS = 64
/** How long `stop` waits for answers under way. */
const STOP_MS = 1000

/** Rejects with the system's error (EADDRINUSE ...) when it cannot listen. */
export function startPlainServer(
  listen: ListenAddress,
  answer: (request: PlainRequest) => Promise<PlainResponse>,
): Promise<PlainServer> {
  const timeouts = { requestTimeout: 10_000, headersTimeout: 10_000, connectionsCheckingInterval: CHECK_MS }
  const server = createServer(timeouts, (request, response) => {
    request.resume()
    answer(plainRequest(request)).then(
      (result) => send(response, result),
      () => send(response, { code: 500, contentType: 'text/plain; charset=utf-8', body: 'internal error\n' }),
    )
  })
  server.setTimeout(SILENCE_MS)
  server.maxConnections = MAX_CONNECTIONS
  const sources = new SourceConnections(MAX_CONNECTIONS_PER_ADDRESS)
  server.on('connection', (socket) => {
    if (!sources.admit(socket, socket.remoteAddress ?? '')) socket.destroy()
  })
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), STOP_MS).unref()
    })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen.port, listen.host, () => {
      server.off('error', reject)
      const address = server.address()
      resolve({ port: typeof address === 'object' && address !== null ? address.port : listen.port, stop })
    })
  })
}

function plainRequest(request: IncomingMessage): PlainRequest {
  const target = request.url ?? '/'
  const mark = target.indexOf('?')
  return {
    method: request.method ?? '',
    path: mark < 0 ? target : target.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1)),
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
