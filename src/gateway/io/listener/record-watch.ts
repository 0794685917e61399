// Closes TLS connections that carry no data. OpenSSL accepts any number of KeyUpdate messages (RFC 8446 section 4.6.3), at 12 us each if they request
// one in return, and Node does not report them: the socket's byte count grows while no data is delivered. BoringSSL allows 32 in a row, Go 16.

import type { Socket } from 'node:net'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'

/** Wire bytes allowed per byte of data: records of one byte take at most 53. */
const BYTES_FOR_A_BYTE = 64
/** Allowance beyond that, including the handshake: 2,400 KeyUpdate messages. */
const MOST_EMPTY_BYTES: number = 64 * 1024
/** How long, and how often, a new connection is checked; afterwards once a second. */
const NEW_MS = 1_000
const LOOK_MS = 50

interface Watched {
  /** Delivers the contents of the records. */
  readonly socket: Socket
  readonly below: Socket
  readonly sinceMs: number
  readonly onFlood: () => void
  read: number
  handedOut: number
  /** Empty bytes not yet offset by data. */
  empty: number
}

/** One per thread, like the event loop. */
class RecordWatch implements Tickable {
  readonly #all = new Set<Watched>()
  /** Oldest first. */
  readonly #new = new Set<Watched>()
  #looking: NodeJS.Timeout | undefined

  add(socket: Socket, below: Socket, onFlood: () => void): void {
    const entry: Watched = { socket, below, sinceMs: performance.now(), onFlood, read: 0, handedOut: 0, empty: 0 }
    this.#all.add(entry)
    this.#new.add(entry)
    addTickable(this)
    this.#looking ??= setInterval(() => this.#lookAtNew(), LOOK_MS).unref()
    socket.once('close', () => this.#delete(entry))
  }

  tick(): void {
    for (const entry of this.#all) this.#look(entry)
  }

  #lookAtNew(): void {
    const nowMs = performance.now()
    for (const entry of this.#new) {
      this.#look(entry)
      if (nowMs - entry.sinceMs > NEW_MS) this.#new.delete(entry)
    }
    this.#stopLooking()
  }

  #look(entry: Watched): void {
    const { bytesRead: read } = entry.below
    // Most are idle.
    if (read === entry.read) return
    const { bytesRead: handedOut } = entry.socket
    const weight = (handedOut - entry.handedOut) * BYTES_FOR_A_BYTE
    entry.empty = Math.max(0, entry.empty + read - entry.read - weight)
    entry.read = read
    entry.handedOut = handedOut
    if (entry.empty <= MOST_EMPTY_BYTES) return
    this.#delete(entry)
    entry.onFlood()
    entry.socket.destroy()
    entry.below.destroy()
  }

  #delete(entry: Watched): void {
    this.#all.delete(entry)
    this.#new.delete(entry)
    this.#stopLooking()
    if (this.#all.size === 0) removeTickable(this)
  }

  #stopLooking(): void {
    if (this.#new.size > 0) return
    clearInterval(this.#looking)
    this.#looking = undefined
  }
}

const watch = new RecordWatch()

/**
 * Destroys the connection if its client sends almost nothing but overhead.
 * @param socket the TLS socket, after its handshake
 * @param below the accepted socket
 * @param onFlood called before
 */
export function watchRecords(socket: Socket, below: Socket, onFlood: () => void): void {
  watch.add(socket, below, onFlood)
}
