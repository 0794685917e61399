// Counts how a cluster's apiservers answer: each thread counts in its own column of shared memory, one of them sums all columns.
// docs/degrade.md documents what counts: every 5xx by upstream, and requests without an answer; never 429, 409 or another 4xx, never the
// gateway's own refusals, no long-running requests, and no timeout that the client requested.

import type { RequestRecord } from '../../api/request-record.ts'

/** Upper bounds of the latency buckets, milliseconds; the last bucket has none. */
export const BOUNDS_MS: readonly number[] = [
  ...[5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500],
  ...[10_000, 15_000, 20_000, 30_000, 45_000, 60_000],
]
/** A client that gives the server less time than this is not counted. */
const HASTY_MS = 1_000
/** Indexes into the counts: requests, failed ones of them, and the first bucket. */
export const COUNTED = 0
export const FAILED = 1
export const BUCKETS = 2
const WORDS = BUCKETS + BOUNDS_MS.length + 1
/** Whole cache lines, to avoid false sharing. */
const COLUMN_WORDS = Math.ceil(WORDS / 16) * 16

/** Counts of all threads since the start, modulo 2^32. Can be posted to a thread. */
export interface AnswerCountMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  /** Number of threads that count in it. */
  readonly columns: number
}

export function createAnswerCountMemory(columns: number): AnswerCountMemory {
  const bytes = columns * COLUMN_WORDS * Int32Array.BYTES_PER_ELEMENT
  return { words: new Int32Array(new SharedArrayBuffer(bytes)), columns }
}

/** One thread's counts. No other thread writes its column. */
export class AnswerColumn {
  readonly memory: AnswerCountMemory
  readonly #base: number

  constructor(memory: AnswerCountMemory, thread: number) {
    this.memory = memory
    this.#base = thread * COLUMN_WORDS
  }

  /** Called at the end of a request to this cluster. */
  count(record: RequestRecord): void {
    if (record.longRunning || record.attempts === 0) return
    const unanswered = record.refusal === 'upstream-failed'
    if (record.refusal !== '' && !unanswered) return
    if (record.code === 504 && !unanswered && isClientsTimeout(record)) return
    // Upgrades have no upstream time; for clients that gave up, the time they waited.
    const ms = record.upstreamMs >= 0 ? record.upstreamMs : record.durationMs
    this.#add(COUNTED)
    if (unanswered || record.code >= 500) this.#add(FAILED)
    this.#add(BUCKETS + bucketOf(ms))
  }

  #add(word: number): void {
    const { words } = this.memory
    const at = this.#base + word
    words[at] = (words[at] ?? 0) + 1
  }
}

/** kube-apiserver answers 504 when the `timeout` parameter expires, and any client may set that to a millisecond. */
function isClientsTimeout({ target, upstreamMs }: RequestRecord): boolean {
  const query = target.indexOf('?')
  return query >= 0 && upstreamMs < HASTY_MS && new URLSearchParams(target.slice(query + 1)).has('timeout')
}

function bucketOf(ms: number): number {
  let bucket = 0
  while (bucket < BOUNDS_MS.length && ms > (BOUNDS_MS[bucket] ?? 0)) bucket++
  return bucket
}

/** The counts of all threads. */
export function sumOfColumns({ words, columns }: AnswerCountMemory): Int32Array {
  const sum = new Int32Array(WORDS)
  for (let column = 0; column < columns; column++) {
    const base = column * COLUMN_WORDS
    for (let i = 0; i < WORDS; i++) sum[i] = (sum[i] ?? 0) + (words[base + i] ?? 0)
  }
  return sum
}
