// The other end of a TLS connection: its addresses, and the certificates it presented.

import { TLSSocket } from 'node:tls'
import type { Charge, Peer } from '../../../kit/api/stream.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import { derOf } from '../../../pki/io/x509-chain.ts'
import type { ConnectionEnds } from './connection-ends.ts'

let nextPeerId = 1

/** The connection below the requests. */
interface PeerConnection {
  drain(): boolean
  /** The first request was authenticated. */
  authenticated(charge: Charge): void
}

/** What a handshake has found: a TLSSocket. */
interface HandshakeFound {
  readonly alpnProtocol: string | false | null
  readonly authorized: boolean
  readonly authorizationError?: unknown
}

export function describePeer(
  socket: HandshakeFound,
  ends: ConnectionEnds,
  serverName: string,
  tlsCluster: string,
  chain: readonly Buffer[],
  connection: PeerConnection,
): Peer {
  const error = socket.authorizationError
  const own = addressCharge(ends.remoteAddress)
  let charge = own
  let known = false
  return {
    id: nextPeerId++,
    protocol: socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1',
    serverName,
    tlsCluster,
    localAddress: ends.localAddress,
    localPort: ends.localPort,
    remoteAddress: ends.remoteAddress,
    remotePort: ends.remotePort,
    proxyAddress: ends.proxyAddress,
    certificate:
      chain.length === 0
        ? undefined
        : {
            chain,
            verified: socket.authorized,
            verifyError: error === undefined || error === null ? '' : String(error),
          },
    addressCharge: own,
    get charge() {
      return charge
    },
    set charge(next) {
      charge = next
      if (known || !next.known) return
      known = true
      connection.authenticated(next)
    },
    drain: () => connection.drain(),
    memo: new Map(),
  }
}

/**
 * Client certificate chains, leaf first. Some versions of Node (24.21) drop all but the leaf while reporting the handshake (nodejs/node#65579), so
 * the chain is read earlier, if a handshake callback gives the chance.
 */
export class PresentedChains {
  readonly #early = new WeakMap<TLSSocket, readonly Buffer[]>()

  /** `socket` is the `this` of node:tls' handshake callbacks. */
  takeEarly(socket: unknown): void {
    if (!(socket instanceof TLSSocket) || this.#early.has(socket)) return
    this.#early.set(socket, [])
    socket.prependOnceListener('secure', () => this.#early.set(socket, readChain(socket)))
  }

  of(socket: TLSSocket): readonly Buffer[] {
    return this.#early.get(socket) ?? readChain(socket)
  }
}

/** Not getPeerCertificate(true): it spends 0.3 ms on formatting unused keys and fingerprints, even of the CA from our own store. */
function readChain(socket: TLSSocket): Buffer[] {
  const chain: Buffer[] = []
  for (let next = socket.getPeerX509Certificate(); next !== undefined; next = next.issuerCertificate) {
    chain.push(derOf(next))
  }
  return chain
}
