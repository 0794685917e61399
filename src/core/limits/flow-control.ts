// Local limits: token buckets, requests in flight, open watches. Exact, also when several threads share a cell. Here is what a
// schema does with its cell, by its kind.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { assignCounter, type FlowCounter, tryLockCounter, unlockCounter } from './flow-counter.ts'
import { freeSlot, openWatches, requestsInFlight, takeSlot } from './in-flight.ts'
import { resizeBucket, returnToken, secondsToToken, takeToken, tokensInBucket } from './token-bucket.ts'

const MAX_RETRY_AFTER_SECONDS = 60

/**
 * Takes one request's share of the limit, or says no. `nowMs` is monotonic, and the same clock for all who share the
 * cell. What was taken of maxRequestsInflight is given back by `release`. Where replicas share the limit, both that limit
 * and the local one have to admit it.
 */
export function tryAcquire(schema: CompiledSchema, cell: FlowCounter, nowMs: number): boolean {
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
export function release(schema: CompiledSchema, cell: FlowCounter): void {
  if (schema.kind === 'maxRequestsInflight') freeSlot(cell)
}

/** Undoes `tryAcquire` for a request that could be sent to no endpoint: its token is put back, its slot is free. */
export function refund(schema: CompiledSchema, cell: FlowCounter): void {
  if (schema.kind === 'tokenBucket') returnToken(schema, cell)
  else release(schema, cell)
}

/** Whole seconds, at least 1, until the limit can admit a request again. */
export function retryAfterSeconds(schema: CompiledSchema, cell: FlowCounter, nowMs: number): number {
  if (schema.kind !== 'tokenBucket') return 1
  return Math.min(Math.max(Math.ceil(secondsToToken(schema, cell, nowMs)), 1), MAX_RETRY_AFTER_SECONDS)
}

/** Puts a changed limit in force. Counters need nothing: they compare with the new maximum from now on. */
export function resize(previous: CompiledSchema, next: CompiledSchema, cell: FlowCounter, nowMs: number): void {
  if (previous.kind === 'tokenBucket' && next.kind === 'tokenBucket') resizeBucket(previous, next, cell, nowMs)
}

/** Whole tokens at hand, as far as a look without the lock can tell; 0 for limits that have none. */
export function tokensLeft(schema: CompiledSchema, cell: FlowCounter, nowMs: number): number {
  return schema.kind === 'tokenBucket' ? tokensInBucket(schema, cell, nowMs) : 0
}

/** Whether a new cell would admit exactly what this one does, so that forgetting it costs nothing. */
export function isIdle(schema: CompiledSchema, cell: FlowCounter, nowMs: number): boolean {
  if (requestsInFlight(cell) !== 0 || openWatches(cell) !== 0) return false
  return schema.kind !== 'tokenBucket' || tokensInBucket(schema, cell, nowMs) >= schema.burst
}

/** Makes an idle cell that of somebody else; false when it is not idle, or in use just now. */
export function tryReassign(
  schema: CompiledSchema,
  cell: FlowCounter,
  low: number,
  high: number,
  nowMs: number,
): boolean {
  if (!isIdle(schema, cell, nowMs) || !tryLockCounter(cell)) return false
  const idle = isIdle(schema, cell, nowMs)
  if (idle) assignCounter(cell, low, high)
  unlockCounter(cell)
  return idle
}
