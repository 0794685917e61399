// Token buckets, in the counter of a limit: exact, whatever the times at which they are asked. Every schema here is of the kind
// `tokenBucket`.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, isOwn, lockCounter, STARTED, unlockCounter } from './flow-counter.ts'
import { returnToAccount, takeFromAccount } from './global-account.ts'

// The numbers of a counter.
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

/** Until there are so many whole tokens; 0 or less when they are there. */
export function secondsToToken(schema: CompiledSchema, counter: FlowCounter, nowMs: number, seats = 1): number {
  lockCounter(counter)
  const tokens = Math.min(read(counter, TOKENS), schema.burst)
  const since = read(counter, SINCE)
  unlockCounter(counter)
  return (seats - tokens) / schema.qps - (Math.floor(nowMs * TICKS_PER_MS) - since) / TICKS_PER_SECOND
}

/** Whole tokens at hand; a look without the lock, which may miss a change that is just being made. */
export function tokensInBucket(schema: CompiledSchema, counter: FlowCounter, nowMs: number): number {
  const tokens = read(counter, TOKENS)
  const ticks = Math.max(0, Math.floor(nowMs * TICKS_PER_MS) - read(counter, SINCE))
  return Math.max(0, Math.min(schema.burst, tokens + Math.floor((ticks / TICKS_PER_SECOND) * schema.qps)))
}

/** The tokens at hand stay, at most the new burst, and none is added: refill goes on at the new rate. */
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
  // What has been refilled of the next token, as time at the new rate.
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
  // Full somewhere inside this tick: what came after that moment must not count.
  if (up > down && (burst - tokens) * TICKS_PER_SECOND <= (up - since) * qps) since += 1
  write(counter, tokens, since)
}

function read(counter: FlowCounter, slot: number): number {
  if (counter.words[counter.at + STARTED] === 0) return slot === TOKENS ? Number.POSITIVE_INFINITY : 0
  return counter.numbers[counter.numbersAt + slot] ?? 0
}

/** In this order: a thread that dies between two of the lines leaves fewer tokens than there were, never more. */
function write(counter: FlowCounter, tokens: number, since: number): void {
  counter.numbers[counter.numbersAt + SINCE] = since
  counter.numbers[counter.numbersAt + TOKENS] = tokens
  if (counter.words[counter.at + STARTED] === 0) Atomics.store(counter.words, counter.at + STARTED, 1)
}
