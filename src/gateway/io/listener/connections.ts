// The connections of one TLS port, from the accepted socket on: selects the TLS context by SNI or local address, and hands each connection to HTTP/2
// or HTTP/1.1 by ALPN.

import { Socket } from 'node:net'
import {
  createServer as createTlsServer,
  type SecureContext,
  type SecureContextOptions,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls'
import { createHttp2Counters, type Http2Counters } from '../../../http2/counters.ts'
import type { LateBodyShare } from '../../../http2/late-bodies.ts'
import type { Peer, RequestHandler } from '../../../kit/api/stream.ts'
import type { UpgradeHandler } from '../../../kit/api/upgrade.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'
import type { OpenHeads } from '../../../kit/core/shares/open-heads.ts'
import { AT, beginStep } from '../../../kit/io/stalls/steps.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { type ConnectionEnds, KnownEnds, socketEnds } from './connection-ends.ts'
import { isRefusedByTls } from './handshakes/failed-handshake.ts'
import { Handshakes } from './handshakes/handshakes.ts'
import { createHttp1Server, type Http1Server } from './http1/server.ts'
import { type Http2Session, serveHttp2 } from './http2-server.ts'
import { OpenConnections, SourceConnections } from './open-connections.ts'
import { describePeer, PresentedChains } from './peer.ts'
import { ProxyProtocol, type ProxyProtocolOptions } from './proxy-protocol.ts'
import { watchRecords } from './record-watch.ts'
import type { AddressContext } from './tls-contexts.ts'

/** Provides TLS contexts; called for every connection, so that new certificates apply at once. */
export interface ListenerContexts {
  /** For connections whose SNI names the cluster. */
  forCluster(cluster: CompiledCluster): SecureContext
  /** For all others. */
  forAddress(cluster: CompiledCluster | undefined): AddressContext
}

/** A connection that has completed its handshake. */
export interface ServedConnection {
  /** Asks the client to reconnect: two-step GOAWAY, or `Connection: close` with the next response. Running requests continue. False: already asked. */
  drain(): boolean
  /** Requests begun so far; not counted over HTTP/1.1: 0. */
  requests(): number
}

/** Tracks the open connections, in addition to the port. */
export interface ServedConnections {
  add(connection: ServedConnection): void
  /** The connection has closed. */
  delete(connection: ServedConnection): void
}

/** Options common to all connections of a port, however accepted. */
export interface ConnectionsOptions {
  readonly maxHeaderBytes: number
  readonly maxConcurrentStreams: number
  readonly headerTimeoutMs: number
  /** Handshakes of all ports of a thread. Default: of this port alone, with HANDSHAKE_TIMEOUT_MS or the header timeout. */
  readonly handshakes?: Handshakes
  /** Connections of all ports of a thread. Default: unlimited. */
  readonly open?: OpenConnections
  /** Idle connections are closed after this time. */
  readonly idleTimeoutMs: number
  /** Accounts for incomplete heads. Default: not counted. */
  readonly heads?: OpenHeads
  /** Bounds the bodies still arriving after their response is complete, over HTTP/2. Default: bounded per connection only. */
  readonly lateBodies?: LateBodyShare
  /** HTTP/2: closes a connection without a request this long after its handshake. Default: the engine's. */
  readonly firstRequestTimeoutMs?: number
  /** Maximum open connections per IPv4 address, or IPv6 /64 network; 0 = unlimited. */
  readonly maxConnectionsPerAddress: number
  readonly contexts: ListenerContexts
  /** The cluster whose context a connection gets; undefined = the gateway's own. */
  clusterForServerName(serverName: string): CompiledCluster | undefined
  clusterForAddress(localAddress: string, localPort: number): CompiledCluster | undefined
  /** HTTP/2 connection counters. Default: not read. */
  readonly counters?: Http2Counters
  readonly handler: RequestHandler
  readonly onUpgrade: UpgradeHandler
  /** Default: none. */
  readonly served?: ServedConnections
  /** Share of HTTP/2 requests whose client is asked to reconnect (kube-apiserver's --goaway-chance). Default 0. */
  readonly goawayChance?: number
  /** A client was asked to reconnect by chance. */
  onGoaway?(): void
  onConnection?(protocol: Peer['protocol'], change: 1 | -1): void
  onHandshakeError?(error: Error): void
  /** A client sent something that is not a handshake, or that we reject. */
  onHandshakeFailed?(source: string): void
  /** An HTTP/2 connection was closed for abuse; `kind` is the name of a field of Http2Counters. */
  onAbuse?(address: string, kind: string): void
  /** A connection was closed on arrival: its address is at its limit. */
  onRefused?(address: string): void
  /** Connections begin with a PROXY header. Default: they do not. */
  readonly proxyProtocol?: ProxyProtocolOptions | undefined
}

/** Shared by the ports of a thread: handshake scheduling, connection limits, and reports of failed handshakes and abuse. */
export type PortAdmission = Pick<
  ConnectionsOptions,
  'handshakes' | 'open' | 'heads' | 'lateBodies' | 'counters' | 'onHandshakeError' | 'onHandshakeFailed' | 'onAbuse'
>

/** Handshake timeout; also never longer than the timeout of a request head. */
export const HANDSHAKE_TIMEOUT_MS = 10_000
const OWN = ''
/** In order of preference. */
const PROTOCOLS = ['h2', 'http/1.1']

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #http1: Http1Server
  readonly #counters: Http2Counters
  readonly #sessions = new Set<Http2Session>()
  readonly #sockets = new Set<Socket>()
  readonly #sources: SourceConnections
  readonly #handshakes: Handshakes
  readonly #open: OpenConnections
  /** Keyed by the cluster that the local address selects; the TLS context of connections without SNI is chosen before the handshake. */
  readonly #tlsServers = new Map<string, { readonly server: TlsServer; context: SecureContext }>()
  readonly #chains = new PresentedChains()
  readonly #proxyProtocol: ProxyProtocol | undefined
  /** Ends of every connection of a port with PROXY protocol. */
  readonly #ends = new KnownEnds()
  readonly #http2Handler: RequestHandler
  #draining = false
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    this.#sources = new SourceConnections(options.maxConnectionsPerAddress)
    this.#handshakes = options.handshakes ?? ownHandshakes(options)
    this.#open = options.open ?? new OpenConnections({ max: 0, maxUnauthenticated: 0 })
    this.#counters = options.counters ?? createHttp2Counters()
    this.#http1 = createHttp1Server(options, options.handler, options.onUpgrade)
    const { goawayChance = 0 } = options
    this.#http2Handler = goawayChance === 0 ? options.handler : drainByChance(options, goawayChance)
    const { proxyProtocol } = options
    if (proxyProtocol !== undefined) {
      this.#proxyProtocol = new ProxyProtocol(proxyProtocol, (socket, ends, counted) => {
        this.#ends.set(socket, ends)
        if (!counted || this.#admit(socket, ends)) this.#serve(socket, ends)
      })
    }
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Serves a client from whose socket nothing was read: the port's own, or one that another thread accepted. */
  accept(socket: Socket): void {
    socket.on('error', () => undefined)
    if (this.#proxyProtocol === undefined) {
      const ends = socketEnds(socket)
      if (!this.#admit(socket, ends)) return
      this.#keep(socket)
      this.#serve(socket, ends)
    } else {
      this.#keep(socket)
      this.#proxyProtocol.receive(socket)
    }
  }

  /** Whether its address may open one more; otherwise closes it. */
  #admit(socket: Socket, { remoteAddress }: ConnectionEnds): boolean {
    if (this.#sources.admit(socket, remoteAddress)) return true
    socket.destroy()
    this.#options.onRefused?.(remoteAddress)
    return false
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
  }

  #serve(socket: Socket, { localAddress, localPort, remoteAddress }: ConnectionEnds): void {
    const source = addressSource(remoteAddress)
    this.#open.add(socket, remoteAddress, source)
    // It may itself have been evicted.
    if (socket.destroyed) return
    this.#handshakes.add(socket, source, {
      onHello: () => this.#open.setBusy(socket, true),
      begin: () => {
        // A draining port still serves it: the accepting thread did not know of the drain yet.
        if (this.#closed) socket.destroy()
        else this.#tlsServer(this.#options.clusterForAddress(localAddress, localPort)).emit('connection', socket)
      },
    })
  }

  #tlsServer(cluster: CompiledCluster | undefined): TlsServer {
    const name = cluster?.name ?? OWN
    const { options, context } = this.#options.contexts.forAddress(cluster)
    let entry = this.#tlsServers.get(name)
    if (entry === undefined) {
      entry = { server: this.#createTlsServer(options), context }
      this.#tlsServers.set(name, entry)
      adoptContext(entry.server, context)
    } else if (entry.context !== context) {
      entry.context = context
      entry.server.setSecureContext(options)
      adoptContext(entry.server, context)
    }
    return entry.server
  }

  #createTlsServer(options: SecureContextOptions): TlsServer {
    const { contexts, clusterForServerName, onHandshakeError, onHandshakeFailed } = this.#options
    const chains = this.#chains
    const server = createTlsServer({
      ...options,
      requestCert: true,
      rejectUnauthorized: false,
      ALPNCallback({ protocols }) {
        beginStep(AT.handshake, performance.now())
        chains.takeEarly(this)
        // undefined: the handshake fails with no_application_protocol (RFC 7301 section 3.2).
        return PROTOCOLS.find((protocol) => protocols.includes(protocol))
      },
      SNICallback(serverName, done) {
        chains.takeEarly(this)
        const named = clusterForServerName(serverName)
        done(null, named === undefined ? undefined : contexts.forCluster(named))
      },
    })
    server.on('secureConnection', (socket) => {
      const below: unknown = Reflect.get(socket, '_parent')
      if (!(below instanceof Socket)) return void socket.destroy()
      this.#handshakes.secured(below)
      this.#open.setBusy(below, false)
      watchRecords(socket, below, () => this.#endFlood(below))
      this.#secure(socket, below)
    })
    server.on('tlsClientError', (error, socket) => {
      onHandshakeError?.(error)
      const open = this.#open.of(Reflect.get(socket, '_parent'))
      if (open !== undefined && isRefusedByTls(error)) onHandshakeFailed?.(open.source)
      // On a handshake timeout, node:tls reports the error but leaves the socket open.
      socket.destroy()
    })
    return server
  }

  #endFlood(below: Socket): void {
    this.#counters.emptyRecords++
    const open = this.#open.of(below)
    if (open === undefined) return
    this.#options.onAbuse?.(open.address, 'emptyRecords')
    this.#options.onHandshakeFailed?.(addressSource(open.address))
  }

  /** @param below the accepted socket */
  #secure(socket: TLSSocket, below: Socket): void {
    const ends = this.#proxyProtocol === undefined ? socketEnds(socket) : this.#ends.get(socket)
    // Never use the load balancer's address in place of the client's.
    if (ends === undefined) {
      socket.destroy()
      return
    }
    const serverName = normalizeServerName(socket.servername)
    const named = serverName === '' ? undefined : this.#options.clusterForServerName(serverName)
    let drain = (): boolean => this.#http1.drainConnection(socket)
    let requests = (): number => 0
    let widen = (): void => undefined
    const tlsCluster = named?.name ?? ''
    const open = this.#open.of(below)
    if (open !== undefined) open.drain = () => drain()
    const peer = describePeer(socket, ends, serverName, tlsCluster, this.#chains.of(socket), {
      drain: () => drain(),
      authenticated: (charge) => {
        if (open !== undefined) this.#open.authenticated(open, charge)
        widen()
      },
    })
    const { served } = this.#options
    if (served !== undefined) {
      const connection: ServedConnection = { drain: () => drain(), requests: () => requests() }
      served.add(connection)
      socket.once('close', () => served.delete(connection))
    }
    this.#options.onConnection?.(peer.protocol, 1)
    socket.once('close', () => this.#options.onConnection?.(peer.protocol, -1))
    if (peer.protocol === 'http/1.1') {
      this.#http1.serve(socket, peer)
      return
    }
    const { onAbuse } = this.#options
    const handler = this.#http2Handler
    const session = serveHttp2(socket, peer, this.#options, this.#counters, handler, (kind) =>
      onAbuse?.(peer.remoteAddress, kind),
    )
    drain = () => session.drain()
    requests = () => session.requests()
    widen = () => session.authenticated()
    this.#sessions.add(session)
    socket.once('close', () => this.#sessions.delete(session))
    if (this.#draining) session.drain()
  }

  leave(): void {
    this.#http1.leave()
  }

  drain(): void {
    this.#draining = true
    this.#http1.drain()
    for (const session of this.#sessions) session.drain()
  }

  close(): void {
    this.#draining = true
    this.#closed = true
    this.#http1.close()
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }
}

function ownHandshakes({ headerTimeoutMs, onHandshakeError }: ConnectionsOptions): Handshakes {
  return new Handshakes({
    timeoutMs: Math.min(HANDSHAKE_TIMEOUT_MS, headerTimeoutMs),
    onFailed: (_, reason) => onHandshakeError?.(new Error(`no TLS handshake: ${reason}`)),
  })
}

/** Like kube-apiserver's filter WithProbabilisticGoaway: the request is served, as is everything running on its connection. */
function drainByChance({ handler, onGoaway }: ConnectionsOptions, chance: number): RequestHandler {
  return (peer, stream, head, end) => {
    if (Math.random() < chance && peer.drain()) onGoaway?.()
    return handler(peer, stream, head, end)
  }
}

/** Go sends the name without a trailing dot and in the kubeconfig's case; clients without SNI yield `false`. */
function normalizeServerName(serverName: string | false | null | undefined): string {
  if (typeof serverName !== 'string') return ''
  const lower = serverName.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** `setSecureContext` ignores allowPartialTrustChain, so set the context itself. If that stops working, verification is merely stricter. */
function adoptContext(server: TlsServer, context: SecureContext): void {
  Reflect.set(server, '_sharedCreds', context)
}
