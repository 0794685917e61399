// A one-word lock in shared memory: Drepper's futex mutex ("Futexes are tricky", section 6), whose word also names the owner, so that the
// lock of a dead thread can be released. Uncontended, it makes no system call.

const FREE = 0
/** There are waiters: unlock must wake one. The bits above hold the owner's number plus one. */
const CONTENDED = 1
const WAIT_MS = 10
/** The thread pool releases the locks of a dead thread. Failing that, the lock is taken over after a second. */
const WAITS = 100

/** `owner` is a small number, different for each thread. */
export function lock(words: Int32Array<SharedArrayBuffer>, at: number, owner: number): void {
  if (tryLock(words, at, owner)) return
  const mine = ((owner + 1) << 1) | CONTENDED
  for (let waits = 0; waits < WAITS; ) {
    const seen = Atomics.load(words, at)
    if (seen === FREE) {
      // Taken as contended: other waiters are not known here.
      if (Atomics.compareExchange(words, at, FREE, mine) === FREE) return
      continue
    }
    const marked = seen | CONTENDED
    if (seen !== marked && Atomics.compareExchange(words, at, seen, marked) !== seen) continue
    if (Atomics.wait(words, at, marked, WAIT_MS) === 'timed-out') waits++
  }
  Atomics.store(words, at, mine)
}

/** Takes the lock if it is free; never waits. */
export function tryLock(words: Int32Array<SharedArrayBuffer>, at: number, owner: number): boolean {
  return Atomics.compareExchange(words, at, FREE, (owner + 1) << 1) === FREE
}

export function unlock(words: Int32Array<SharedArrayBuffer>, at: number): void {
  if ((Atomics.exchange(words, at, FREE) & CONTENDED) !== 0) Atomics.notify(words, at, 1)
}

/** Releases the lock if `owner`, which has died, holds it. */
export function openLockOf(words: Int32Array<SharedArrayBuffer>, at: number, owner: number): void {
  const held = (owner + 1) << 1
  for (;;) {
    const seen = Atomics.load(words, at)
    if ((seen & ~CONTENDED) !== held) return
    if (Atomics.compareExchange(words, at, seen, FREE) !== seen) continue
    Atomics.notify(words, at)
    return
  }
}
