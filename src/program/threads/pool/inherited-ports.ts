// Connections to inherited sockets: accepted by the main thread, and each handed to a gateway thread before anything is read. A file descriptor
// belongs to one event loop, and must outlive a thread that dies; accepting costs the main thread some 20 us per connection, a fiftieth of the
// handshake.

import type { Socket } from 'node:net'
import process from 'node:process'
import { type InheritedListener, listenInherited } from '../../../gateway/io/listener/inherited-listener.ts'
import type { ConnectionPlaces } from '../../../gateway/state/connection-places.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { formatListenAddress, type ListenAddress } from '../../../kit/core/listen-address.ts'
import { takeInherited } from '../../../kit/io/world/inherited-sockets.ts'
import { SOCKETS_MOVE } from '../../io/threads.ts'
import type { WorkerSlot } from './worker-slot.ts'

const FLAG = '--listen'

export class InheritedPorts {
  readonly #slots: readonly WorkerSlot[]
  readonly #handed: HandedThreads
  /** Keyed by index of the address in --listen. */
  readonly #fds = new Map<number, readonly number[]>()
  readonly #listeners: InheritedListener[] = []

  constructor(slots: readonly WorkerSlot[], places: ConnectionPlaces) {
    this.#slots = slots
    this.#handed = new HandedThreads(places)
  }

  /** Finds the sockets, and leaves connections queued for now. @throws {UserError} if there are none */
  take(addresses: readonly ListenAddress[]): void {
    for (const [i, address] of addresses.entries()) {
      if (address.inherited === undefined) continue
      if (!SOCKETS_MOVE) {
        const text = `${FLAG} ${formatListenAddress(address)}`
        throw new UserError(
          `${text}: Node ${process.version} cannot hand connections to threads`,
          'use Node 24.20 or newer',
        )
      }
      this.#fds.set(i, takeInherited(address, FLAG))
    }
  }

  /**
   * Accepts from now on; every thread must know the addresses.
   * @returns the ports, in the order of the addresses; 0 for those that are not inherited @throws {UserError}
   */
  async open(addresses: readonly ListenAddress[]): Promise<readonly number[]> {
    const ports = addresses.map(() => 0)
    for (const [i, fds] of this.#fds) {
      const text = `${FLAG} ${addresses[i] === undefined ? '' : formatListenAddress(addresses[i])}`
      const hand = (socket: Socket): void => {
        const slot = this.#next()
        if (slot === undefined) socket.destroy()
        else slot.post({ type: 'connection', listener: i, socket }, [socket])
      }
      const listener = await listenInherited(fds, hand, true).catch((error: unknown) => {
        const reason = errorMessage(error)
        throw new UserError(`cannot listen on ${text}: ${reason}`, 'pass a TCP socket that listens')
      })
      this.#listeners.push(listener)
      ports[i] = listener.port
    }
    return ports
  }

  /** Call it before telling the threads to drain: accepted connections must reach them first. */
  close(): void {
    for (const listener of this.#listeners.splice(0)) listener.close()
  }

  /** The thread with the fewest connections, with a place taken in it; undefined = none is listening. */
  #next(): WorkerSlot | undefined {
    const listening = this.#slots.filter(({ state }) => state === 'listening')
    const thread = this.#handed.next(
      listening.map(({ index }) => index),
      performance.now(),
    )
    return thread === undefined ? undefined : this.#slots[thread]
  }
}

// Chooses the gateway thread for a connection accepted by the main thread: the one with the fewest, unless it hangs.

/** A thread gets no more connections if it has made no progress for this long after it was given one. */
const HANGS_MS = 250

export class HandedThreads {
  readonly #places: ConnectionPlaces
  /** Keyed by thread: the first connection it was given since its last progress. */
  readonly #handed = new Map<number, { readonly beat: number; readonly sinceMs: number }>()

  constructor(places: ConnectionPlaces) {
    this.#places = places
  }

  /**
   * Takes a place; undefined = no thread is listening.
   * @param listening threads that accept connections
   */
  next(listening: readonly number[], nowMs: number): number | undefined {
    const able = listening.filter((thread) => !this.#hangs(thread, nowMs))
    // If all hang, any will do.
    const [any = listening[0]] = able
    if (any === undefined) return undefined
    const { thread } = this.#places.take(any, (other) => able.includes(other))
    const beat = this.#places.beatOf(thread)
    if (this.#handed.get(thread)?.beat !== beat) this.#handed.set(thread, { beat, sinceMs: nowMs })
    return thread
  }

  #hangs(thread: number, nowMs: number): boolean {
    const handed = this.#handed.get(thread)
    return handed !== undefined && handed.beat === this.#places.beatOf(thread) && nowMs - handed.sinceMs > HANGS_MS
  }
}
