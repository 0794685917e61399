// The memory of local limits: a cell for each limit, or for each user of one.
//
// A cell lives in shared memory, zero-filled when new. It is changed under a lock word of its own: a bucket needs two
// numbers (how many tokens, as of when), and two doubles that hold whole numbers under a lock cost less than a
// BigInt64 compare-exchange, which allocates on every call. What is held (slots, watches) is counted in a column for each
// thread, whose sum is compared with the limit: when a thread dies, emptying its column gives back exactly what it held.

import type { GlobalAccount } from './global-account.ts'
import { lock, openLockOf, tryLock, unlock } from './shared-lock.ts'

/** Memory of many cells. Can be posted to a thread, which then sees the same cells. */
export interface FlowMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly numbers: Float64Array<SharedArrayBuffer>
  /** How many threads count in it: threads 0 to columns - 1. */
  readonly columns: number
}

/** Of each cell; the first is its lock. A column of requests in flight and one of watches for each thread follow. */
const FIXED_WORDS = 4
/** 0 = never used: the bucket is full. */
export const STARTED = 1
/** Whose cell it is, where a memory has cells for users (flow-users.ts); 0 and 0 = nobody's, or everybody's. */
const KEY_LOW = 2
const KEY_HIGH = 3

/** Of each cell: its bucket (token-bucket.ts). */
const CELL_NUMBERS = 2

/** The state of one limit (of one user, where the limit is per user), as one thread sees it: a place in FlowMemory. */
export class FlowCounter {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly numbers: Float64Array<SharedArrayBuffer>
  /** Where the cell begins. */
  readonly at: number
  readonly numbersAt: number
  readonly columns: number
  /** The thread that counts through this object; `columns` = one that holds nothing, such as the main thread. */
  readonly thread: number
  /** Whose cell the caller takes this to be; nothing is taken from it when it has become another one's. */
  keyLow = 0
  keyHigh = 0
  /** Of a limit that replicas share: what this one may take of it. */
  account: GlobalAccount | undefined = undefined

  constructor(memory: FlowMemory, index: number, thread: number) {
    this.words = memory.words
    this.numbers = memory.numbers
    this.at = index * wordsOfCell(memory.columns)
    this.numbersAt = index * CELL_NUMBERS
    this.columns = memory.columns
    this.thread = thread
  }
}

/** @param columns how many threads will count in it */
export function createFlowMemory(cells: number, columns = 1): FlowMemory {
  const words = cells * wordsOfCell(columns) * Int32Array.BYTES_PER_ELEMENT
  return {
    words: new Int32Array(new SharedArrayBuffer(words)),
    numbers: new Float64Array(new SharedArrayBuffer(cells * CELL_NUMBERS * Float64Array.BYTES_PER_ELEMENT)),
    columns,
  }
}

function wordsOfCell(columns: number): number {
  return FIXED_WORDS + 2 * columns
}

/** Where thread 0 counts its requests in flight; the other threads follow. */
export function requestColumns(cell: FlowCounter): number {
  return cell.at + FIXED_WORDS
}

/** Where thread 0 counts its open watches; the other threads follow. */
export function watchColumns(cell: FlowCounter): number {
  return cell.at + FIXED_WORDS + cell.columns
}

/** Whether the cell is still that of whom it is taken to be. */
export function isOwn(cell: FlowCounter): boolean {
  return hasKey(cell, cell.keyLow, cell.keyHigh)
}

/** Whose cell it is. */
export function hasKey(cell: FlowCounter, low: number, high: number): boolean {
  return Atomics.load(cell.words, cell.at + KEY_LOW) === low && Atomics.load(cell.words, cell.at + KEY_HIGH) === high
}

/** Makes it the cell of somebody, without history. */
export function assignCounter(cell: FlowCounter, low: number, high: number): void {
  Atomics.store(cell.words, cell.at + STARTED, 0)
  Atomics.store(cell.words, cell.at + KEY_HIGH, high)
  Atomics.store(cell.words, cell.at + KEY_LOW, low)
}

/** Takes the lock of the cell, or of what it stands for: a whole table of users. */
export function lockCounter(cell: FlowCounter): void {
  lock(cell.words, cell.at, cell.thread)
}

/** Takes the lock if it is free; never waits. */
export function tryLockCounter(cell: FlowCounter): boolean {
  return tryLock(cell.words, cell.at, cell.thread)
}

export function unlockCounter(cell: FlowCounter): void {
  unlock(cell.words, cell.at)
}

/** Gives back what a thread that has died held in any cell, and opens the locks that it held. */
export function releaseThread(memory: FlowMemory, thread: number): void {
  const { words, columns } = memory
  const stride = wordsOfCell(columns)
  for (let at = 0; at < words.length; at += stride) {
    openLockOf(words, at, thread)
    const inFlight = at + FIXED_WORDS + thread
    if (Atomics.load(words, inFlight) !== 0) Atomics.store(words, inFlight, 0)
    if (Atomics.load(words, inFlight + columns) !== 0) Atomics.store(words, inFlight + columns, 0)
  }
}
