// Which protectors of a cell to recount, when, and why: each at its configured rate, and those with deletions that the stream
// has not reported yet at its next event.

import type { Clock } from '../../../kit/api/ports.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { limitsOf } from '../../core/history/cell-history.ts'
import type { AggregatorEvents, EnqueueKind, HandledKind } from '../../core/requests/protection-events.ts'
import type { LiveProtector } from '../../state/protectors.ts'
import type { PodAggregatorDeps } from './deps.ts'

/** A count is cheap, and deletions wait for it. */
const PACE = { conflictMs: 10, firstBackoffMs: 100, longestBackoffMs: 60_000 }

export class Recounts {
  readonly #deps: PodAggregatorDeps
  readonly #queue: WorkQueue
  readonly #pool: NextEventPool
  #progress = 0

  /**
   * @param count counts one protector; never rejects
   * @param limit concurrent protectors
   */
  constructor(deps: PodAggregatorDeps, count: (key: string) => Promise<ReconcileOutcome>, limit: number) {
    const { clock, events } = deps
    this.#deps = deps
    this.#pool = new NextEventPool(clock, events)
    this.#queue = new WorkQueue({ reconcile: count, clock, random: () => deps.random(), limit, pace: PACE })
  }

  /** Protectors queued for counting. */
  get queued(): number {
    return this.#queue.size
  }

  /** Protectors waiting for the next event of the stream. */
  get waiting(): number {
    return this.#pool.size
  }

  /** Grows with each event of the stream. */
  get progress(): number {
    return this.#progress
  }

  /** Handles an event: `mark` marks the protectors to count. */
  handle(namespace: string, kind: HandledKind, mark: () => void): void {
    const { clock, events } = this.#deps
    const beginMs = clock.monotonic()
    mark()
    events.handled(namespace, kind, clock.monotonic() - beginMs)
  }

  mark(live: LiveProtector, kind: EnqueueKind, atLeastMs = 0): void {
    const delayMs = Math.max(atLeastMs, this.#rateMs(live))
    if (this.#queue.add(live.key, delayMs)) {
      this.#deps.events.enqueued(live.protector.metadata.namespace ?? '', kind)
    }
  }

  #rateMs({ protector }: LiveProtector): number {
    const { settings } = this.#deps
    const { rateJitterLow: low, rateJitterHigh: high } = settings
    return limitsOf(protector, settings).aggregationRateMs * (low + this.#deps.random() * (high - low))
  }

  /** The stream has advanced. */
  advanced(): void {
    this.#progress++
    if (this.#pool.size === 0) return
    this.handle('', 'NextEvent', () => {
      for (const key of this.#pool.drain()) {
        const live = this.#deps.protectors.get(key)
        if (live !== undefined) this.mark(live, 'NextEvent')
      }
    })
  }

  /** The protector was counted at `progress`; recount it when the stream advances beyond that. */
  awaitMore(live: LiveProtector, progress: number): void {
    // An event during the write has already drained the pool.
    if (progress === this.#progress) this.#pool.add(live.key)
    else this.mark(live, 'NextEvent')
  }

  /** The next event of the stream need not trigger a recount. */
  awaitNothing(live: LiveProtector): void {
    this.#pool.remove(live.key)
  }

  forget(key: string): void {
    this.#queue.forget(key)
    this.#pool.remove(key)
  }

  /** Starts no more counts; resolves when the running ones are done. */
  stop(): Promise<void> {
    return this.#queue.stop()
  }
}

/**
 * Podseidon's next-event pool: protectors with deletions that the stream has not reported yet. Its next event triggers a recount.
 */
class NextEventPool {
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
