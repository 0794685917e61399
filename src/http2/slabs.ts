// Pooled memory for bytes in transit, shared by all connections of a thread: nothing is allocated per message, and
// nothing has to be garbage-collected.

import { DEFAULT_FRAME_BYTES, FRAME_HEADER_BYTES } from './frames.ts'

/** Size of one slab. */
export const SLAB_BYTES: number = 32 * 1024
/** Slabs kept in the pool: 8 MiB. */
const MAX_POOLED = 256
/** Memory for a frame that arrives in several pieces: the largest that we allow, with its header. */
export const FRAME_MEMORY_BYTES: number = DEFAULT_FRAME_BYTES + FRAME_HEADER_BYTES
/** Such pieces kept in the pool: 2 MiB. */
const MAX_POOLED_FRAMES = 128

/** Size of the first piece of a queued body, if it is short: most queues stay small. */
export const SHORT_BYTES = 2048
/** Such pieces kept in the pool: 128 KiB, for the few bodies split over two reads. */
const MAX_POOLED_SHORT = 64

/** What an upgraded connection gathers before it is written: one read of a socket. */
export const LARGE_SLAB_BYTES: number = 64 * 1024
/** Such slabs kept in the pool: 4 MiB. */
const MAX_POOLED_LARGE = 64

/** Pieces of memory of one size. */
class Pool {
  readonly #size: number
  readonly #most: number
  readonly #free: Buffer[] = []
  /** Pieces taken and not returned. */
  out = 0

  constructor(size: number, most: number) {
    this.#size = size
    this.#most = most
  }

  take(): Buffer {
    this.out++
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#size)
  }

  release(piece: Buffer): void {
    if (piece.length !== this.#size) return
    this.out--
    if (this.#free.length < this.#most) this.#free.push(piece)
  }
}

const slabs = new Pool(SLAB_BYTES, MAX_POOLED)
const frames = new Pool(FRAME_MEMORY_BYTES, MAX_POOLED_FRAMES)
const large = new Pool(LARGE_SLAB_BYTES, MAX_POOLED_LARGE)
const shorts = new Pool(SHORT_BYTES, MAX_POOLED_SHORT)

export function takeSlab(): Buffer {
  return slabs.take()
}

/** Returns an unused slab to the pool; ignores memory of another size. */
export function releaseSlab(slab: Buffer): void {
  slabs.release(slab)
}

export function takeLargeSlab(): Buffer {
  return large.take()
}

/** Like `releaseSlab`. */
export function releaseLargeSlab(slab: Buffer): void {
  large.release(slab)
}

export function takeShortMemory(): Buffer {
  return shorts.take()
}

/** Like `releaseSlab`. */
export function releaseShortMemory(memory: Buffer): void {
  shorts.release(memory)
}

export function takeFrameMemory(): Buffer {
  return frames.take()
}

/** Like `releaseSlab`. */
export function releaseFrameMemory(memory: Buffer): void {
  frames.release(memory)
}

/** Pieces in use, of both sizes: those of connections lost while writing are never returned. */
export function piecesInUse(): { readonly slabs: number; readonly frames: number } {
  return { slabs: slabs.out, frames: frames.out }
}
