// What one replica may take of a limit that all replicas share, in memory of all its threads: tokens and slots that the
// main thread has got for it. Requests take from here as from a local limit and wait for nobody; the main thread tops it up.

/** The words of one limit. Changed under the lock of its FlowCounter, but for the counters, which only grow. */
export type GlobalAccount = Int32Array<SharedArrayBuffer>

/** Whole tokens at hand. */
const TOKENS = 0
/** Most requests of this replica at once. */
const SLOTS = 1
/** Tokens taken by requests, and requests that found none (of either kind); modulo 2^32. */
const TAKEN = 2
const MISSED = 3
const WORDS = 4

/** Nothing in it: whoever fills it decides from when on requests pass. */
export function createGlobalAccount(): GlobalAccount {
  return new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT))
}

/** For a request, under the lock of the cell. */
export function takeFromAccount(account: GlobalAccount): boolean {
  if (Atomics.load(account, TOKENS) <= 0) {
    Atomics.add(account, MISSED, 1)
    return false
  }
  Atomics.sub(account, TOKENS, 1)
  Atomics.add(account, TAKEN, 1)
  return true
}

/** A token that was taken for nothing, under the lock of the cell. */
export function returnToAccount(account: GlobalAccount): void {
  Atomics.add(account, TOKENS, 1)
  Atomics.sub(account, TAKEN, 1)
}

/** How many requests of this replica may run at once. */
export function slotsOf(account: GlobalAccount): number {
  return Atomics.load(account, SLOTS)
}

/** A request found no slot. */
export function missSlot(account: GlobalAccount): void {
  Atomics.add(account, MISSED, 1)
}

export function tokensAtHand(account: GlobalAccount): number {
  return Atomics.load(account, TOKENS)
}

/** Under the lock of the cell. */
export function storeTokens(account: GlobalAccount, tokens: number): void {
  Atomics.store(account, TOKENS, tokens)
}

/** Under the lock of the cell. */
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
