// Local limits: token buckets, requests in flight, open watches. Exact, also when several threads share a cell.
//
// A cell lives in shared memory. Counters are single words, changed by compare-exchange. A token bucket needs two
// numbers (how many tokens, as of when), so it is changed under a lock word: two doubles that hold whole numbers cost
// less than a BigInt64 compare-exchange, which allocates on every call. Uncontended, the lock makes no system call.

import type { CompiledSchema } from './compiled-cluster.ts'

/** Memory of many cells. Can be posted to a thread, which then sees the same cells. */
export interface FlowMemory {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly numbers: Float64Array<SharedArrayBuffer>
}

/** The state of one limit (of one user, where the limit is per user): a place in FlowMemory. */
export interface FlowCell extends FlowMemory {
  readonly index: number
}

const CELL_WORDS = 4
const LOCK = 0
const IN_FLIGHT = 1
const WATCHES = 2

const CELL_NUMBERS = 2
/** Whole tokens at the time SINCE less those taken after it; may be negative. Infinity = never used, so full. */
const TOKENS = 0
/** The time, in ticks, from which refill counts. */
const SINCE = 1

/**
 * Time is counted in ticks of 1/4096 ms. A power of two, so that converting a double is exact; small enough a unit, and
 * large enough that ticks stay below 2^53 for 69 years, and ticks of one second times qps do so up to qps = 2^31.
 *
 * Between two ticks rounding is always towards fewer tokens (`now` rounds down, the start of refill up), so no window
 * of any length t ever admits more than burst + qps * t; a token can come a quarter of a microsecond late.
 */
const TICKS_PER_MS = 4096
const TICKS_PER_SECOND = 1000 * TICKS_PER_MS

const FREE = 0
const HELD = 1
const CONTENDED = 2
const LOCK_WAIT_MS = 10
/** A thread terminated inside the lock cannot give it back: after a second it is taken over. */
const LOCK_WAITS = 100

const NO_CAP = 2 ** 31 - 1
const MAX_RETRY_AFTER_SECONDS = 60

export function createFlowMemory(cells: number): FlowMemory {
  return {
    words: new Int32Array(new SharedArrayBuffer(cells * CELL_WORDS * Int32Array.BYTES_PER_ELEMENT)),
    numbers: new Float64Array(new SharedArrayBuffer(cells * CELL_NUMBERS * Float64Array.BYTES_PER_ELEMENT)),
  }
}

/** A cell without history: bucket full, nothing in flight. Whatever was at `index` is forgotten. */
export function createFlowCell(memory: FlowMemory = createFlowMemory(1), index = 0): FlowCell {
  const cell: FlowCell = { words: memory.words, numbers: memory.numbers, index }
  cell.words.fill(0, index * CELL_WORDS, (index + 1) * CELL_WORDS)
  write(cell, Number.POSITIVE_INFINITY, 0)
  return cell
}

/**
 * Takes one request's share of the limit, or says no. `nowMs` is monotonic, and the same clock for all who share the
 * cell. What was taken of maxRequestsInflight is given back by `release`.
 */
export function tryAcquire(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  switch (schema.kind) {
    case 'exempt':
      return true
    case 'maxRequestsInflight':
      return increment(cell, IN_FLIGHT, schema.max)
    case 'tokenBucket':
      return takeToken(schema, cell, nowMs)
  }
}

/** Ends what `tryAcquire` began. Safe after the schema changed or went: the request still holds the cell. */
export function release(schema: CompiledSchema, cell: FlowCell): void {
  if (schema.kind === 'maxRequestsInflight') decrement(cell, IN_FLIGHT)
}

/** Undoes `tryAcquire` for a request that could be sent to no endpoint: its token is put back, its slot is free. */
export function refund(schema: CompiledSchema, cell: FlowCell): void {
  if (schema.kind !== 'tokenBucket') {
    release(schema, cell)
    return
  }
  lock(cell)
  write(cell, Math.min(read(cell, TOKENS) + 1, schema.burst), read(cell, SINCE))
  unlock(cell)
}

