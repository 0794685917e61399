// How the main thread fills the account of a shared limit (global-account.ts), and which limit refused a request.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, lockCounter, unlockCounter } from './flow-counter.ts'
import { type GlobalAccount, storeSlots, storeTokens, tokensAtHand } from './global-account.ts'
import { requestsInFlight } from './in-flight.ts'

const MOST_TOKENS = 2 ** 30

/** Adds tokens; a negative number takes away as many as there are, and adds to no debt. @returns the actual change */
export function changeTokens(counter: FlowCounter, account: GlobalAccount, by: number): number {
  lockCounter(counter)
  const before = tokensAtHand(account)
  const after = Math.min(Math.max(before + by, Math.min(before, 0)), MOST_TOKENS)
  storeTokens(account, after)
  unlockCounter(counter)
  return after - before
}

/** Sets how many requests may run at once. @returns how many are running; from now on no more than `slots` are admitted */
export function setSlots(counter: FlowCounter, account: GlobalAccount, slots: number): number {
  lockCounter(counter)
  storeSlots(account, slots)
  const running = requestsInFlight(counter)
  unlockCounter(counter)
  return running
}

/** Whether the shared limit refuses a request now, rather than the local one beside it. */
export function refusedByAll(schema: CompiledSchema, counter: FlowCounter, seats = 1): boolean {
  const { account } = counter
  if (schema.shared === undefined || account === undefined) return false
  if (schema.kind === 'tokenBucket') return tokensAtHand(account) <= 0
  return requestsInFlight(counter) + seats <= schema.max
}
