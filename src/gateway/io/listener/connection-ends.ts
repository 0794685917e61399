// The two ends of a connection: the addresses of its socket, or those that a load balancer in front declared in a PROXY header.

import type { Socket } from 'node:net'
import type { DeclaredEnds } from '../../core/proxy-protocol/proxy-header.ts'
export interface ConnectionEnds {
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
  /** Of the load balancer that declared them; '' = they are the socket's. */
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

/** The ends of open connections of which the socket knows other ones. A TLS socket and the socket below it have the same. */
export class KnownEnds {
  readonly #ends = new Map<string, ConnectionEnds>()

  /** Until the socket closes. */
  set(socket: Socket, ends: ConnectionEnds): void {
    const key = keyOf(socket)
    this.#ends.set(key, ends)
    // The same four numbers may be those of the next connection by then.
    socket.once('close', () => this.#ends.get(key) === ends && this.#ends.delete(key))
  }

  /** undefined also when the client is gone: the system no longer knows the addresses. */
  get(socket: Socket): ConnectionEnds | undefined {
    return this.#ends.get(keyOf(socket))
  }
}

function keyOf({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