/** Whole seconds, at least 1, until the limit can admit a request again. */
export function retryAfterSeconds(schema: CompiledSchema, cell: FlowCell, nowMs: number): number {
  if (schema.kind !== 'tokenBucket') return 1
  lock(cell)
  const tokens = Math.min(read(cell, TOKENS), schema.burst)
  const since = read(cell, SINCE)
  unlock(cell)
  const seconds = (1 - tokens) / schema.qps - (Math.floor(nowMs * TICKS_PER_MS) - since) / TICKS_PER_SECOND
  return Math.min(Math.max(Math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS)
}

/** Counts a watch that opens, whether or not there is a cap; false when the cap is reached. */
export function tryOpenWatch(schema: CompiledSchema, cell: FlowCell): boolean {
  return increment(cell, WATCHES, schema.maxWatches === 0 ? NO_CAP : schema.maxWatches)
}

export function closeWatch(_schema: CompiledSchema, cell: FlowCell): void {
  decrement(cell, WATCHES)
}

/**
 * Puts a changed limit in force. The tokens at hand stay, at most the new burst, and none is added: refill goes on at
 * the new rate. Counters need nothing: they compare with the new maximum from now on.
 */
export function resize(previous: CompiledSchema, next: CompiledSchema, cell: FlowCell, nowMs: number): void {
  if (previous.kind !== 'tokenBucket' || next.kind !== 'tokenBucket') return
  const now = Math.floor(nowMs * TICKS_PER_MS)
  lock(cell)
  advance(previous, cell, nowMs)
  const refilled = Math.max(0, now - read(cell, SINCE)) * previous.qps
  const whole = Math.floor(refilled / TICKS_PER_SECOND)
  const tokens = Math.min(read(cell, TOKENS) + whole, next.burst)
  // What has been refilled of the next token, as time at the new rate.
  const started = tokens === next.burst ? 0 : Math.floor((refilled - whole * TICKS_PER_SECOND) / next.qps)
  write(cell, tokens, Math.ceil(nowMs * TICKS_PER_MS) - started)
  unlock(cell)
}

/** Whole tokens at hand. 0 for limits that have none. */
export function tokensLeft(schema: CompiledSchema, cell: FlowCell, nowMs: number): number {
  if (schema.kind !== 'tokenBucket') return 0
  lock(cell)
  const tokens = read(cell, TOKENS)
  const ticks = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - read(cell, SINCE))
  unlock(cell)
  return Math.max(0, Math.min(schema.burst, tokens + Math.floor((ticks / TICKS_PER_SECOND) * schema.qps)))
}

export function requestsInFlight(cell: FlowCell): number {
  return Atomics.load(cell.words, cell.index * CELL_WORDS + IN_FLIGHT)
}

export function openWatches(cell: FlowCell): number {
  return Atomics.load(cell.words, cell.index * CELL_WORDS + WATCHES)
}

/** Whether a new cell would admit exactly what this one does, so that forgetting it costs nothing. */
export function isIdle(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  if (requestsInFlight(cell) !== 0 || openWatches(cell) !== 0) return false
  return schema.kind !== 'tokenBucket' || tokensLeft(schema, cell, nowMs) >= schema.burst
}

function takeToken(schema: CompiledSchema, cell: FlowCell, nowMs: number): boolean {
  lock(cell)
  advance(schema, cell, nowMs)
  const tokens = read(cell, TOKENS)
  const since = read(cell, SINCE)
  const elapsed = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - since)
  // One whole token, without a division: tokens + elapsed * qps / TICKS_PER_SECOND >= 1.
  const taken = (1 - tokens) * TICKS_PER_SECOND <= elapsed * schema.qps
  if (taken) write(cell, tokens - 1, since)
  unlock(cell)
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
  return cell.numbers[cell.index * CELL_NUMBERS + slot] ?? 0
}

function write(cell: FlowCell, tokens: number, since: number): void {
  cell.numbers[cell.index * CELL_NUMBERS + TOKENS] = tokens
  cell.numbers[cell.index * CELL_NUMBERS + SINCE] = since
}

function increment(cell: FlowCell, slot: number, max: number): boolean {
  const at = cell.index * CELL_WORDS + slot
  for (;;) {
    const count = Atomics.load(cell.words, at)
    if (count >= max) return false
    if (Atomics.compareExchange(cell.words, at, count, count + 1) === count) return true
  }
}

function decrement(cell: FlowCell, slot: number): void {
  const at = cell.index * CELL_WORDS + slot
  for (;;) {
    const count = Atomics.load(cell.words, at)
    if (count <= 0) return
    if (Atomics.compareExchange(cell.words, at, count, count - 1) === count) return
  }
}

/** Drepper's futex mutex ("Futexes are tricky", section 6): only who has to wait makes the holder notify. */
function lock(cell: FlowCell): void {
  const at = cell.index * CELL_WORDS + LOCK
  if (Atomics.compareExchange(cell.words, at, FREE, HELD) === FREE) return
  for (let waits = 0; waits < LOCK_WAITS; waits++) {
    if (Atomics.exchange(cell.words, at, CONTENDED) === FREE) return
    Atomics.wait(cell.words, at, CONTENDED, LOCK_WAIT_MS)
  }
}

function unlock(cell: FlowCell): void {
  const at = cell.index * CELL_WORDS + LOCK
  if (Atomics.exchange(cell.words, at, FREE) === CONTENDED) Atomics.notify(cell.words, at, 1)
}
