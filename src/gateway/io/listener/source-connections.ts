// How many connections each address has open: an IPv4 address, or an IPv6 network of 64 bits.

import { addressSource } from '../../../kit/core/shares/call-source.ts'

/** Anything that emits 'close': a socket. */
interface Closable {
  once(event: 'close', listener: () => void): unknown
}

export class SourceConnections {
  readonly #max: number
  /** As many entries as there are connections, at most. */
  readonly #open = new Map<string, number>()

  /** @param max for each address; 0 = any number */
  constructor(max: number) {
    this.#max = max
  }

  /** Counts a connection until it closes. False: its address has as many as allowed, and this one is not counted. */
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
