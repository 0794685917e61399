// Chooses the gateway thread for a connection accepted by the main thread: the one with the fewest, unless it hangs.

import type { ConnectionPlaces } from '../../gateway/state/connection-places.ts'

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
