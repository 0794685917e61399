// How the main thread fills the account of a limit that replicas share (global-account.ts), and who refused.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, lockCounter, unlockCounter } from './flow-counter.ts'
import { type GlobalAccount, storeSlots, storeTokens, tokensAtHand } from './global-account.ts'
import { requestsInFlight } from './in-flight.ts'

const MOST_TOKENS = 2 ** 30

/** Adds tokens; less than 0 takes away, as far as there are any. @returns how many it has changed by */
export function changeTokens(cell: FlowCounter, account: GlobalAccount, by: number): number {
  lockCounter(cell)
  const before = tokensAtHand(account)
  const after = Math.min(Math.max(before + by, 0), MOST_TOKENS)
  storeTokens(account, after)
  unlockCounter(cell)
  return after - before
}

/** Sets how many requests may run at once. @returns how many run; no more are let in than `slots` from here on */
export function setSlots(cell: FlowCounter, account: GlobalAccount, slots: number): number {
  lockCounter(cell)
  storeSlots(account, slots)
  const running = requestsInFlight(cell)
  unlockCounter(cell)
  return running
}

/** Whether it is the shared limit that refuses a request now, and not the local one beside it. */
export function refusedByAll(schema: CompiledSchema, cell: FlowCounter): boolean {
  const { account } = cell
  if (schema.shared === undefined || account === undefined) return false
  if (schema.kind === 'tokenBucket') return tokensAtHand(account) <= 0
  return requestsInFlight(cell) < schema.max
}
