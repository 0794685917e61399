// Which protectors of a cell are to be counted anew, when, and because of what: each at the pace that is set for it, and those
// whose deletions the stream has not told of yet as soon as it goes on.

import { limitsOf } from '../../core/protection/history/limits.ts'
import type { EnqueueKind, HandledKind } from '../../core/protection/requests/aggregator-events.ts'
import type { LiveProtector } from '../../state/protectors.ts'
import type { PodAggregatorDeps } from './deps.ts'
import { NextEventPool } from './pool.ts'
import { AggregationQueue, type CountOutcome } from './queue.ts'

export class Recounts {
  readonly #deps: PodAggregatorDeps
  readonly #queue: AggregationQueue
  readonly #pool: NextEventPool
  #progress = 0

  /**
   * @param count one protector; never rejects
   * @param limit protectors at a time
   */
  constructor(deps: PodAggregatorDeps, count: (key: string) => Promise<CountOutcome>, limit: number) {
    const { clock, events } = deps
    this.#deps = deps
    this.#pool = new NextEventPool(clock, events)
    this.#queue = new AggregationQueue({ count, clock, random: () => deps.random(), limit })
  }

  /** Those that are to be counted. */
  get queued(): number {
    return this.#queue.size
  }

  /** Those that wait for the stream to go on. */
  get waiting(): number {
    return this.#pool.size
  }

  /** Grows with everything that the stream says. */
  get progress(): number {
    return this.#progress
  }

  /** Something was heard: `mark` says what is to be counted for it. */
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

  /** The stream has said something. */
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

  /** It was counted as of `progress`, and is again when the stream has said more than that. */
  awaitMore(live: LiveProtector, progress: number): void {
    // What was said while it was written has drained the pool already.
    if (progress === this.#progress) this.#pool.add(live.key)
    else this.mark(live, 'NextEvent')
  }

  /** It need not be counted for what the stream says next. */
  awaitNothing(live: LiveProtector): void {
    this.#pool.remove(live.key)
  }

  forget(key: string): void {
    this.#queue.forget(key)
    this.#pool.remove(key)
  }

  /** Nothing is begun from now on; resolves when what runs has ended. */
  stop(): Promise<void> {
    return this.#queue.stop()
  }
}
