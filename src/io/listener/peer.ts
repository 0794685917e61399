// Who is at the other end of a TLS connection: its addresses, and the certificates that it presented.

import { TLSSocket } from 'node:tls'
import type { Peer } from '../../api/ports/stream.ts'
import { addressCharge } from '../../core/shares/charge.ts'
import type { ConnectionEnds } from './connection-ends.ts'

let nextPeerId = 1

export function describePeer(
  socket: TLSSocket,
  ends: ConnectionEnds,
  serverName: string,
  tlsCluster: string,
  chain: readonly Buffer[],
  drain: () => boolean,
): Peer {
  const error = socket.authorizationError
  const charge = addressCharge(ends.remoteAddress)
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
    addressCharge: charge,
    charge,
    drain,
    memo: new Map(),
  }
}

/**
 * The certificates that clients presented, leaf first. Some versions of Node (24.21) forget all but the leaf while they
 * report the handshake (nodejs/node#65579): the chain is read before, where a callback of the handshake gives the chance.
 */
export class PresentedChains {
  readonly #early = new WeakMap<TLSSocket, readonly Buffer[]>()

  /** `socket` is what node:tls calls its handshake callbacks on. */
  takeEarly(socket: unknown): void {
    if (!(socket instanceof TLSSocket) || this.#early.has(socket)) return
    this.#early.set(socket, [])
    socket.prependOnceListener('secure', () => this.#early.set(socket, readChain(socket)))
  }

  of(socket: TLSSocket): readonly Buffer[] {
    return this.#early.get(socket) ?? readChain(socket)
  }
}

function readChain(socket: TLSSocket): Buffer[] {
  const chain: Buffer[] = []
  const seen = new Set<string>()
  // A self-signed certificate is its own issuer in this list: the loop ends there.
  for (
    let next = socket.getPeerCertificate(true);
    next?.raw !== undefined && !seen.has(next.fingerprint256);
    next = next.issuerCertificate
  ) {
    seen.add(next.fingerprint256)
    chain.push(next.raw)
  }
  return chain
}
