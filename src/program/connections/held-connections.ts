// The connections served by a gateway thread, and when it asks a client to reconnect: after --max-connection-age, and while the thread is far busier
// than the others. Running requests and watches are never ended.

import { type ConnectionLoad, connectionsToMove } from '../../gateway/core/balance/thread-load.ts'
import type { ServedConnection, ServedConnections } from '../../gateway/io/listener/connections.ts'
import type { ConnectionPlaces } from '../../gateway/state/connection-places.ts'
import type { Tickable } from '../../kit/io/world/coarse-ticker.ts'

interface HeldConnectionsOptions {
  /** This thread. */
  readonly thread: number
  readonly places: ConnectionPlaces
  /** Jittered by a tenth, so that clients that connected together do not leave together. 0 = unlimited. */
  readonly maxAgeMs: number
  random(): number
  /** A client was asked to reconnect. */
  onDrained(reason: 'age' | 'balance'): void
}

/** Fraction of the age. */
const JITTER = 0.1
/** Period over which requests are counted. */
const WINDOW_MS = 5_000
/**
 * Consecutive windows in which a thread must be far above the others: a minute. Threads' windows are not aligned, so bursts of load look uneven in a
 * few of them.
 */
const HOT_WINDOWS = 12

interface Held extends ConnectionLoad {
  readonly connection: ServedConnection
  readonly dueMs: number
  /** At the beginning of the window. */
  requests: number
  requestRate: number
  drained: boolean
}

export class HeldConnections implements ServedConnections, Tickable {
  readonly #options: HeldConnectionsOptions
  readonly #held = new Map<ServedConnection, Held>()
  #windowMs = performance.now()
  #hotWindows = 0

  constructor(options: HeldConnectionsOptions) {
    this.#options = options
  }

  add(connection: ServedConnection): void {
    const { maxAgeMs, random } = this.#options
    const ageMs = maxAgeMs * (1 - JITTER + 2 * JITTER * random())
    const dueMs = maxAgeMs === 0 ? Number.POSITIVE_INFINITY : performance.now() + ageMs
    // A handshake is complete.
    this.#options.places.beat(this.#options.thread)
    this.#held.set(connection, { connection, dueMs, requests: 0, requestRate: 0, drained: false })
  }

  delete(connection: ServedConnection): void {
    this.#held.delete(connection)
  }

  tick(nowMs: number): void {
    if (this.#options.maxAgeMs > 0) {
      for (const held of this.#held.values()) if (nowMs >= held.dueMs) this.#drain(held, 'age')
    }
    if (nowMs - this.#windowMs >= WINDOW_MS) this.#balance(nowMs)
  }

  #drain(held: Held, reason: 'age' | 'balance'): void {
    if (held.drained) return
    held.drained = true
    if (held.connection.drain()) this.#options.onDrained(reason)
  }

  #balance(nowMs: number): void {
    const { places, thread, random } = this.#options
    const seconds = (nowMs - this.#windowMs) / 1000
    this.#windowMs = nowMs
    let sum = 0
    const movable: Held[] = []
    for (const held of this.#held.values()) {
      const requests = held.connection.requests()
      held.requestRate = (requests - held.requests) / seconds
      held.requests = requests
      sum += held.requestRate
      if (!held.drained) movable.push(held)
    }
    places.setRequestRate(thread, sum)
    const moved = connectionsToMove(places.loads(), thread, movable, random)
    this.#hotWindows = moved.length > 0 ? this.#hotWindows + 1 : 0
    if (this.#hotWindows < HOT_WINDOWS) return
    this.#hotWindows = 0
    for (const held of moved) this.#drain(held, 'balance')
  }
}
