// State of a cluster kept for an incident, in memory shared by all threads: when important clients were last seen,
// how many disruptive requests were refused, and what is left of the rate of degrade mode Limited.

import { NameHash } from '../../kit/core/text/name-hash.ts'
import type { Ramp } from '../core/cluster/compiled-cluster.ts'
import { countDistinct, DISTINCT_WORDS, distinctInLastMinute } from '../core/limits/distinct-window.ts'
import { createFlowMemory, FlowCounter, type FlowMemory, releaseThread } from '../core/limits/flow-counter.ts'
import { takeRamped } from '../core/limits/ramped-bucket.ts'
import { CLIENT_CLASSES, type ClientClass } from '../core/policy/client-class.ts'
import type { ThreadPlace } from './thread-place.ts'

/** Can be posted to a thread, which then shares the state. */
export interface IncidentMemory {
  /** When each class of clients was last seen, then the window of refused requests. */
  readonly words: Int32Array<SharedArrayBuffer>
  readonly bucket: FlowMemory
}

/** Maximum of distinct disruptive requests counted per user and minute. */
export const REFUSED_OF_ONE_USER = 64
const SECOND_MS = 1_000
const REFUSED_AT = CLIENT_CLASSES.length
const WORDS = REFUSED_AT + DISTINCT_WORDS

export class Incident {
  readonly memory: IncidentMemory
  readonly #counter: FlowCounter
  readonly #hash: NameHash

  constructor({ thread, threads, seed }: ThreadPlace, given?: IncidentMemory) {
    this.memory = given ?? {
      words: new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT)),
      bucket: createFlowMemory(1, threads),
    }
    this.#counter = new FlowCounter(this.memory.bucket, 0, thread)
    this.#hash = new NameHash(seed)
  }

  /** @param nowMs milliseconds since the epoch, here and below */
  see(client: ClientClass, nowMs: number): void {
    const { words } = this.memory
    const at = CLIENT_CLASSES.indexOf(client)
    // Seconds fit into 32 bits until 2106. One store per second, so that threads don't fight over the cache line.
    const seconds = Math.floor(nowMs / SECOND_MS) | 0
    if (Atomics.load(words, at) !== seconds) Atomics.store(words, at, seconds)
  }

  /** Milliseconds since the epoch, rounded down to seconds; 0 = never. */
  lastSeenMs(client: ClientClass): number {
    return (Atomics.load(this.memory.words, CLIENT_CLASSES.indexOf(client)) >>> 0) * SECOND_MS
  }

  /**
   * Counts at most REFUSED_OF_ONE_USER per user: a recovery waits while the number grows, and a single user must not block it.
   * @param what verb and object: repetitions count once
   */
  countRefused(user: string, what: string, nowMs: number): void {
    this.#hash.hash(what)
    this.#hash.hash(`${user}\0${(this.#hash.low >>> 0) % REFUSED_OF_ONE_USER}`)
    countDistinct(this.memory.words, REFUSED_AT, this.#hash.low, nowMs)
  }

  /** Distinct disruptive requests refused in the last minute; a good estimate, at most 15,000. */
  refusedInLastMinute(nowMs: number): number {
    return distinctInLastMinute(this.memory.words, REFUSED_AT, nowMs)
  }

  /** Takes one of the disruptive requests that degrade mode Limited allows. */
  tryDisrupt(ramp: Ramp, nowMs: number): boolean {
    return takeRamped(ramp, this.#counter, nowMs)
  }

  /** A thread has died. */
  releaseThread(thread: number): void {
    releaseThread(this.memory.bucket, thread)
  }
}
