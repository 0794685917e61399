// Pooled memory for bytes in transit, shared by all connections of a thread: nothing is allocated per message, and
// nothing has to be garbage-collected.

/** Size of one slab. */
export const SLAB_BYTES: number = 32 * 1024
/** Slabs kept in the pool: 8 MiB. */
const MAX_POOLED = 256

const pool: Buffer[] = []

export function takeSlab(): Buffer {
  return pool.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES)
}

/** Returns a slab that nobody reads or writes any more. */
export function releaseSlab(slab: Buffer): void {
  if (slab.length === SLAB_BYTES && pool.length < MAX_POOLED) pool.push(slab)
}
