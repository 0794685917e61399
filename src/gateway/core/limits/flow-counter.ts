// Memory of local limits: one counter per limit, or per user of a limit.
//
// A counter lives in shared memory, zero-filled when new, and is changed under its own lock word: a bucket needs two numbers (tokens and
// their timestamp), and two doubles with whole values under a lock cost less than a BigInt64 compare-exchange, which allocates on every
// call. Held slots and watches are counted in one column per thread, and the sum of the columns is compared with the limit: if a thread
// dies, clearing its column returns exactly what it held.

import type { GlobalAccount } from './global-account.ts'
import { lock, openLockOf, tryLock, unlock } from './shared-lock.ts'

/** Memory of many counters. Can be posted to a thread, which then shares the same counters. */
export interface FlowMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly numbers: Float64Array<SharedArrayBuffer>
  /** Number of threads that count in it: threads 0 to columns - 1. */
  readonly columns: number
}

/** Per counter; the first word is its lock. One column of requests in flight and one of watches per thread follow. */
const FIXED_WORDS = 4
/** 0 = never used: the bucket is full. */
export const STARTED = 1
/** The user that owns the counter, in the memory of flow-users.ts; 0 and 0 = no user, or all of them. */
const KEY_LOW = 2
const KEY_HIGH = 3

/** Per counter: its bucket (token-bucket.ts). */
const COUNTER_NUMBERS = 2

/** The state of one limit (for one user if it is per user) as one thread sees it: a position in FlowMemory. */
export class FlowCounter {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly numbers: Float64Array<SharedArrayBuffer>
  /** Offset of the counter. */
  readonly at: number
  readonly numbersAt: number
  readonly columns: number
  /** The thread that counts through this object; `columns` = one that holds nothing, such as the main thread. */
  readonly thread: number
  /** The user that the caller expects. Nothing is taken once the counter belongs to another user. */
  keyLow = 0
  keyHigh = 0
  /** For a limit shared by replicas: what this replica may take. */
  account: GlobalAccount | undefined = undefined

  constructor(memory: FlowMemory, index: number, thread: number) {
    this.words = memory.words
    this.numbers = memory.numbers
    this.at = index * wordsOfCounter(memory.columns)
    this.numbersAt = index * COUNTER_NUMBERS
    this.columns = memory.columns
    this.thread = thread
  }
}

/** @param columns number of threads that count in it */
export function createFlowMemory(counters: number, columns = 1): FlowMemory {
  const words = counters * wordsOfCounter(columns) * Int32Array.BYTES_PER_ELEMENT
  return {
    words: new Int32Array(new SharedArrayBuffer(words)),
    numbers: new Float64Array(new SharedArrayBuffer(counters * COUNTER_NUMBERS * Float64Array.BYTES_PER_ELEMENT)),
    columns,
  }
}

function wordsOfCounter(columns: number): number {
  return FIXED_WORDS + 2 * columns
}

/** Thread 0's column of requests in flight; the other threads follow. */
export function requestColumns(counter: FlowCounter): number {
  return counter.at + FIXED_WORDS
}

/** Thread 0's column of open watches; the other threads follow. */
export function watchColumns(counter: FlowCounter): number {
  return counter.at + FIXED_WORDS + counter.columns
}

/** Whether the counter still belongs to the user that the caller expects. */
export function isOwn(counter: FlowCounter): boolean {
  return hasKey(counter, counter.keyLow, counter.keyHigh)
}

/** Whether the counter belongs to the user with this key. */
export function hasKey(counter: FlowCounter, low: number, high: number): boolean {
  return (
    Atomics.load(counter.words, counter.at + KEY_LOW) === low &&
    Atomics.load(counter.words, counter.at + KEY_HIGH) === high
  )
}

/** Assigns the counter to a user, without history. */
export function assignCounter(counter: FlowCounter, low: number, high: number): void {
  Atomics.store(counter.words, counter.at + STARTED, 0)
  Atomics.store(counter.words, counter.at + KEY_HIGH, high)
  Atomics.store(counter.words, counter.at + KEY_LOW, low)
}

/** Takes the lock of the counter, or of the user table that it stands for. */
export function lockCounter(counter: FlowCounter): void {
  lock(counter.words, counter.at, counter.thread)
}

/** Takes the lock if it is free; never waits. */
export function tryLockCounter(counter: FlowCounter): boolean {
  return tryLock(counter.words, counter.at, counter.thread)
}

export function unlockCounter(counter: FlowCounter): void {
  unlock(counter.words, counter.at)
}

/** Releases everything that a dead thread held in any counter, including locks. */
export function releaseThread(memory: FlowMemory, thread: number): void {
  const { words, columns } = memory
  const stride = wordsOfCounter(columns)
  for (let at = 0; at < words.length; at += stride) {
    openLockOf(words, at, thread)
    const inFlight = at + FIXED_WORDS + thread
    if (Atomics.load(words, inFlight) !== 0) Atomics.store(words, inFlight, 0)
    if (Atomics.load(words, inFlight + columns) !== 0) Atomics.store(words, inFlight + columns, 0)
  }
}
