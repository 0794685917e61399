// Token buckets, in the cell of a limit: exact, whatever the times at which they are asked. Every schema here is of the kind
// `tokenBucket`.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, isOwn, lockCounter, STARTED, unlockCounter } from './flow-counter.ts'
import { returnToAccount, takeFromAccount } from './global-account.ts'

// The numbers of a cell.
/** Whole tokens at the time SINCE less those taken after it; may be negative. */
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

/** Where replicas share the limit, there has to be a token in both. */
export function takeToken(schema: CompiledSchema, cell: FlowCounter, nowMs: number): boolean {
  lockCounter(cell)
  const taken = isOwn(cell) && takeTokenLocked(schema, cell, nowMs)
  unlockCounter(cell)
  return taken
}

function takeTokenLocked(schema: CompiledSchema, cell: FlowCounter, nowMs: number): boolean {
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

/** Puts a token back that was taken for nothing. */
export function returnToken(schema: CompiledSchema, cell: FlowCounter): void {
  lockCounter(cell)
  if (isOwn(cell)) write(cell, Math.min(read(cell, TOKENS) + 1, schema.burst), read(cell, SINCE))
  if (schema.shared !== undefined && cell.account !== undefined) returnToAccount(cell.account)
  unlockCounter(cell)
}

/** Until there is a whole token; 0 or less when there is one. */
export function secondsToToken(schema: CompiledSchema, cell: FlowCounter, nowMs: number): number {
  lockCounter(cell)
  const tokens = Math.min(read(cell, TOKENS), schema.burst)
  const since = read(cell, SINCE)
  unlockCounter(cell)
  return (1 - tokens) / schema.qps - (Math.floor(nowMs * TICKS_PER_MS) - since) / TICKS_PER_SECOND
}

/** Whole tokens at hand; a look without the lock, which may miss a change that is just being made. */
export function tokensInBucket(schema: CompiledSchema, cell: FlowCounter, nowMs: number): number {
  const tokens = read(cell, TOKENS)
  const ticks = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - read(cell, SINCE))
  return Math.max(0, Math.min(schema.burst, tokens + Math.floor((ticks / TICKS_PER_SECOND) * schema.qps)))
}

/** The tokens at hand stay, at most the new burst, and none is added: refill goes on at the new rate. */
export function resizeBucket(previous: CompiledSchema, next: CompiledSchema, cell: FlowCounter, nowMs: number): void {
  const now = Math.floor(nowMs * TICKS_PER_MS)
  lockCounter(cell)
  advance(previous, cell, nowMs)
  const refilled = Math.max(0, now - read(cell, SINCE)) * previous.qps
  const whole = Math.floor(refilled / TICKS_PER_SECOND)
  const tokens = Math.min(read(cell, TOKENS) + whole, next.burst)
  // What has been refilled of the next token, as time at the new rate.
  const started = tokens === next.burst ? 0 : Math.floor((refilled - whole * TICKS_PER_SECOND) / next.qps)
  write(cell, tokens, Math.ceil(nowMs * TICKS_PER_MS) - started)
  unlockCounter(cell)
}

/** Moves SINCE near `nowMs`, so that all later products are exact, and stops refill at the burst. */
function advance({ qps, burst }: CompiledSchema, cell: FlowCounter, nowMs: number): void {
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

function read(cell: FlowCounter, slot: number): number {
  if (cell.words[cell.at + STARTED] === 0) return slot === TOKENS ? Number.POSITIVE_INFINITY : 0
  return cell.numbers[cell.numbersAt + slot] ?? 0
}

/** In this order: a thread that dies between two of the lines leaves fewer tokens than there were, never more. */
function write(cell: FlowCounter, tokens: number, since: number): void {
  cell.numbers[cell.numbersAt + SINCE] = since
  cell.numbers[cell.numbersAt + TOKENS] = tokens
  if (cell.words[cell.at + STARTED] === 0) Atomics.store(cell.words, cell.at + STARTED, 1)
}
