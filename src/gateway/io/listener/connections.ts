// The connections of one TLS port, from the accepted socket on: chooses the TLS context by SNI or by the local address, and hands
// each connection to HTTP/2 or HTTP/1.1 by ALPN.

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
import { createHttp1Server, type Http1Server } from './http1-server.ts'
import { type Http2Session, serveHttp2 } from './http2-server.ts'
import { OpenConnections } from './open-connections.ts'
import { describePeer, PresentedChains } from './peer.ts'
import { ProxyProtocol, type ProxyProtocolOptions } from './proxy-protocol.ts'
import { watchRecords } from './record-watch.ts'
import { SourceConnections } from './source-connections.ts'
import type { AddressContext } from './tls-contexts.ts'

/** Where TLS contexts come from; called for every connection, so that new certificates count at once. */
export interface ListenerContexts {
  /** For connections whose SNI names the cluster. */
  forCluster(cluster: CompiledCluster): SecureContext
  /** For all others. */
  forAddress(cluster: CompiledCluster | undefined): AddressContext
}

/** A connection whose handshake is complete. */
export interface ServedConnection {
  /**
   * Asks the client to open another one: GOAWAY in two steps, or `Connection: close` with the next answer. What runs goes on. False: it
   * was asked before.
   */
  drain(): boolean
  /** Requests begun so far; over HTTP/1.1 they are not counted: 0. */
  requests(): number
}

/** Who looks after them, besides the port. */
export interface ServedConnections {
  add(connection: ServedConnection): void
  /** It has closed. */
  delete(connection: ServedConnection): void
}

/** What holds for every connection of a port, however it was accepted. */
export interface ConnectionsOptions {
  readonly maxHeaderBytes: number
  readonly maxConcurrentStreams: number
  readonly headerTimeoutMs: number
  /** Those of all ports of a thread. Default: of this port alone, with HANDSHAKE_TIMEOUT_MS or the header timeout. */
  readonly handshakes?: Handshakes
  /** Those of all ports of a thread. Default: any number. */
  readonly open?: OpenConnections
  /** An idle connection is closed after this time. */
  readonly idleTimeoutMs: number
  /** Where the memory of heads comes from while they are not complete. Default: they are not counted. */
  readonly heads?: OpenHeads
  /** What bodies may still bring whose answer is complete, over HTTP/2. Default: only a connection bounds them. */
  readonly lateBodies?: LateBodyShare
  /** Over HTTP/2 one without a request, from its handshake on. Default: as of the engine. */
  readonly firstRequestTimeoutMs?: number
  /** Connections that one IPv4 address, or IPv6 network of 64 bits, may have open here; 0 = any number. */
  readonly maxConnectionsPerAddress: number
  readonly contexts: ListenerContexts
  /** Which cluster's context a connection gets; undefined = the gateway's own. */
  clusterForServerName(serverName: string): CompiledCluster | undefined
  clusterForAddress(localAddress: string, localPort: number): CompiledCluster | undefined
  /** Counters of the HTTP/2 connections. Default: not read. */
  readonly counters?: Http2Counters
  readonly handler: RequestHandler
  readonly onUpgrade: UpgradeHandler
  /** Default: nobody. */
  readonly served?: ServedConnections
  /** Part of the HTTP/2 requests whose client is asked for a new connection (kube-apiserver's --goaway-chance). Default 0. */
  readonly goawayChance?: number
  /** It was asked by chance. */
  onGoaway?(): void
  onConnection?(protocol: Peer['protocol'], change: 1 | -1): void
  onHandshakeError?(error: Error): void
  /** A client has sent what cannot be a handshake, or what we refuse. */
  onHandshakeFailed?(source: string): void
  /** An HTTP/2 connection was ended for abuse, by the name of a field of Http2Counters. */
  onAbuse?(address: string, kind: string): void
  /** A connection was closed on arrival: its address has as many as allowed. */
  onRefused?(address: string): void
  /** Connections begin with a PROXY header. Default: they do not. */
  readonly proxyProtocol?: ProxyProtocolOptions | undefined
}

/** What ports of a thread share: when handshakes begin, how many connections there may be, and who hears of those that fail or are ended. */
export type PortAdmission = Pick<
  ConnectionsOptions,
  'handshakes' | 'open' | 'heads' | 'lateBodies' | 'counters' | 'onHandshakeError' | 'onHandshakeFailed' | 'onAbuse'
>

/** Longest handshake; also no longer than a request head may take. */
export const HANDSHAKE_TIMEOUT_MS = 10_000
const OWN = ''
/** In the order of our preference. */
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
  /** By the cluster that the local address names; the TLS context of connections without SNI is chosen before the handshake. */
  readonly #tlsServers = new Map<string, { readonly server: TlsServer; context: SecureContext }>()
  readonly #chains = new PresentedChains()
  readonly #proxyProtocol: ProxyProtocol | undefined
  /** Of every connection of a port with PROXY protocol. */
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

  /** Serves the client behind a socket from which nothing was read: the port's own, or one that another thread has accepted. */
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

  /** Whether its address may have one more; otherwise it is closed. */
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
    // It may have been the one that had to go.
    if (socket.destroyed) return
    this.#handshakes.add(socket, source, {
      onHello: () => this.#open.setBusy(socket, true),
      begin: () => {
        // A drain serves it: whoever accepted it had not heard of the drain yet.
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
      // node:tls reports a handshake that takes too long, and leaves the socket open.
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

  /** @param below the socket that was accepted */
  #secure(socket: TLSSocket, below: Socket): void {
    const ends = this.#proxyProtocol === undefined ? socketEnds(socket) : this.#ends.get(socket)
    // Never the load balancer's in place of the client's.
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

/** As kube-apiserver's filter WithProbabilisticGoaway: the request is served, and so is all that runs on its connection. */
function drainByChance({ handler, onGoaway }: ConnectionsOptions, chance: number): RequestHandler {
  return (peer, stream, head, end) => {
    if (Math.random() < chance && peer.drain()) onGoaway?.()
    return handler(peer, stream, head, end)
  }
}

/** Go sends the name without a trailing dot and in the case of the kubeconfig; clients without SNI give `false`. */
function normalizeServerName(serverName: string | false | null | undefined): string {
  if (typeof serverName !== 'string') return ''
  const lower = serverName.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** `setSecureContext` knows no allowPartialTrustChain: the server gets the context itself. Without effect, it is only stricter. */
function adoptContext(server: TlsServer, context: SecureContext): void {
  Reflect.set(server, '_sharedCreds', context)
}
