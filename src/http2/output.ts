// Bytes on their way out: frames are written one behind the other into pooled memory; large bodies join by reference.

/** Frames and small bodies are gathered in pieces of this size. */
const SLAB_BYTES = 32 * 1024
/** Memory kept for reuse by all connections of a thread: 2 MiB. */
const MAX_POOLED = 64
/** A body chunk up to this size is copied: cheaper than a write of its own. */
export const COPY_BYTES = 4096

const pool: Buffer[] = []

function takeSlab(): Buffer {
  return pool.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES)
}

export class Output {
  /** Where the next bytes go; valid after `reserve`. */
  buffer: Buffer = NOTHING
  at = 0
  /** Bytes that `take` would give. */
  bytes = 0
  #start = 0
  #slab: Buffer | undefined
  readonly #parts: Buffer[] = []
  /** Slabs whose bytes are in #parts, and those that were taken and are not written yet. */
  readonly #full: Buffer[] = []
  readonly #taken: Buffer[] = []

  /** Makes room for `size` bytes in one piece at `buffer[at]`. */
  reserve(size: number): void {
    if (this.buffer.length - this.at >= size) return
    this.#closePart()
    if (size > SLAB_BYTES) {
      // A memory of its own, which is not reused.
      this.#slab = undefined
      this.buffer = Buffer.allocUnsafeSlow(size)
    } else {
      this.#slab = takeSlab()
      this.buffer = this.#slab
    }
    this.at = 0
    this.#start = 0
  }

  /** `size` bytes have been written at `at`. */
  advance(size: number): void {
    this.at += size
    this.bytes += size
  }

  /** Appends a chunk that nobody changes any more. */
  append(chunk: Buffer): void {
    if (chunk.length <= COPY_BYTES) {
      this.reserve(chunk.length)
      this.buffer.set(chunk, this.at)
      this.advance(chunk.length)
      return
    }
    if (this.at > this.#start) {
      this.#parts.push(this.buffer.subarray(this.#start, this.at))
      this.#start = this.at
    }
    this.#parts.push(chunk)
    this.bytes += chunk.length
  }

  /** Moves everything to `into`. The memory belongs to the reader until `release`. */
  take(into: Buffer[]): void {
    this.#closePart()
    for (let i = 0; i < this.#parts.length; i++) into.push(this.#parts[i] ?? NOTHING)
    this.#parts.length = 0
    for (let i = 0; i < this.#full.length; i++) this.#taken.push(this.#full[i] ?? NOTHING)
    this.#full.length = 0
    this.bytes = 0
  }

  /** What was taken has been written: its memory can be used again. */
  release(): void {
    const taken = this.#taken
    for (let i = 0; i < taken.length; i++) if (pool.length < MAX_POOLED) pool.push(taken[i] ?? NOTHING)
    taken.length = 0
  }

  #closePart(): void {
    if (this.at > this.#start) this.#parts.push(this.buffer.subarray(this.#start, this.at))
    if (this.#slab !== undefined) this.#full.push(this.#slab)
    this.#slab = undefined
    this.buffer = NOTHING
    this.at = 0
    this.#start = 0
  }
}

const NOTHING = Buffer.alloc(0)
