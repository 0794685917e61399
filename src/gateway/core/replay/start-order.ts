// The requests of an access log in the order in which they came. The log has them in the order in which they ended, so those that are
// read are kept until no line can come any more that began before. What lasts longer than that (a watch) comes late: it is given
// beforehand, by whoever can read the log twice, or its place has passed.

import { TimeQueue } from '../../../kit/core/queues/time-queue.ts'
import type { LogEntry } from './log-entry.ts'

/** Longer than kube-apiserver lets a request run that is not long-running (--request-timeout, one minute). */
export const WINDOW_MS = 70_000
/** Requests that are kept for their turn: what bounds memory. */
export const MAX_KEPT = 100_000

export interface Ordered {
  readonly entry: LogEntry
  /** Its place in the order has passed: what it took of limits cannot be told. */
  readonly late: boolean
}

/** Whether a request lasts too long to be put into order while the log is read once. */
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

  /** @param long all requests of the log that are long, which `add` then leaves out; undefined = they are not known */
  constructor(long: readonly LogEntry[] | undefined, maxKept: number = MAX_KEPT) {
    this.#known = long !== undefined
    this.#maxKept = maxKept + (long?.length ?? 0)
    for (const entry of long ?? []) this.#kept.add(entry.startMs, entry)
  }

  /** Takes the next line. @returns the requests whose turn has come */
  *add(entry: LogEntry): Generator<Ordered> {
    this.#writtenMs = Math.max(this.#writtenMs, entry.startMs + Math.max(0, entry.latencyMs))
    if (this.#known && isLong(entry)) {
      // It has, or has had, its turn.
    } else if (entry.startMs < this.#passedMs) yield { entry, late: true }
    else this.#kept.add(entry.startMs, entry)
    yield* this.#takeBefore(this.#writtenMs - WINDOW_MS, this.#maxKept)
  }

  /** The end of the log: all that are left. */
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
