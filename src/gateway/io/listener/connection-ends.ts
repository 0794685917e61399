// The two ends of a connection: the socket's addresses, or those that a load balancer declared in a PROXY header.

import type { Socket } from 'node:net'
import type { DeclaredEnds } from '../../core/proxy-protocol/proxy-header.ts'
export interface ConnectionEnds {
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
  /** Address of the load balancer that declared them; '' = they are the socket's own. */
  readonly proxyAddress: string
}

export function socketEnds(socket: Socket): ConnectionEnds {
  return {
    localAddress: socket.localAddress ?? '',
    localPort: socket.localPort ?? 0,
    remoteAddress: socket.remoteAddress ?? '',
    remotePort: socket.remotePort ?? 0,
    proxyAddress: '',
  }
}

export function declaredEnds(declared: DeclaredEnds, socket: Socket): ConnectionEnds {
  return {
    localAddress: declared.destinationAddress,
    localPort: declared.destinationPort,
    remoteAddress: declared.sourceAddress,
    remotePort: declared.sourcePort,
    proxyAddress: socket.remoteAddress ?? '',
  }
}

/** Ends of open connections that differ from the socket's. A TLS socket and the socket below it share them. */
export class KnownEnds {
  readonly #ends = new Map<string, ConnectionEnds>()

  /** Kept until the socket closes. */
  set(socket: Socket, ends: ConnectionEnds): void {
    const key = keyOf(socket)
    this.#ends.set(key, ends)
    // The next connection may have the same four numbers by then.
    socket.once('close', () => this.#ends.get(key) === ends && this.#ends.delete(key))
  }

  /** Also undefined if the client is gone: the system no longer knows the addresses. */
  get(socket: Socket): ConnectionEnds | undefined {
    return this.#ends.get(keyOf(socket))
  }
}

function keyOf({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
