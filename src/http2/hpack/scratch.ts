// Memory for short-lived large data: a header block while it is decoded or encoded, a string while it is unpacked. Shared by all
// connections of a thread: allocating it for each would make V8 collect the whole heap again and again.

/** Larger data gets its own memory: it is from an endpoint, or from a client whose limit was raised. */
const MAX_SCRATCH_BYTES = 2 * 1024 * 1024
const LEAST_BYTES = 64 * 1024

export class Scratch {
  #memory: Buffer = Buffer.alloc(0)

  /** At least `size` bytes, uninitialized; valid until the caller returns. */
  of(size: number): Buffer {
    if (size <= this.#memory.length) return this.#memory
    if (size > MAX_SCRATCH_BYTES) return Buffer.allocUnsafeSlow(size)
    this.#memory = Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, 2 ** Math.ceil(Math.log2(size))))
    return this.#memory
  }
}

/** For header blocks. */
export const blockScratch: Scratch = new Scratch()
