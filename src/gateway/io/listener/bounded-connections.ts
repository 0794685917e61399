// Bounds the connections of a port for small requests. When it is full, the address with the most connections loses one, the oldest without a request
// if there is any: a client that opens many, and sends nothing or never reads the responses, cannot lock out probes, which take a moment.

import type { Socket } from 'node:net'
import { Places } from '../../../kit/core/places/places.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'

interface ConnectionBounds {
  /** Over all addresses; at least 2. */
  readonly total: number
  /** Per IPv4 address, or IPv6 /64 network. */
  readonly perAddress: number
}

interface Entry {
  readonly socket: Socket
  readonly ends: string
  /** Requests in progress. */
  answering: number
}

export class BoundedConnections {
  readonly #perAddress: number
  readonly #places: Places<Entry>
  readonly #open = new Map<string, Entry>()

  constructor({ total, perAddress }: ConnectionBounds) {
    this.#perAddress = perAddress
    // Evict before adding, so that the new connection is never the one evicted.
    this.#places = new Places(total - 1)
  }

  get size(): number {
    return this.#places.size
  }

  /** Closes the socket if its address is at the limit, with a request on every connection. */
  admit(socket: Socket): void {
    const source = addressSource(socket.remoteAddress ?? '')
    if (this.#places.countOf(source) >= this.#perAddress) {
      const idle = this.#places.toGiveUpSpare(source)
      if (idle === undefined) return void socket.destroy()
      this.#close(idle)
    }
    const ends = endsOf(socket)
    // A previous connection with the same ends is dead; its 'close' is still to come.
    for (const gone of [this.#places.toGiveUp(), this.#open.get(ends)]) if (gone !== undefined) this.#close(gone)
    const entry: Entry = { socket, ends, answering: 0 }
    this.#open.set(ends, entry)
    this.#places.add(entry, source)
    socket.once('close', () => this.#forget(entry))
  }

  /** A request has begun on this connection, or (-1) was answered. @param ends from `endsOf` @returns requests in progress */
  answering(ends: string, change: 1 | -1): number {
    const entry = this.#open.get(ends)
    if (entry === undefined) return 0
    entry.answering += change
    this.#places.setSpare(entry, entry.answering === 0)
    return entry.answering
  }

  #close(entry: Entry): void {
    this.#forget(entry)
    entry.socket.destroy()
  }

  #forget(entry: Entry): void {
    this.#places.delete(entry)
    if (this.#open.get(entry.ends) === entry) this.#open.delete(entry.ends)
  }
}

/** The same for a TLS socket and the socket below it. Unknown once closed. */
export function endsOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
