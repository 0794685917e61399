// Memory for what is large only for a moment: a header block while it is decoded or encoded, a string while it is unpacked. All connections of
// a thread share it: memory of its own for each would make V8 collect the whole heap again and again.

/** What is larger gets memory of its own: it is of an endpoint, or of a client that may send more than by default. */
const MAX_SCRATCH_BYTES = 2 * 1024 * 1024
const LEAST_BYTES = 64 * 1024

export class Scratch {
  #memory: Buffer = Buffer.alloc(0)

  /** At least `size` bytes, whatever is in them; the caller's until it returns to whoever called it. */
  of(size: number): Buffer {
    if (size <= this.#memory.length) return this.#memory
    if (size > MAX_SCRATCH_BYTES) return Buffer.allocUnsafeSlow(size)
    this.#memory = Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, 2 ** Math.ceil(Math.log2(size))))
    return this.#memory
  }
}

/** For header blocks. */
export const blockScratch: Scratch = new Scratch()
