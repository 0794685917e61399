// What is held of a limit: requests in flight and open watches, counted by each thread in a column of its own.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, isOwn, lockCounter, requestColumns, unlockCounter, watchColumns } from './flow-counter.ts'
import { missSlot, slotsOf } from './global-account.ts'

const NO_CAP = 2 ** 31 - 1

/** Of all threads together. */
export function requestsInFlight(cell: FlowCounter): number {
  return sum(cell, requestColumns(cell))
}

/** Of all threads together. */
export function openWatches(cell: FlowCounter): number {
  return sum(cell, watchColumns(cell))
}

/** For a request. Where replicas share the limit, there has to be a slot in both. */
export function takeSlot(schema: CompiledSchema, cell: FlowCounter): boolean {
  const first = requestColumns(cell)
  if (schema.shared === undefined) return increment(cell, first, schema.max)
  const { account } = cell
  if (account === undefined) return false
  lockCounter(cell)
  const running = sum(cell, first)
  const admitted = running < schema.max && running < slotsOf(account)
  if (admitted) Atomics.add(cell.words, first + cell.thread, 1)
  else if (running < schema.max) missSlot(account)
  unlockCounter(cell)
  return admitted
}

/** The request is over. */
export function freeSlot(cell: FlowCounter): void {
  decrement(cell, requestColumns(cell))
}

/** Counts a watch that opens, whether or not there is a cap; false when the cap is reached. */
export function tryOpenWatch(schema: CompiledSchema, cell: FlowCounter): boolean {
  return increment(cell, watchColumns(cell), schema.maxWatches === 0 ? NO_CAP : schema.maxWatches)
}

export function closeWatch(_schema: CompiledSchema, cell: FlowCounter): void {
  decrement(cell, watchColumns(cell))
}

/** `first`: the column of thread 0. */
function sum(cell: FlowCounter, first: number): number {
  let total = 0
  for (let i = 0; i < cell.columns; i++) total += cell.words[first + i] ?? 0
  return total
}

/** Under the lock, because the sum and the step must be one. */
function increment(cell: FlowCounter, first: number, max: number): boolean {
  lockCounter(cell)
  const admitted = isOwn(cell) && sum(cell, first) < max
  if (admitted) Atomics.add(cell.words, first + cell.thread, 1)
  unlockCounter(cell)
  return admitted
}

/** Without the lock: nobody else writes this column, and a sum that still has the old value only refuses. */
function decrement(cell: FlowCounter, first: number): void {
  const at = first + cell.thread
  if (Atomics.load(cell.words, at) > 0) Atomics.sub(cell.words, at, 1)
}
