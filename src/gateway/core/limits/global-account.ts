// What this replica may take of a limit shared by all replicas: tokens and slots fetched by the main thread, in memory shared by all
// threads. Requests take from it as from a local limit and never wait; the main thread refills it.

/** The words of one limit. Changed under the lock of its FlowCounter, except TAKEN and MISSED, which only grow. */
export type GlobalAccount = Int32Array<SharedArrayBuffer>

/** Whole tokens left; negative = a request took more than were available, and the debt is still to be fetched. */
const TOKENS = 0
/** Maximum number of concurrent requests on this replica. */
const SLOTS = 1
/** Tokens taken by requests, and requests that found no token or slot; modulo 2^32. */
const TAKEN = 2
const MISSED = 3
const WORDS = 4

/** Empty: no request passes until it is filled. */
export function createGlobalAccount(): GlobalAccount {
  return new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT))
}

/**
 * For a request, under the lock of the counter. One token is enough: a replica never holds the whole burst, so a request of many seats
 * would never pass. The shortfall becomes a debt, and others pass once it has been fetched.
 */
export function takeFromAccount(account: GlobalAccount, seats = 1): boolean {
  if (Atomics.load(account, TOKENS) <= 0) {
    Atomics.add(account, MISSED, seats)
    return false
  }
  Atomics.sub(account, TOKENS, seats)
  Atomics.add(account, TAKEN, seats)
  return true
}

/** Returns unused tokens, under the lock of the counter. */
export function returnToAccount(account: GlobalAccount, seats = 1): void {
  Atomics.add(account, TOKENS, seats)
  Atomics.sub(account, TAKEN, seats)
}

/** Maximum number of concurrent requests on this replica. */
export function slotsOf(account: GlobalAccount): number {
  return Atomics.load(account, SLOTS)
}

/** Records a request that found no slot. */
export function missSlot(account: GlobalAccount): void {
  Atomics.add(account, MISSED, 1)
}

export function tokensAtHand(account: GlobalAccount): number {
  return Atomics.load(account, TOKENS)
}

/** Under the lock of the counter. */
export function storeTokens(account: GlobalAccount, tokens: number): void {
  Atomics.store(account, TOKENS, tokens)
}

/** Under the lock of the counter. */
export function storeSlots(account: GlobalAccount, slots: number): void {
  Atomics.store(account, SLOTS, slots)
}

/** Modulo 2^32: subtract with `| 0`. */
export function tokensTaken(account: GlobalAccount): number {
  return Atomics.load(account, TAKEN)
}

/** Modulo 2^32: subtract with `| 0`. */
export function requestsMissed(account: GlobalAccount): number {
  return Atomics.load(account, MISSED)
}
