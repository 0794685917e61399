// Local limits: token buckets, requests in flight, open watches. Exact, even when several threads share a counter. This file
// dispatches by the kind of the schema.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { assignCounter, type FlowCounter, tryLockCounter, unlockCounter } from './flow-counter.ts'
import { slotsOf } from './global-account.ts'
import { freeSlot, openWatches, requestsInFlight, takeSlot } from './in-flight.ts'
import { resizeBucket, returnToken, secondsToToken, takeToken, tokensInBucket } from './token-bucket.ts'

const MAX_RETRY_AFTER_SECONDS = 60

/**
 * How many tokens or slots a request of `seats` takes: capped at the limit, so that no request waits for more than can ever be free (as in
 * API priority and fairness). For slots shared by replicas the cap is this replica's slots, since the others hold the rest.
 */
export function seatsTaken(schema: CompiledSchema, counter: FlowCounter, seats: number): number {
  if (schema.kind === 'tokenBucket') return Math.max(1, Math.min(seats, schema.burst))
  const { account } = counter
  const slots = schema.shared === undefined || account === undefined ? schema.max : slotsOf(account)
  return Math.max(1, Math.min(seats, schema.max, slots))
}

/**
 * Admits one request under the limit, or refuses it. `nowMs` is monotonic, and every user of the counter must pass the same clock.
 * `release` returns what was taken of maxRequestsInflight. If replicas share the limit, both the shared and the local limit must admit.
 */
export function tryAcquire(schema: CompiledSchema, counter: FlowCounter, nowMs: number, seats = 1): boolean {
  switch (schema.kind) {
    case 'exempt':
      return true
    case 'maxRequestsInflight':
      return takeSlot(schema, counter, seats)
    case 'tokenBucket':
      return takeToken(schema, counter, nowMs, seats)
  }
}

/** Releases what `tryAcquire` took. Safe after the schema changed or was removed: the request still holds the counter. */
export function release(schema: CompiledSchema, counter: FlowCounter, seats = 1): void {
  if (schema.kind === 'maxRequestsInflight') freeSlot(counter, seats)
}

/** Undoes `tryAcquire` for a request that no endpoint could take: returns its token and frees its slot. */
export function refund(schema: CompiledSchema, counter: FlowCounter, seats = 1): void {
  if (schema.kind === 'tokenBucket') returnToken(schema, counter, seats)
  else release(schema, counter, seats)
}

/** Whole seconds, at least 1, until the limit can admit another request. */
export function retryAfterSeconds(schema: CompiledSchema, counter: FlowCounter, nowMs: number, seats = 1): number {
  if (schema.kind !== 'tokenBucket') return 1
  return Math.min(Math.max(Math.ceil(secondsToToken(schema, counter, nowMs, seats)), 1), MAX_RETRY_AFTER_SECONDS)
}

/** Applies a changed limit. Counters need no change: they are compared with the new maximum from now on. */
export function resize(previous: CompiledSchema, next: CompiledSchema, counter: FlowCounter, nowMs: number): void {
  if (previous.kind === 'tokenBucket' && next.kind === 'tokenBucket') resizeBucket(previous, next, counter, nowMs)
}

/** Whole tokens available, read without the lock; 0 for limits that have no tokens. */
export function tokensLeft(schema: CompiledSchema, counter: FlowCounter, nowMs: number): number {
  return schema.kind === 'tokenBucket' ? tokensInBucket(schema, counter, nowMs) : 0
}

/** Whether a new counter would behave identically, so that dropping this one loses nothing. */
export function isIdle(schema: CompiledSchema, counter: FlowCounter, nowMs: number): boolean {
  if (requestsInFlight(counter) !== 0 || openWatches(counter) !== 0) return false
  return schema.kind !== 'tokenBucket' || tokensInBucket(schema, counter, nowMs) >= schema.burst
}

/** Assigns an idle counter to another user; false if it is not idle or is locked. */
export function tryReassign(
  schema: CompiledSchema,
  counter: FlowCounter,
  low: number,
  high: number,
  nowMs: number,
): boolean {
  if (!isIdle(schema, counter, nowMs) || !tryLockCounter(counter)) return false
  const idle = isIdle(schema, counter, nowMs)
  if (idle) assignCounter(counter, low, high)
  unlockCounter(counter)
  return idle
}
