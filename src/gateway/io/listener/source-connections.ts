// Counts open connections per address: an IPv4 address, or an IPv6 /64 network.

import { addressSource } from '../../../kit/core/shares/call-source.ts'

/** Anything that emits 'close': a socket. */
interface Closable {
  once(event: 'close', listener: () => void): unknown
}

export class SourceConnections {
  readonly #max: number
  /** At most as many entries as connections. */
  readonly #open = new Map<string, number>()

  /** @param max per address; 0 = unlimited */
  constructor(max: number) {
    this.#max = max
  }

  /** Counts a connection until it closes. False: its address is at the limit, and this one is not counted. */
  admit(socket: Closable, address: string): boolean {
    if (this.#max === 0) return true
    const source = addressSource(address)
    const open = this.#open.get(source) ?? 0
    if (open >= this.#max) return false
    this.#open.set(source, open + 1)
    socket.once('close', () => this.#closed(source))
    return true
  }

  #closed(source: string): void {
    const open = (this.#open.get(source) ?? 0) - 1
    if (open > 0) this.#open.set(source, open)
    else this.#open.delete(source)
  }
}
