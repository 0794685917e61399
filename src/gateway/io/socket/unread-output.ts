// Bounds the output of a thread that clients have not read yet. The engine bounds it per connection; this bounds the total: otherwise a client that
// opens many connections, sends requests on each and never reads would exhaust the memory.

import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'

/** A connection of a client. */
export interface Unread {
  /** The user or address that pays for its memory. */
  source(): string
  /** Bytes produced for the client that it has not read. */
  bytes(): number
  /** Closes the connection; counted as a client that does not read. */
  end(): void
}

/** Limit over all connections of a thread. */
export const MAX_UNREAD_BYTES: number = 32 * 1024 * 1024
/** Always allowed per connection: the pending write, plus what is produced meanwhile. A slow reader uses that much. */
const LEAST_BYTES = 192 * 1024

/** Checks once a second. */
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

  /** Every source keeps an equal share; those above it lose their largest connections until they are not. */
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

/** The largest per-source limit for which the total stays within `max`: max-min fairness. */
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

/** The instance of this thread. */
export const unreadOutput: UnreadOutput = new UnreadOutput()
