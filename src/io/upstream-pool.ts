// All connections to the kube-apiservers: one pool for each endpoint, chosen to speak h2 or HTTP/1.1 by what the server negotiates.

import { isIP, connect as netConnect } from 'node:net'
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls'
import type { HeaderList, Stream, StreamEvents } from '../api/stream.ts'
import type { CompiledClient, CompiledEndpoint } from '../core/compiled-cluster.ts'
import { Http1Pool } from './upstream-http1.ts'
import { Http2Sessions } from './upstream-http2.ts'

/** Requests of different classes never share a connection. */
export type RequestClass = 'unary' | 'watch' | 'anonymous'

export interface UpstreamEndpoint {
  /** Sends a request on behalf of a client. What goes wrong is told by `events.onReset`, never thrown. */
  open(kind: RequestClass, head: HeaderList, end: boolean, events: StreamEvents): Stream
  /** A connection of its own that speaks HTTP/1.1, for upgrades. */
  connectHttp1(): Promise<TLSSocket | ReturnType<typeof netConnect>>
  /** No new requests; running ones finish. */
  drain(): void
  destroy(): void
  connections(): number
}

const CONNECT_TIMEOUT_MS = 5_000

export interface UpstreamEvents {
  /** A connection failed or broke: a reason to doubt the endpoint. */
  onBroken(error: Error): void
}

/** TLS options for an endpoint: who we are and whom we trust. */
export function upstreamTls(endpoint: CompiledEndpoint, client: CompiledClient): ConnectionOptions {
  const name = client.serverName !== '' ? client.serverName : endpoint.host
  return {
    rejectUnauthorized: !client.insecure,
    // SNI must not be an IP address (RFC 6066 section 3); the certificate is checked against the host then.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...(client.ca !== '' ? { ca: client.ca } : {}),
    ...(client.cert !== '' ? { cert: client.cert, key: client.key } : {}),
  }
}

export function createUpstreamEndpoint(
  endpoint: CompiledEndpoint,
  client: CompiledClient,
  events: UpstreamEvents,
): UpstreamEndpoint {
  return new Endpoint(endpoint, client, events)
}

class Endpoint implements UpstreamEndpoint {
  readonly #endpoint: CompiledEndpoint
  readonly #client: CompiledClient
  readonly #events: UpstreamEvents
  readonly #authority: string
  /** Learnt from the first connection; plain http has no negotiation. */
  #protocol: 'unknown' | 'h2' | 'http/1.1'
  readonly #h2: Record<RequestClass, Http2Sessions>
  #http1: Http1Pool | undefined

  constructor(endpoint: CompiledEndpoint, client: CompiledClient, events: UpstreamEvents) {
    this.#endpoint = endpoint
    this.#client = client
    this.#events = events
    const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host
    this.#authority = `${host}:${endpoint.port}`
    this.#protocol = endpoint.scheme === 'http' ? 'http/1.1' : 'unknown'
    this.#h2 = { unary: this.#sessions(), watch: this.#sessions(), anonymous: this.#sessions() }
  }

