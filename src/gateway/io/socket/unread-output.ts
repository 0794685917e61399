// Output that clients of a thread have not read yet. What one connection may leave unread is bounded by the engine; this bounds all of them
// together: whoever opens many connections, asks on each and never reads would fill the memory otherwise.

import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'

/** A connection of a client. */
export interface Unread {
  /** The user or address that its memory is charged to. */
  source(): string
  /** Bytes that were made for the client and that it has not taken. */
  bytes(): number
  /** Ends the connection; counted as a client that does not read. */
  end(): void
}

/** Bytes of all connections of a thread. */
export const MAX_UNREAD_BYTES: number = 32 * 1024 * 1024
/** What a connection may have at any time: the write under way, and what was made meanwhile. Of a client that reads slowly, it is that much. */
const LEAST_BYTES = 192 * 1024

/** Looks once a second. */
export class UnreadOutput implements Tickable {
  readonly #max: number
  readonly #connections = new Set<Unread>()

  constructor(max: number = MAX_UNREAD_BYTES) {
    this.#max = max
  }

  add(connection: Unread): void {
    this.#connections.add(connection)
    if (this.#connections.size === 1) addTickable(this)
  }

  delete(connection: Unread): void {
    this.#connections.delete(connection)
    if (this.#connections.size === 0) removeTickable(this)
  }

  tick(): void {
    let all = 0
    for (const connection of this.#connections) all += Math.max(0, connection.bytes() - LEAST_BYTES)
    if (all > this.#max) this.#endLargest()
  }

  /** Every source keeps what all can have; those with more lose their largest connections until they have no more than that. */
  #endLargest(): void {
    const sources = new Map<string, Source>()
    for (const connection of this.#connections) {
      const bytes = connection.bytes() - LEAST_BYTES
      if (bytes <= 0) continue
      const name = connection.source()
      const source = sources.get(name) ?? { bytes: 0, connections: [] }
      sources.set(name, source)
      source.bytes += bytes
      source.connections.push({ connection, bytes })
    }
    const level = fairLevel([...sources.values()], this.#max)
    for (const source of sources.values()) {
      if (source.bytes <= level) continue
      source.connections.sort((a, b) => b.bytes - a.bytes)
      let left = source.bytes
      for (const { connection, bytes } of source.connections) {
        if (left <= level) break
        left -= bytes
        connection.end()
      }
    }
  }
}

interface Source {
  bytes: number
  readonly connections: { readonly connection: Unread; readonly bytes: number }[]
}

/** The most that each may have so that all have `max` together: max-min fairness. */
function fairLevel(sources: readonly Source[], max: number): number {
  const sorted = sources.map(({ bytes }) => bytes).sort((a, b) => a - b)
  let room = max
  for (const [i, bytes] of sorted.entries()) {
    const each = room / (sorted.length - i)
    if (bytes > each) return each
    room -= bytes
  }
  return Number.POSITIVE_INFINITY
}

/** Of this thread. */
export const unreadOutput: UnreadOutput = new UnreadOutput()
