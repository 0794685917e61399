// Counts how a cluster's apiservers answer: each thread counts in its own column of shared memory, one of them reads all columns.
// docs/degrade.md documents what counts: every 5xx by upstream, and requests without an answer; never 429, 409 or another 4xx, never the
// gateway's own refusals, no long-running requests, and no timeout that the client requested.

import type { RequestRecord } from '../../gateway/api/request-record.ts'
import type { UpstreamSeen } from '../api/cluster-health.ts'

/** Upper bounds of the latency buckets, milliseconds; the last bucket has none. */
const BOUNDS_MS: readonly number[] = [
  ...[5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500],
  ...[10_000, 15_000, 20_000, 30_000, 45_000, 60_000],
]
/** A client that gives the server less time than this is not counted. */
const HASTY_MS = 1_000
const REQUESTS = 0
const FAILED = 1
const BUCKETS = 2
const WORDS = BUCKETS + BOUNDS_MS.length + 1
/** Whole cache lines, to avoid false sharing. */
const COLUMN_WORDS = Math.ceil(WORDS / 16) * 16

/** Counts of all threads since the start, modulo 2^32. Can be posted to a thread. */
export interface AnswerMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  /** Number of threads that count in it. */
  readonly columns: number
}

export function createAnswerMemory(columns: number): AnswerMemory {
  const bytes = columns * COLUMN_WORDS * Int32Array.BYTES_PER_ELEMENT
  return { words: new Int32Array(new SharedArrayBuffer(bytes)), columns }
}

/** One thread's counts. No other thread writes its column. */
export class AnswerColumn {
  readonly memory: AnswerMemory
  readonly #base: number

  constructor(memory: AnswerMemory, thread: number) {
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
    this.#add(REQUESTS)
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

interface Sample {
  readonly atMs: number
  readonly words: Int32Array
}

/** A sliding window: the current counts minus those at its beginning. */
export class AnswerWindow {
  readonly #memory: AnswerMemory
  readonly #lengthMs: number
  /** Oldest first. */
  #samples: Sample[] = []

  constructor(memory: AnswerMemory, lengthMs: number) {
    this.#memory = memory
    this.#lengthMs = lengthMs
  }

  get memory(): AnswerMemory {
    return this.#memory
  }

  /** Call about once a second. @param nowMs monotonic milliseconds */
  sample(nowMs: number): void {
    this.#samples.push({ atMs: nowMs, words: this.#sum() })
    // Keep one sample at or before the beginning: what was counted since is in the window.
    let first = 0
    while ((this.#samples[first + 1]?.atMs ?? Number.POSITIVE_INFINITY) <= nowMs - this.#lengthMs) first++
    if (first > 0) this.#samples = this.#samples.slice(first)
  }

  /** As of the last sample; undefined = there are fewer than two. */
  seen(): UpstreamSeen | undefined {
    const [first] = this.#samples
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || first === last) return undefined
    const counted = last.words.map((count, i) => (count - (first.words[i] ?? 0)) | 0)
    const requests = counted[REQUESTS] ?? 0
    return {
      requests,
      failed5xx: counted[FAILED] ?? 0,
      p99Ms: quantile(counted, requests, 0.99),
      medianMs: quantile(counted, requests, 0.5),
      observedAtMs: last.atMs,
    }
  }

  #sum(): Int32Array {
    const { words, columns } = this.#memory
    const sum = new Int32Array(WORDS)
    for (let column = 0; column < columns; column++) {
      const base = column * COLUMN_WORDS
      for (let i = 0; i < WORDS; i++) sum[i] = (sum[i] ?? 0) + (words[base + i] ?? 0)
    }
    return sum
  }
}

/** Upper bound of the bucket that contains the quantile; above the last bound, that bound. 0 without requests. */
function quantile(counted: Int32Array, requests: number, q: number): number {
  const rank = Math.max(1, Math.ceil(requests * q))
  let passed = 0
  for (let bucket = 0; requests > 0 && bucket <= BOUNDS_MS.length; bucket++) {
    passed += counted[BUCKETS + bucket] ?? 0
    if (passed >= rank) return BOUNDS_MS[bucket] ?? BOUNDS_MS.at(-1) ?? 0
  }
  return 0
}