  #sessions(): Http2Sessions {
    return new Http2Sessions({
      authority: this.#authority,
      connect: () => this.#connectH2(),
      onBroken: (error) => {
        if (!(error instanceof SpeaksHttp1)) this.#events.onBroken(error)
      },
    })
  }

  open(kind: RequestClass, head: HeaderList, end: boolean, events: StreamEvents): Stream {
    if (this.#protocol === 'http/1.1') return this.#pool().open(head, end, events)
    if (this.#protocol === 'h2') return this.#h2[kind].open(head, end, events)
    return new UndecidedStream(
      this.#h2[kind],
      () => this.#protocol,
      () => this.#pool(),
      head,
      end,
      events,
    )
  }

  async #connectH2(): Promise<TLSSocket> {
    const socket = await this.#tls(['h2', 'http/1.1'])
    if (socket.alpnProtocol === 'h2') {
      this.#protocol = 'h2'
      return socket
    }
    this.#protocol = 'http/1.1'
    socket.destroy()
    throw new SpeaksHttp1()
  }

  #tls(protocols: string[]): Promise<TLSSocket> {
    const { host, port } = this.#endpoint
    return new Promise((resolve, reject) => {
      let socket: TLSSocket
      try {
        socket = tlsConnect({ ...upstreamTls(this.#endpoint, this.#client), host, port, ALPNProtocols: protocols })
      } catch (error) {
        reject(error as Error)
        return
      }
      const deadline = setTimeout(() => socket.destroy(new Error('connect timed out')), CONNECT_TIMEOUT_MS)
      // On both sides of the gateway: Nagle against delayed ACK costs 40 ms.
      socket.setNoDelay(true)
      socket.once('secureConnect', () => {
        clearTimeout(deadline)
        socket.removeListener('error', reject)
        resolve(socket)
      })
      socket.once('error', (error) => {
        clearTimeout(deadline)
        reject(error)
      })
    })
  }

  connectHttp1(): Promise<TLSSocket | ReturnType<typeof netConnect>> {
    if (this.#endpoint.scheme === 'https') return this.#tls(['http/1.1'])
    const { host, port } = this.#endpoint
    return new Promise((resolve, reject) => {
      const socket = netConnect({ host, port, noDelay: true, timeout: CONNECT_TIMEOUT_MS })
      socket.once('timeout', () => socket.destroy(new Error('connect timed out')))
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.setTimeout(0)
        socket.removeListener('error', reject)
        resolve(socket)
      })
    })
  }

  #pool(): Http1Pool {
    if (this.#http1 === undefined) {
      const { rejectUnauthorized, servername, ca, cert, key } = upstreamTls(this.#endpoint, this.#client)
      this.#http1 = new Http1Pool({
        origin: `${this.#endpoint.scheme}://${this.#authority}`,
        tls: {
          rejectUnauthorized: rejectUnauthorized ?? true,
          ...(servername !== undefined ? { servername } : {}),
          ...(typeof ca === 'string' ? { ca } : {}),
          ...(typeof cert === 'string' && typeof key === 'string' ? { cert, key } : {}),
        },
        onBroken: (error) => this.#events.onBroken(error),
      })
    }
    return this.#http1
  }

  drain(): void {
    for (const sessions of Object.values(this.#h2)) sessions.drain()
    this.#http1?.drain()
  }

  destroy(): void {
    for (const sessions of Object.values(this.#h2)) sessions.destroy()
    this.#http1?.destroy()
  }

  connections(): number {
    return Object.values(this.#h2).reduce((sum, sessions) => sum + sessions.size, 0)
  }
}

/** The server negotiated HTTP/1.1: no failure, but not h2. */
class SpeaksHttp1 extends Error {}

/** A request sent before the protocol was known: repeated over HTTP/1.1 when the server turns out to speak no h2. */
class UndecidedStream implements Stream {
  #stream: Stream
  readonly #protocol: () => string
  /** The body so far, until it is settled who gets it: an upload of any size must not stay in memory after that. */
  #early: { chunk: Buffer; end: boolean }[] | undefined = []

  constructor(
    h2: Http2Sessions,
    protocol: () => string,
    http1: () => Http1Pool,
    head: HeaderList,
    end: boolean,
    events: StreamEvents,
  ) {
    const self = this
    this.#protocol = protocol
    this.#stream = h2.open(head, end, {
      onHeaders: (list, last) => events.onHeaders(list, last),
      onBody: (chunk, last) => events.onBody(chunk, last),
      onTrailers: (list) => events.onTrailers(list),
      onDrained: () => events.onDrained(),
      onReset(reason) {
        if (reason !== 'refused' || protocol() !== 'http/1.1') {
          events.onReset(reason)
          return
        }
        self.#stream = http1().open(head, end, events)
        for (const part of self.#early ?? []) self.#stream.body(part.chunk, part.end)
        self.#early = undefined
      },
    })
  }

  get queued(): number {
    return this.#stream.queued
  }

  headers(list: HeaderList, end: boolean): void {
    this.#stream.headers(list, end)
  }

  body(chunk: Buffer, end: boolean): void {
    if (this.#protocol() === 'h2') this.#early = undefined
    this.#early?.push({ chunk, end })
    this.#stream.body(chunk, end)
  }

  trailers(list: HeaderList): void {
    this.#stream.trailers(list)
  }

  credit(bytes: number): void {
    this.#stream.credit(bytes)
  }

  reset(reason: Parameters<Stream['reset']>[0]): void {
    this.#stream.reset(reason)
  }
}
