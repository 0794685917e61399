// Output: frames are written one after the other into pooled memory. Bodies are copied: that costs less than
// keeping the memory in which they arrived until the socket has taken them.

import { releaseSlab, takeSlab } from './slabs.ts'

const NOTHING = Buffer.alloc(0)

export class Output {
  /** Where the next bytes go; valid after `reserve`. */
  buffer: Buffer = NOTHING
  at = 0
  /** Bytes that `take` would return. */
  bytes = 0
  /** Finished parts of slabs, the slabs, and the ones taken but not written yet. */
  readonly #parts: Buffer[] = []
  readonly #full: Buffer[] = []
  readonly #taken: Buffer[] = []

  /** Makes room for `size` bytes, at most SLAB_BYTES, in one piece at `buffer[at]`. */
  reserve(size: number): void {
    if (this.buffer.length - this.at >= size) return
    this.#closePart()
    this.buffer = takeSlab()
  }

  /** `size` bytes have been written at `at`. */
  advance(size: number): void {
    this.at += size
    this.bytes += size
  }

  /** Copies a chunk, over as many slabs as it needs. */
  append(chunk: Buffer): void {
    const { length } = chunk
    for (let from = 0; from < length; ) {
      if (this.at === this.buffer.length) this.reserve(1)
      const size = Math.min(length - from, this.buffer.length - this.at)
      chunk.copy(this.buffer, this.at, from, from + size)
      this.advance(size)
      from += size
    }
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

  /** What was taken has been written: its memory can be reused. */
  release(): void {
    const taken = this.#taken
    for (let i = 0; i < taken.length; i++) releaseSlab(taken[i] ?? NOTHING)
    taken.length = 0
  }

  #closePart(): void {
    if (this.at > 0) this.#parts.push(this.at === this.buffer.length ? this.buffer : this.buffer.subarray(0, this.at))
    if (this.buffer.length > 0) this.#full.push(this.buffer)
    this.buffer = NOTHING
    this.at = 0
  }
}
