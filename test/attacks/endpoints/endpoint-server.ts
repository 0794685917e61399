// The server of a hostile endpoint: HTTP/1.1 and HTTP/2 as node:http and node:http2 speak them, and a way to send anything else on a connection.

import { createServer as createHttp1Server } from 'node:http'
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'

/** Those of HTTP/1.1 are used in the same way, which the types of Node do not say. */
type RequestListener = (request: Http2ServerRequest, response: Http2ServerResponse) => void

export interface EndpointServer {
  readonly port: number
  /** The sockets of all connections. */
  readonly sockets: ReadonlySet<TLSSocket>
}

export interface EndpointServerOptions {
  readonly cert: string
  readonly key: string
  speaksH2(): boolean
  /** @param socket of its connection */
  onRequest(request: Http2ServerRequest, response: Http2ServerResponse, socket: TLSSocket): void
}

export async function startEndpointServer({ cert, key, ...events }: EndpointServerOptions): Promise<EndpointServer> {
  const sockets = new Set<TLSSocket>()
  const ALPNCallback = ({ protocols }: { readonly protocols: readonly string[] }): string =>
    events.speaksH2() && protocols.includes('h2') ? 'h2' : 'http/1.1'
  const server = createTlsServer({ cert, key, ALPNCallback }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', ignore)
    const onRequest: RequestListener = (request, response) => events.onRequest(request, response, socket)
    if (socket.alpnProtocol === 'h2') {
      // node:http2 takes a socket for itself alone.
      const h2 = createHttp2Server(onRequest).on('sessionError', ignore)
      h2.on('session', (session) => void session.on('error', ignore)).emit('connection', new Passing(socket))
    } else {
      const http1 = createHttp1Server().on('clientError', ignore)
      http1.on('request', onRequest as never).emit('connection', socket)
    }
  })
  server.on('tlsClientError', ignore)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, sockets }
}

function ignore(): void {
  // The gateway ends connections, as it should.
}

/** The same bytes, both ways. */
class Passing extends Duplex {
  readonly #socket: TLSSocket

  constructor(socket: TLSSocket) {
    super()
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.push(chunk) || socket.pause())
    socket.on('end', () => this.push(null)).on('close', () => this.destroy())
    this.on('error', ignore)
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
