// Opens sockets to an endpoint, with our credentials, trusted CAs and protocols, and only to addresses that the operator allows.

import { isIP, connect as netConnect, type Socket } from 'node:net'
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls'
import type { GuardedServer } from '../../../kit/io/dial/dial-guard.ts'
import type { CompiledClient, CompiledEndpoint } from '../../core/cluster/compiled-cluster.ts'
import { sharedSecureContext } from '../listener/secure-contexts.ts'

const CONNECT_TIMEOUT_MS = 5_000

/** TLS options for an endpoint. */
function upstreamTls(endpoint: CompiledEndpoint, client: CompiledClient): ConnectionOptions {
  const name = client.serverName !== '' ? client.serverName : (endpoint.of?.name ?? endpoint.host)
  return {
    rejectUnauthorized: !client.insecure,
    // SNI must not be an IP address (RFC 6066 section 3); the certificate is then checked against the host.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...(client.ca !== '' ? { ca: client.ca } : {}),
    ...(client.cert !== '' ? { cert: client.cert, key: client.key } : {}),
  }
}

/** Opens sockets to one endpoint. */
export class UpstreamConnector {
  readonly #endpoint: CompiledEndpoint
  readonly #client: CompiledClient
  readonly #server: GuardedServer
  /** Created once: parsing a CA bundle takes milliseconds. */
  #tls: ConnectionOptions | undefined

  constructor(endpoint: CompiledEndpoint, client: CompiledClient, server: GuardedServer) {
    this.#endpoint = endpoint
    this.#client = client
    this.#server = server
  }

  /** @throws (rejects) the error of the system or OpenSSL, or a timeout after 5 s */
  tls(protocols: string[]): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      // Throws if the address is not allowed or OpenSSL cannot read a certificate; the promise then rejects.
      const socket = tlsConnect({ ...this.#options(), ...this.#server.target(), ALPNProtocols: protocols })
      const deadline = setTimeout(() => socket.destroy(new Error('connect timed out')), CONNECT_TIMEOUT_MS)
      // On both sides of the gateway: Nagle combined with delayed ACK costs 40 ms.
      socket.setNoDelay(true)
      socket.once('secureConnect', () => {
        clearTimeout(deadline)
        socket.removeListener('error', reject)
        resolve(socket)
      })
      socket.once('error', reject)
      socket.once('close', () => {
        clearTimeout(deadline)
        // The server closed silently during the handshake; no effect once connected.
        reject(new Error('connection closed in the handshake'))
      })
    })
  }

  #options(): ConnectionOptions {
    if (this.#tls === undefined) {
      const { ca: _ca, cert: _cert, key: _key, ...rest } = upstreamTls(this.#endpoint, this.#client)
      const { ca, cert, key } = this.#client
      const own = cert === '' ? {} : { cert, key }
      this.#tls = { ...rest, secureContext: sharedSecureContext({ ...own, ...(ca === '' ? {} : { ca }) }) }
    }
    return this.#tls
  }

  /** A connection that speaks HTTP/1.1. */
  http1(): Promise<TLSSocket | Socket> {
    if (this.#endpoint.scheme === 'https') return this.tls(['http/1.1'])
    return new Promise((resolve, reject) => {
      const socket = netConnect({ ...this.#server.target(), noDelay: true, timeout: CONNECT_TIMEOUT_MS })
      socket.once('timeout', () => socket.destroy(new Error('connect timed out')))
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.setTimeout(0)
        socket.removeListener('error', reject)
        resolve(socket)
      })
    })
  }
}
