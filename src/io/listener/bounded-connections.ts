// A bounded number of connections on a port for small requests. When it is full, the address that has the most gives one up for the new
// one, the oldest without a request if there is any: whoever opens many, and sends nothing or never reads what is answered, cannot keep out
// a probe, which is over in a moment.

import type { Socket } from 'node:net'
import { addressSource } from '../../core/limits/call-source.ts'

export interface ConnectionBounds {
  /** Of all addresses. */
  readonly total: number
  /** Of one IPv4 address, or IPv6 network of 64 bits. */
  readonly perAddress: number
}

interface Entry {
  readonly socket: Socket
  readonly source: string
  /** Requests that are being answered. */
  answering: number
}

export class BoundedConnections {
  readonly #bounds: ConnectionBounds
  /** By both ends, the oldest first. */
  readonly #open = new Map<string, Entry>()
  readonly #perSource = new Map<string, number>()

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#open.size
  }

  /** Closes the socket when its address has as many as allowed, and all of them are being answered. */
  admit(socket: Socket): void {
    const source = addressSource(socket.remoteAddress ?? '')
    const { total, perAddress } = this.#bounds
    if ((this.#perSource.get(source) ?? 0) >= perAddress && !this.#closeIdleOf(source)) return void socket.destroy()
    if (this.#open.size >= total) this.#closeOneOfTheMost()
    const key = endsOf(socket)
    // The client of the one before with these ends is gone; its 'close' is still to come.
    const before = this.#open.get(key)
    if (before !== undefined) this.#close(key, before)
    this.#open.set(key, { socket, source, answering: 0 })
    this.#perSource.set(source, (this.#perSource.get(source) ?? 0) + 1)
    socket.once('close', () => this.#forget(key, socket))
  }

  /** A request has come on this connection, or (-1) has been answered. @param ends by `endsOf` @returns how many are being answered */
  answering(ends: string, change: 1 | -1): number {
    const entry = this.#open.get(ends)
    if (entry === undefined) return 0
    entry.answering += change
    return entry.answering
  }

  /** The oldest; false: all are being answered. */
  #closeIdleOf(source: string): boolean {
    for (const [key, entry] of this.#open) {
      if (entry.answering > 0 || entry.source !== source) continue
      this.#close(key, entry)
      return true
    }
    return false
  }

  /** Of the addresses with the most connections: the oldest that is idle, or the oldest. */
  #closeOneOfTheMost(): void {
    const most = Math.max(...this.#perSource.values())
    let chosen: [string, Entry] | undefined
    for (const [key, entry] of this.#open) {
      if (this.#perSource.get(entry.source) !== most) continue
      chosen ??= [key, entry]
      if (entry.answering > 0) continue
      chosen = [key, entry]
      break
    }
    if (chosen !== undefined) this.#close(...chosen)
  }

  #close(key: string, entry: Entry): void {
    this.#forget(key, entry.socket)
    entry.socket.destroy()
  }

  #forget(key: string, socket: Socket): void {
    const entry = this.#open.get(key)
    if (entry?.socket !== socket) return
    this.#open.delete(key)
    const left = (this.#perSource.get(entry.source) ?? 0) - 1
    if (left > 0) this.#perSource.set(entry.source, left)
    else this.#perSource.delete(entry.source)
  }
}

/** The same for a TLS socket and the socket below it. Unknown once it is closed. */
export function endsOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
