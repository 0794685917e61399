// To which gateway thread the main thread hands a connection that it has accepted: the one with the fewest, unless it hangs.

import type { ConnectionPlaces } from '../../gateway/state/connection-places.ts'

/** A thread is handed no more connections when it has got nothing done for this time after it was handed one. */
const HANGS_MS = 250

export class HandedThreads {
  readonly #places: ConnectionPlaces
  /** By thread: the first connection that it was handed since it last got something done. */
  readonly #handed = new Map<number, { readonly beat: number; readonly sinceMs: number }>()

  constructor(places: ConnectionPlaces) {
    this.#places = places
  }

  /**
   * Takes a place; undefined = nobody listens.
   * @param listening threads that take connections
   */
  next(listening: readonly number[], nowMs: number): number | undefined {
    const able = listening.filter((thread) => !this.#hangs(thread, nowMs))
    // When all hang, one of them as good as any other.
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
