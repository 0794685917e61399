// Podseidon's next-event pool: protectors with deletions that the stream has not reported yet. Its next event triggers a
// recount.

import type { Clock } from '../../../kit/api/ports.ts'
import type { AggregatorEvents } from '../../core/requests/aggregator-events.ts'

export class NextEventPool {
  readonly #clock: Clock
  readonly #events: AggregatorEvents
  /** Since when each has waited, monotonic; in this order. */
  readonly #waiting = new Map<string, number>()
  #drainedAtMs: number | undefined

  constructor(clock: Clock, events: AggregatorEvents) {
    this.#clock = clock
    this.#events = events
  }

  get size(): number {
    return this.#waiting.size
  }

  add(key: string): void {
    if (!this.#waiting.has(key)) this.#waiting.set(key, this.#clock.monotonic())
    this.#tell()
  }

  remove(key: string): void {
    if (this.#waiting.delete(key)) this.#tell()
  }

  /** Empties the pool. @returns the protectors that waited */
  drain(): readonly string[] {
    const nowMs = this.#clock.monotonic()
    if (this.#waiting.size === 0) return []
    const keys = [...this.#waiting.keys()]
    const latenciesMs = [...this.#waiting.values()].map((sinceMs) => nowMs - sinceMs)
    this.#waiting.clear()
    this.#events.drained(latenciesMs, this.#drainedAtMs === undefined ? 0 : nowMs - this.#drainedAtMs)
    this.#drainedAtMs = nowMs
    this.#tell()
    return keys
  }

  #tell(): void {
    const [oldest] = this.#waiting.values()
    this.#events.pool(this.#waiting.size, oldest === undefined ? 0 : this.#clock.monotonic() - oldest)
  }
}
