// Sorts the requests of an access log by arrival. The log is ordered by completion, so requests are buffered until no line can follow that
// began earlier. Longer requests (watches) come too late for that: they are passed in beforehand, if the log can be read twice, or reported
// as late.

import { TimeQueue } from '../../../kit/core/queues/time-queue.ts'
import type { LogEntry } from './log-entry.ts'

/** Longer than kube-apiserver lets a request run that is not long-running (--request-timeout, one minute). */
export const WINDOW_MS = 70_000
/** Maximum number of buffered requests: bounds memory. */
const MAX_KEPT = 100_000

export interface Ordered {
  readonly entry: LogEntry
  /** Its turn has passed: its use of limits can't be simulated. */
  readonly late: boolean
}

/** Whether a request is too long to be sorted while reading the log once. */
export function isLong({ latencyMs }: Pick<LogEntry, 'latencyMs'>): boolean {
  return latencyMs > WINDOW_MS
}

export class StartOrder {
  readonly #kept = new TimeQueue<LogEntry>()
  readonly #known: boolean
  readonly #maxKept: number
  /** The latest end of a request so far: about when the last line was written. */
  #writtenMs = Number.NEGATIVE_INFINITY
  #passedMs = Number.NEGATIVE_INFINITY

  /** @param long all long requests of the log, which `add` then skips; undefined = unknown */
  constructor(long: readonly LogEntry[] | undefined, maxKept: number = MAX_KEPT) {
    this.#known = long !== undefined
    this.#maxKept = maxKept + (long?.length ?? 0)
    for (const entry of long ?? []) this.#kept.add(entry.startMs, entry)
  }

  /** Adds the next line. @returns the requests whose turn has come */
  *add(entry: LogEntry): Generator<Ordered> {
    this.#writtenMs = Math.max(this.#writtenMs, entry.startMs + Math.max(0, entry.latencyMs))
    if (this.#known && isLong(entry)) {
      // It gets, or has had, its turn.
    } else if (entry.startMs < this.#passedMs) yield { entry, late: true }
    else this.#kept.add(entry.startMs, entry)
    yield* this.#takeBefore(this.#writtenMs - WINDOW_MS, this.#maxKept)
  }

  /** End of the log: returns the rest. */
  *end(): Generator<Ordered> {
    yield* this.#takeBefore(Number.POSITIVE_INFINITY, 0)
  }

  *#takeBefore(beforeMs: number, maxKept: number): Generator<Ordered> {
    while (this.#kept.firstMs < beforeMs || this.#kept.size > maxKept) {
      const entry = this.#kept.takeFirst()
      if (entry === undefined) return
      this.#passedMs = Math.max(this.#passedMs, entry.startMs)
      yield { entry, late: false }
    }
  }
}
