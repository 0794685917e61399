// Slots held under a limit: requests in flight and open watches, one column per thread.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, isOwn, lockCounter, requestColumns, unlockCounter, watchColumns } from './flow-counter.ts'
import { missSlot, slotsOf } from './global-account.ts'

const NO_CAP = 2 ** 31 - 1

/** Sum over all threads. */
export function requestsInFlight(counter: FlowCounter): number {
  return sum(counter, requestColumns(counter))
}

/** Sum over all threads. */
export function openWatches(counter: FlowCounter): number {
  return sum(counter, watchColumns(counter))
}

/** For a request. If replicas share the limit, both limits need a free slot. */
export function takeSlot(schema: CompiledSchema, counter: FlowCounter, seats = 1): boolean {
  const first = requestColumns(counter)
  if (schema.shared === undefined) return increment(counter, first, schema.max, seats)
  const { account } = counter
  if (account === undefined) return false
  lockCounter(counter)
  const running = sum(counter, first)
  const admitted = running + seats <= schema.max && running + seats <= slotsOf(account)
  if (admitted) Atomics.add(counter.words, first + counter.thread, seats)
  else if (running + seats <= schema.max) missSlot(account)
  unlockCounter(counter)
  return admitted
}

/** The request is over. */
export function freeSlot(counter: FlowCounter, seats = 1): void {
  decrement(counter, requestColumns(counter), seats)
}

/** Counts a watch that opens, whether or not there is a cap; false when the cap is reached. */
export function tryOpenWatch(schema: CompiledSchema, counter: FlowCounter): boolean {
  return increment(counter, watchColumns(counter), schema.maxWatches === 0 ? NO_CAP : schema.maxWatches, 1)
}

export function closeWatch(counter: FlowCounter): void {
  decrement(counter, watchColumns(counter), 1)
}

/** @param first the column of thread 0 */
function sum(counter: FlowCounter, first: number): number {
  let total = 0
  for (let i = 0; i < counter.columns; i++) total += counter.words[first + i] ?? 0
  return total
}

/** Under the lock: comparing the sum and adding to it must be atomic. */
function increment(counter: FlowCounter, first: number, max: number, by: number): boolean {
  lockCounter(counter)
  const admitted = isOwn(counter) && sum(counter, first) + by <= max
  if (admitted) Atomics.add(counter.words, first + counter.thread, by)
  unlockCounter(counter)
  return admitted
}

/** Without the lock: no other thread writes this column, and a sum that still has the old value only refuses. */
function decrement(counter: FlowCounter, first: number, by: number): void {
  const at = first + counter.thread
  const held = Atomics.load(counter.words, at)
  if (held > 0) Atomics.sub(counter.words, at, Math.min(by, held))
}
