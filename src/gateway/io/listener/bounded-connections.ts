// A bounded number of connections on a port for small requests. When it is full, the address that has the most gives one up for the new
// one, the oldest without a request if there is any: whoever opens many, and sends nothing or never reads what is answered, cannot keep out
// a probe, which is over in a moment.

import type { Socket } from 'node:net'
import { Places } from '../../../kit/core/places/places.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'

export interface ConnectionBounds {
  /** Of all addresses; at least 2. */
  readonly total: number
  /** Of one IPv4 address, or IPv6 network of 64 bits. */
  readonly perAddress: number
}

interface Entry {
  readonly socket: Socket
  readonly ends: string
  /** Requests that are being answered. */
  answering: number
}

export class BoundedConnections {
  readonly #perAddress: number
  readonly #places: Places<Entry>
  readonly #open = new Map<string, Entry>()

  constructor({ total, perAddress }: ConnectionBounds) {
    this.#perAddress = perAddress
    // Room is made before the one that comes has a place, so that it is never the one that has to go.
    this.#places = new Places(total - 1)
  }

  get size(): number {
    return this.#places.size
  }

  /** Closes the socket when its address has as many as allowed, and all of them are being answered. */
  admit(socket: Socket): void {
    const source = addressSource(socket.remoteAddress ?? '')
    if (this.#places.countOf(source) >= this.#perAddress) {
      const idle = this.#places.toGiveUpSpare(source)
      if (idle === undefined) return void socket.destroy()
      this.#close(idle)
    }
    const ends = endsOf(socket)
    // The client of the one before with these ends is gone; its 'close' is still to come.
    for (const gone of [this.#places.toGiveUp(), this.#open.get(ends)]) if (gone !== undefined) this.#close(gone)
    const entry: Entry = { socket, ends, answering: 0 }
    this.#open.set(ends, entry)
    this.#places.add(entry, source)
    socket.once('close', () => this.#forget(entry))
  }

  /** A request has come on this connection, or (-1) has been answered. @param ends by `endsOf` @returns how many are being answered */
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

/** The same for a TLS socket and the socket below it. Unknown once it is closed. */
export function endsOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
