// The open streams of a connection, by id. Not a Map: each table that a Map outgrows points to the next one, so an old one
// keeps all later streams alive until a full collection; with thousands of short streams per second
// young collections take a hundred times as long.

import type { Http2Stream } from './stream.ts'

const MIN_PLACES = 8

/** Open addressing with linear probing; ids of one connection rise by two, so they hardly collide. */
export class StreamTable {
  size: number = 0
  #places: (Http2Stream | undefined)[] = new Array<Http2Stream | undefined>(MIN_PLACES).fill(undefined)
  #mask: number = MIN_PLACES - 1

  get(id: number): Http2Stream | undefined {
    const places = this.#places
    for (let at = (id >>> 1) & this.#mask; ; at = (at + 1) & this.#mask) {
      const stream = places[at]
      if (stream === undefined || stream.id === id) return stream
    }
  }

  /** Adds a stream whose id is not in the table. */
  add(stream: Http2Stream): void {
    // At least a quarter stays empty, so every search is short.
    if ((this.size + 1) * 4 > this.#places.length * 3) this.#resize(this.#places.length * 2)
    this.#put(stream)
    this.size++
  }

  /** False if it was not in the table. */
  delete(id: number): boolean {
    const places = this.#places
    const mask = this.#mask
    let at = (id >>> 1) & mask
    for (;;) {
      const stream = places[at]
      if (stream === undefined) return false
      if (stream.id === id) break
      at = (at + 1) & mask
    }
    // Moves later entries up, so that no search ends early.
    let free = at
    for (let next = (at + 1) & mask; ; next = (next + 1) & mask) {
      const stream = places[next]
      if (stream === undefined) break
      const home = (stream.id >>> 1) & mask
      if (((next - home) & mask) >= ((next - free) & mask)) {
        places[free] = stream
        free = next
      }
    }
    places[free] = undefined
    this.size--
    if (this.size === 0 && places.length > 32 * MIN_PLACES) this.#resize(MIN_PLACES)
    return true
  }

  /** All streams, as a copy: the table may change during iteration. */
  all(): Http2Stream[] {
    const all: Http2Stream[] = []
    for (const stream of this.#places) if (stream !== undefined) all.push(stream)
    return all
  }

  clear(): void {
    this.size = 0
    this.#resize(MIN_PLACES)
  }

  #resize(places: number): void {
    const before = this.#places
    this.#places = new Array<Http2Stream | undefined>(places).fill(undefined)
    this.#mask = places - 1
    if (this.size === 0) return
    for (const stream of before) if (stream !== undefined) this.#put(stream)
  }

  #put(stream: Http2Stream): void {
    const places = this.#places
    let at = (stream.id >>> 1) & this.#mask
    while (places[at] !== undefined) at = (at + 1) & this.#mask
    places[at] = stream
  }
}
