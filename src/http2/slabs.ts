// Memory for bytes on their way, used again and again by all connections of a thread: none is allocated for each message, and
// none of it has to be collected.

/** Of one piece. */
export const SLAB_BYTES: number = 32 * 1024
/** Pieces kept for use: 8 MiB. */
const MAX_POOLED = 256

const pool: Buffer[] = []

export function takeSlab(): Buffer {
  return pool.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES)
}

/** Nobody reads or writes it any more. */
export function releaseSlab(slab: Buffer): void {
  if (slab.length === SLAB_BYTES && pool.length < MAX_POOLED) pool.push(slab)
}
