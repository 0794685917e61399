// Token buckets, stored in the counter of a limit: exact, whatever the times at which they are asked. Every schema here is of kind
// `tokenBucket`.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, isOwn, lockCounter, STARTED, unlockCounter } from './flow-counter.ts'
import { returnToAccount, takeFromAccount } from './global-account.ts'

// The numbers of a counter.
/** Whole tokens at time SINCE minus those taken after it; may be negative. */
const TOKENS = 0
/** The time, in ticks, from which refill counts. */
const SINCE = 1

/**
 * Time is counted in ticks of 1/4096 ms: a power of two, so that converting a double is exact; fine enough, yet coarse enough that ticks
 * stay below 2^53 for 69 years, as do the ticks of one second times qps up to qps = 2^31.
 *
 * Rounding is always towards fewer tokens (`now` rounds down, the start of refill up), so no window of length t ever admits more than burst
 * + qps * t; a token may come a quarter of a microsecond late.
 */
const TICKS_PER_MS = 4096
const TICKS_PER_SECOND = 1000 * TICKS_PER_MS

/** If replicas share the limit, both buckets need a token. */
export function takeToken(schema: CompiledSchema, counter: FlowCounter, nowMs: number, seats = 1): boolean {
  lockCounter(counter)
  const taken = isOwn(counter) && takeTokenLocked(schema, counter, nowMs, seats)
  unlockCounter(counter)
  return taken
}

function takeTokenLocked(schema: CompiledSchema, counter: FlowCounter, nowMs: number, seats: number): boolean {
  advance(schema, counter, nowMs)
  const tokens = read(counter, TOKENS)
  const since = read(counter, SINCE)
  const elapsed = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - since)
  // Whole tokens, without a division: tokens + elapsed * qps / TICKS_PER_SECOND >= seats.
  const enough = (seats - tokens) * TICKS_PER_SECOND <= elapsed * schema.qps
  const { account } = counter
  const taken = enough && (schema.shared === undefined || (account !== undefined && takeFromAccount(account, seats)))
  if (taken) write(counter, tokens - seats, since)
  return taken
}

/** Returns unused tokens. */
export function returnToken(schema: CompiledSchema, counter: FlowCounter, seats = 1): void {
  lockCounter(counter)
  if (isOwn(counter)) write(counter, Math.min(read(counter, TOKENS) + seats, schema.burst), read(counter, SINCE))
  if (schema.shared !== undefined && counter.account !== undefined) returnToAccount(counter.account, seats)
  unlockCounter(counter)
}

/** Seconds until that many whole tokens are available; 0 or less if they are now. */
export function secondsToToken(schema: CompiledSchema, counter: FlowCounter, nowMs: number, seats = 1): number {
  lockCounter(counter)
  const tokens = Math.min(read(counter, TOKENS), schema.burst)
  const since = read(counter, SINCE)
  unlockCounter(counter)
  return (seats - tokens) / schema.qps - (Math.floor(nowMs * TICKS_PER_MS) - since) / TICKS_PER_SECOND
}

/** Whole tokens available; read without the lock, so it may miss a concurrent change. */
export function tokensInBucket(schema: CompiledSchema, counter: FlowCounter, nowMs: number): number {
  const tokens = read(counter, TOKENS)
  const ticks = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - read(counter, SINCE))
  return Math.max(0, Math.min(schema.burst, tokens + Math.floor((ticks / TICKS_PER_SECOND) * schema.qps)))
}

/** Keeps the current tokens, up to the new burst, and adds none; refill continues at the new rate. */
export function resizeBucket(
  previous: CompiledSchema,
  next: CompiledSchema,
  counter: FlowCounter,
  nowMs: number,
): void {
  const now = Math.floor(nowMs * TICKS_PER_MS)
  lockCounter(counter)
  advance(previous, counter, nowMs)
  const refilled = Math.max(0, now - read(counter, SINCE)) * previous.qps
  const whole = Math.floor(refilled / TICKS_PER_SECOND)
  const tokens = Math.min(read(counter, TOKENS) + whole, next.burst)
  // The part of the next token already refilled, as time at the new rate.
  const started = tokens === next.burst ? 0 : Math.floor((refilled - whole * TICKS_PER_SECOND) / next.qps)
  write(counter, tokens, Math.ceil(nowMs * TICKS_PER_MS) - started)
  unlockCounter(counter)
}

/** Moves SINCE near `nowMs`, so that all later products are exact, and stops refill at the burst. */
function advance({ qps, burst }: CompiledSchema, counter: FlowCounter, nowMs: number): void {
  const down = Math.floor(nowMs * TICKS_PER_MS)
  const up = Math.ceil(nowMs * TICKS_PER_MS)
  let tokens = read(counter, TOKENS)
  let since = read(counter, SINCE)
  const elapsed = Math.max(0, down - since)
  const seconds = Math.floor(elapsed / TICKS_PER_SECOND)
  if ((burst - tokens - seconds * qps) * TICKS_PER_SECOND <= (elapsed - seconds * TICKS_PER_SECOND) * qps) {
    write(counter, burst, up)
    return
  }
  // A whole second refills whole tokens: nothing is rounded.
  tokens += seconds * qps
  since += seconds * TICKS_PER_SECOND
  // The bucket fills within this tick: income after that moment must not count.
  if (up > down && (burst - tokens) * TICKS_PER_SECOND <= (up - since) * qps) since += 1
  write(counter, tokens, since)
}

function read(counter: FlowCounter, slot: number): number {
  if (counter.words[counter.at + STARTED] === 0) return slot === TOKENS ? Number.POSITIVE_INFINITY : 0
  return counter.numbers[counter.numbersAt + slot] ?? 0
}

/** In this order: if a thread dies between the lines, tokens are lost, never gained. */
function write(counter: FlowCounter, tokens: number, since: number): void {
  counter.numbers[counter.numbersAt + SINCE] = since
  counter.numbers[counter.numbersAt + TOKENS] = tokens
  if (counter.words[counter.at + STARTED] === 0) Atomics.store(counter.words, counter.at + STARTED, 1)
}
