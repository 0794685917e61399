// Local limits: token buckets, requests in flight, open watches. Exact, also when several threads share a cell.
//
// A cell lives in shared memory, zero-filled when new. It is changed under a lock word of its own: a bucket needs two
// numbers (how many tokens, as of when), and two doubles that hold whole numbers under a lock cost less than a
// BigInt64 compare-exchange, which allocates on every call. What is held (slots, watches) is counted in a column for each
// thread, whose sum is compared with the limit: when a thread dies, emptying its column gives back exactly what it held.

import type { CompiledSchema } from './compiled-cluster.ts'
import { type GlobalAccount, missSlot, returnToAccount, slotsOf, takeFromAccount } from './global-account.ts'
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
const STARTED = 1
/** Whose cell it is, where a memory has cells for users (flow-users.ts); 0 and 0 = nobody's, or everybody's. */
const KEY_LOW = 2
const KEY_HIGH = 3

const CELL_NUMBERS = 2
/** Whole tokens at the time SINCE less those taken after it; may be negative. */
const TOKENS = 0
/** The time, in ticks, from which refill counts. */
const SINCE = 1

/** The state of one limit (of one user, where the limit is per user), as one thread sees it: a place in FlowMemory. */
export class FlowCell {
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

/**
 * Time is counted in ticks of 1/4096 ms. A power of two, so that converting a double is exact; small enough a unit, and
 * large enough that ticks stay below 2^53 for 69 years, and ticks of one second times qps do so up to qps = 2^31.
 *
 * Between two ticks rounding is always towards fewer tokens (`now` rounds down, the start of refill up), so no window
 * of any length t ever admits more than burst + qps * t; a token can come a quarter of a microsecond late.
 */
const TICKS_PER_MS = 4096
const TICKS_PER_SECOND = 1000 * TICKS_PER_MS

const NO_CAP = 2 ** 31 - 1
const MAX_RETRY_AFTER_SECONDS = 60

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

/**
 * Takes one request's share of the limit, or says no. `nowMs` is monotonic, and the same clock for all who share the
 * cell. What was taken of maxRequestsInflight is given back by `release`. Where replicas share the limit, both that limit
 * and the local one have to admit it.
 */
export function tryAcquire(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  switch (schema.kind) {
    case 'exempt':
      return true
    case 'maxRequestsInflight':
      return takeSlot(schema, cell)
    case 'tokenBucket':
      return takeToken(schema, cell, nowMs)
  }
}

/** Ends what `tryAcquire` began. Safe after the schema changed or went: the request still holds the cell. */
export function release(schema: CompiledSchema, cell: FlowCell): void {
  if (schema.kind === 'maxRequestsInflight') decrement(cell, cell.at + FIXED_WORDS)
}

/** Undoes `tryAcquire` for a request that could be sent to no endpoint: its token is put back, its slot is free. */
export function refund(schema: CompiledSchema, cell: FlowCell): void {
  if (schema.kind !== 'tokenBucket') {
    release(schema, cell)
    return
  }
  lockCell(cell)
  if (isOwn(cell)) write(cell, Math.min(read(cell, TOKENS) + 1, schema.burst), read(cell, SINCE))
  if (schema.shared !== undefined && cell.account !== undefined) returnToAccount(cell.account)
  unlock(cell.words, cell.at)
}

/** Whole seconds, at least 1, until the limit can admit a request again. */
export function retryAfterSeconds(schema: CompiledSchema, cell: FlowCell, nowMs: number): number {
  if (schema.kind !== 'tokenBucket') return 1
  lockCell(cell)
  const tokens = Math.min(read(cell, TOKENS), schema.burst)
  const since = read(cell, SINCE)
  unlock(cell.words, cell.at)
  const seconds = (1 - tokens) / schema.qps - (Math.floor(nowMs * TICKS_PER_MS) - since) / TICKS_PER_SECOND
  return Math.min(Math.max(Math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS)
}

/** Counts a watch that opens, whether or not there is a cap; false when the cap is reached. */
export function tryOpenWatch(schema: CompiledSchema, cell: FlowCell): boolean {
  return increment(cell, cell.at + FIXED_WORDS + cell.columns, schema.maxWatches === 0 ? NO_CAP : schema.maxWatches)
}

export function closeWatch(_schema: CompiledSchema, cell: FlowCell): void {
  decrement(cell, cell.at + FIXED_WORDS + cell.columns)
}

/**
 * Puts a changed limit in force. The tokens at hand stay, at most the new burst, and none is added: refill goes on at
 * the new rate. Counters need nothing: they compare with the new maximum from now on.
 */
export function resize(previous: CompiledSchema, next: CompiledSchema, cell: FlowCell, nowMs: number): void {
  if (previous.kind !== 'tokenBucket' || next.kind !== 'tokenBucket') return
  const now = Math.floor(nowMs * TICKS_PER_MS)
  lockCell(cell)
  advance(previous, cell, nowMs)
  const refilled = Math.max(0, now - read(cell, SINCE)) * previous.qps
  const whole = Math.floor(refilled / TICKS_PER_SECOND)
  const tokens = Math.min(read(cell, TOKENS) + whole, next.burst)
  // What has been refilled of the next token, as time at the new rate.
  const started = tokens === next.burst ? 0 : Math.floor((refilled - whole * TICKS_PER_SECOND) / next.qps)
  write(cell, tokens, Math.ceil(nowMs * TICKS_PER_MS) - started)
  unlock(cell.words, cell.at)
}

/** Whole tokens at hand; a look without the lock, which may miss a change that is just being made. 0 for limits that have none. */
export function tokensLeft(schema: CompiledSchema, cell: FlowCell, nowMs: number): number {
  if (schema.kind !== 'tokenBucket') return 0
  const tokens = read(cell, TOKENS)
  const ticks = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - read(cell, SINCE))
  return Math.max(0, Math.min(schema.burst, tokens + Math.floor((ticks / TICKS_PER_SECOND) * schema.qps)))
}

/** Of all threads together. */
export function requestsInFlight(cell: FlowCell): number {
  return sum(cell, cell.at + FIXED_WORDS)
}

/** Of all threads together. */
export function openWatches(cell: FlowCell): number {
  return sum(cell, cell.at + FIXED_WORDS + cell.columns)
}

/** Whether a new cell would admit exactly what this one does, so that forgetting it costs nothing. */
export function isIdle(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  if (requestsInFlight(cell) !== 0 || openWatches(cell) !== 0) return false
  return schema.kind !== 'tokenBucket' || tokensLeft(schema, cell, nowMs) >= schema.burst
}

/** Whether the cell is still that of whom it is taken to be. */
export function isOwn(cell: FlowCell): boolean {
  return hasKey(cell, cell.keyLow, cell.keyHigh)
}

/** Whose cell it is. */
export function hasKey(cell: FlowCell, low: number, high: number): boolean {
  return Atomics.load(cell.words, cell.at + KEY_LOW) === low && Atomics.load(cell.words, cell.at + KEY_HIGH) === high
}

/** Makes it the cell of somebody, without history. */
export function assignCell(cell: FlowCell, low: number, high: number): void {
  Atomics.store(cell.words, cell.at + STARTED, 0)
  Atomics.store(cell.words, cell.at + KEY_HIGH, high)
  Atomics.store(cell.words, cell.at + KEY_LOW, low)
}

/** Makes an idle cell that of somebody else; false when it is not idle, or in use just now. */
export function tryReassign(schema: CompiledSchema, cell: FlowCell, low: number, high: number, nowMs: number): boolean {
  if (!isIdle(schema, cell, nowMs) || !tryLock(cell.words, cell.at, cell.thread)) return false
  const idle = isIdle(schema, cell, nowMs)
  if (idle) assignCell(cell, low, high)
  unlock(cell.words, cell.at)
  return idle
}

/** Takes the lock of a cell that stands for a whole memory, and of nothing else. */
export function lockCell(cell: FlowCell): void {
  lock(cell.words, cell.at, cell.thread)
}

export function unlockCell(cell: FlowCell): void {
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

function takeToken(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  lockCell(cell)
  const taken = isOwn(cell) && takeTokenLocked(schema, cell, nowMs)
  unlock(cell.words, cell.at)
  return taken
}

function takeTokenLocked(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  advance(schema, cell, nowMs)
  const tokens = read(cell, TOKENS)
  const since = read(cell, SINCE)
  const elapsed = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - since)
  // One whole token, without a division: tokens + elapsed * qps / TICKS_PER_SECOND >= 1.
  const enough = (1 - tokens) * TICKS_PER_SECOND <= elapsed * schema.qps
  const { account } = cell
  const taken = enough && (schema.shared === undefined || (account !== undefined && takeFromAccount(account)))
  if (taken) write(cell, tokens - 1, since)
  return taken
}

/** Moves SINCE near `nowMs`, so that all later products are exact, and stops refill at the burst. */
function advance({ qps, burst }: CompiledSchema, cell: FlowCell, nowMs: number): void {
  const down = Math.floor(nowMs * TICKS_PER_MS)
  const up = Math.ceil(nowMs * TICKS_PER_MS)
  let tokens = read(cell, TOKENS)
  let since = read(cell, SINCE)
  const elapsed = Math.max(0, down - since)
  const seconds = Math.floor(elapsed / TICKS_PER_SECOND)
  if ((burst - tokens - seconds * qps) * TICKS_PER_SECOND <= (elapsed - seconds * TICKS_PER_SECOND) * qps) {
    write(cell, burst, up)
    return
  }
  // A whole second refills whole tokens: nothing is rounded.
  tokens += seconds * qps
  since += seconds * TICKS_PER_SECOND
  // Full somewhere inside this tick: what came after that moment must not count.
  if (up > down && (burst - tokens) * TICKS_PER_SECOND <= (up - since) * qps) since += 1
  write(cell, tokens, since)
}

function read(cell: FlowCell, slot: number): number {
  if (cell.words[cell.at + STARTED] === 0) return slot === TOKENS ? Number.POSITIVE_INFINITY : 0
  return cell.numbers[cell.numbersAt + slot] ?? 0
}

/** In this order: a thread that dies between two of the lines leaves fewer tokens than there were, never more. */
function write(cell: FlowCell, tokens: number, since: number): void {
  cell.numbers[cell.numbersAt + SINCE] = since
  cell.numbers[cell.numbersAt + TOKENS] = tokens
  if (cell.words[cell.at + STARTED] === 0) Atomics.store(cell.words, cell.at + STARTED, 1)
}

/** `first`: the column of thread 0. */
function sum(cell: FlowCell, first: number): number {
  let total = 0
  for (let i = 0; i < cell.columns; i++) total += cell.words[first + i] ?? 0
  return total
}

/** Under the lock, because the sum and the step must be one. */
function increment(cell: FlowCell, first: number, max: number): boolean {
  lockCell(cell)
  const admitted = isOwn(cell) && sum(cell, first) < max
  if (admitted) Atomics.add(cell.words, first + cell.thread, 1)
  unlock(cell.words, cell.at)
  return admitted
}

function takeSlot(schema: CompiledSchema, cell: FlowCell): boolean {
  const first = cell.at + FIXED_WORDS
  if (schema.shared === undefined) return increment(cell, first, schema.max)
  const { account } = cell
  if (account === undefined) return false
  lockCell(cell)
  const running = sum(cell, first)
  const admitted = running < schema.max && running < slotsOf(account)
  if (admitted) Atomics.add(cell.words, first + cell.thread, 1)
  else if (running < schema.max) missSlot(account)
  unlock(cell.words, cell.at)
  return admitted
}

/** Without the lock: nobody else writes this column, and a sum that still has the old value only refuses. */
function decrement(cell: FlowCell, first: number): void {
  const at = first + cell.thread
  if (Atomics.load(cell.words, at) > 0) Atomics.sub(cell.words, at, 1)
}
