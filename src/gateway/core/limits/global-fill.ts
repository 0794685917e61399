// Main-thread side of a shared limit's account (global-account.ts), and which of the two limits refused a request.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { type FlowCounter, lockCounter, unlockCounter } from './flow-counter.ts'
import { type GlobalAccount, storeSlots, storeTokens, tokensAtHand } from './global-account.ts'
import { requestsInFlight } from './in-flight.ts'

const MOST_TOKENS = 2 ** 30

/** Adds tokens; a negative number removes at most what is there and adds no debt. @returns the actual change */
export function changeTokens(counter: FlowCounter, account: GlobalAccount, by: number): number {
  lockCounter(counter)
  const before = tokensAtHand(account)
  const after = Math.min(Math.max(before + by, Math.min(before, 0)), MOST_TOKENS)
  storeTokens(account, after)
  unlockCounter(counter)
  return after - before
}

/** Sets the maximum number of concurrent requests. @returns how many are running; from now on no more than `slots` are admitted */
export function setSlots(counter: FlowCounter, account: GlobalAccount, slots: number): number {
  lockCounter(counter)
  storeSlots(account, slots)
  const running = requestsInFlight(counter)
  unlockCounter(counter)
  return running
}

/** Whether the shared limit refuses a request now, rather than the local one. */
export function refusedByAll(schema: CompiledSchema, counter: FlowCounter, seats = 1): boolean {
  const { account } = counter
  if (schema.shared === undefined || account === undefined) return false
  if (schema.kind === 'tokenBucket') return tokensAtHand(account) <= 0
  return requestsInFlight(counter) + seats <= schema.max
}
