// One TLS port: accepts, chooses the TLS context by SNI or by the local address, and hands each connection to HTTP/2 or HTTP/1.1 by ALPN.

import type { ServerHttp2Session } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type SecureContext, type TLSSocket, type Server as TlsServer } from 'node:tls'
import type { Peer, PeerCertificate, RequestHandler } from '../api/stream.ts'
import type { UpgradeHandler } from '../api/upgrade.ts'
import type { CompiledCluster } from '../core/compiled-cluster.ts'
import { createHttp1Server, type Http1Server } from './http1-server.ts'
import { drainSession, serveHttp2 } from './http2-server.ts'
import type { TlsContexts } from './tls-contexts.ts'

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  readonly maxHeaderBytes: number
  readonly maxConcurrentStreams: number
  readonly headerTimeoutMs: number
  readonly contexts: TlsContexts
  /** Which cluster's context a connection gets; undefined = the gateway's own. */
  clusterForServerName(serverName: string): CompiledCluster | undefined
  clusterForAddress(localAddress: string, localPort: number): CompiledCluster | undefined
  readonly handler: RequestHandler
  readonly onUpgrade: UpgradeHandler
  onConnection?(protocol: Peer['protocol'], change: 1 | -1): void
  onHandshakeError?(error: Error): void
}

export interface Listener {
  readonly port: number
  /** Stops accepting; HTTP/2 clients get GOAWAY, idle HTTP/1.1 connections close, running requests go on. */
  drain(): void
  /** Ends every connection. */
  close(): void
  connections(): number
}

/** A handshake takes no longer, nor longer than a request head may take, or the connection ends. */
const HANDSHAKE_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 30_000
const LISTEN_BACKLOG = 4096
const OWN = ''

let nextPeerId = 1

/** @throws when the port cannot be opened */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const connections = new Connections(options)
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }, (socket) =>
    connections.accept(socket),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: options.host, port: options.port, backlog: LISTEN_BACKLOG }, () => resolve())
  })
  server.on('error', () => undefined)
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    drain() {
      closeListening(server)
      connections.drain()
    },
    close() {
      closeListening(server)
      connections.close()
    },
    connections: () => connections.size,
  }
}

function closeListening(server: Server): void {
  if (server.listening) server.close()
}

class Connections {
  readonly #options: ListenerOptions
  readonly #http1: Http1Server
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<Socket>()
  /** By the cluster that the local address names; the TLS context of connections without SNI is chosen before the handshake. */
  readonly #tlsServers = new Map<string, { readonly server: TlsServer; context: SecureContext }>()
  #draining = false

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#http1 = createHttp1Server(options, options.handler, options.onUpgrade)
  }

  get size(): number {
    return this.#sockets.size
  }

  accept(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => undefined)
    if (this.#draining) {
      socket.destroy()
      return
    }
    const cluster = this.#options.clusterForAddress(socket.localAddress ?? '', socket.localPort ?? 0)
    this.#tlsServer(cluster).emit('connection', socket)
  }

  #tlsServer(cluster: CompiledCluster | undefined): TlsServer {
    const { contexts } = this.#options
    const name = cluster?.name ?? OWN
    const context = cluster === undefined ? contexts.own() : contexts.forCluster(cluster)
    let entry = this.#tlsServers.get(name)
    if (entry === undefined) {
      entry = { server: this.#createTlsServer(name, cluster), context }
      this.#tlsServers.set(name, entry)
    } else if (entry.context !== context) {
      entry.context = context
      entry.server.setSecureContext(contexts.optionsFor(cluster))
    }
    return entry.server
  }

  #createTlsServer(name: string, cluster: CompiledCluster | undefined): TlsServer {
    const { contexts } = this.#options
    const server = createTlsServer({
      ...contexts.optionsFor(cluster),
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: Math.min(HANDSHAKE_TIMEOUT_MS, this.#options.headerTimeoutMs),
      SNICallback: (serverName, done) => {
        const named = this.#options.clusterForServerName(serverName)
        done(null, named === undefined ? undefined : contexts.forCluster(named))
      },
    })
    server.on('secureConnection', (socket) => this.#secure(socket, name))
    server.on('tlsClientError', (error, socket) => {
      this.#options.onHandshakeError?.(error)
      // node:tls reports a handshake that takes too long, and leaves the socket open.
      socket.destroy()
    })
    return server
  }

  #secure(socket: TLSSocket, addressCluster: string): void {
    const serverName = normalizeServerName(socket.servername)
    const named = serverName === '' ? undefined : this.#options.clusterForServerName(serverName)
    const peer = describePeer(socket, serverName, named?.name ?? addressCluster)
    this.#options.onConnection?.(peer.protocol, 1)
    socket.once('close', () => this.#options.onConnection?.(peer.protocol, -1))
    if (peer.protocol === 'http/1.1') {
      this.#http1.serve(socket, peer)
      return
    }
    const session = serveHttp2(socket, peer, this.#options, this.#options.handler)
    this.#sessions.add(session)
    session.once('close', () => this.#sessions.delete(session))
    if (this.#draining) drainSession(session)
  }

  drain(): void {
    this.#draining = true
    this.#http1.drain()
    for (const session of this.#sessions) drainSession(session)
  }

  close(): void {
    this.#draining = true
    this.#http1.close()
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** Go sends the name without a trailing dot and in the case of the kubeconfig; clients without SNI give `false`. */
function normalizeServerName(serverName: string | false | null | undefined): string {
  if (typeof serverName !== 'string') return ''
  const lower = serverName.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

function describePeer(socket: TLSSocket, serverName: string, tlsCluster: string): Peer {
  return {
    id: nextPeerId++,
    protocol: socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1',
    serverName,
    tlsCluster,
    localAddress: socket.localAddress ?? '',
    localPort: socket.localPort ?? 0,
    remoteAddress: socket.remoteAddress ?? '',
    remotePort: socket.remotePort ?? 0,
    certificate: peerCertificate(socket),
    memo: new Map(),
  }
}

function peerCertificate(socket: TLSSocket): PeerCertificate | undefined {
  const leaf = socket.getPeerCertificate(true)
  if (leaf?.raw === undefined) return undefined
  const chain: Buffer[] = []
  const seen = new Set<string>()
  // A self-signed certificate is its own issuer in this list: the loop ends there.
  for (let next = leaf; next?.raw !== undefined && !seen.has(next.fingerprint256); next = next.issuerCertificate) {
    seen.add(next.fingerprint256)
    chain.push(next.raw)
  }
  const error = socket.authorizationError
  return {
    chain,
    verified: socket.authorized,
    verifyError: error === undefined || error === null ? '' : String(error),
  }
}
