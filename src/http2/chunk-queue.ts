// Bytes that wait, in the order in which they came. Small pieces are joined: a piece of its own costs more than a hundred
// bytes and keeps what it was cut from alive, so that a peer which sends byte by byte could fill the memory.

/** Pieces up to this size are copied behind each other. */
const JOIN_BYTES = 1024
const JOINED_BYTES = 4096
const COMPACT_AT = 64
const EMPTY = Buffer.alloc(0)

export class ChunkQueue {
  /** All bytes that wait. */
  bytes: number = 0
  readonly #chunks: Buffer[] = []
  #head = 0
  #headOffset = 0
  /** Where small pieces go, and how far it is filled; its filled part is the last chunk. */
  #joined: Buffer = EMPTY
  #filled = 0

  push(chunk: Buffer): void {
    const size = chunk.length
    if (size === 0) return
    this.bytes += size
    if (size > JOIN_BYTES) {
      this.#joined = EMPTY
      this.#chunks.push(chunk)
      return
    }
    if (this.#joined.length - this.#filled < size || this.#head === this.#chunks.length) {
      this.#joined = Buffer.allocUnsafeSlow(JOINED_BYTES)
      this.#filled = 0
      this.#chunks.push(EMPTY)
    }
    chunk.copy(this.#joined, this.#filled)
    this.#filled += size
    this.#chunks[this.#chunks.length - 1] = this.#joined.subarray(0, this.#filled)
  }

  /** The next bytes, at most `limit`; empty when nothing waits. */
  shift(limit: number): Buffer {
    const chunk = this.#chunks[this.#head]
    if (chunk === undefined) return EMPTY
    const left = chunk.length - this.#headOffset
    const size = left < limit ? left : limit
    const piece = chunk.subarray(this.#headOffset, this.#headOffset + size)
    this.bytes -= size
    if (size < left) {
      this.#headOffset += size
      return piece
    }
    this.#headOffset = 0
    this.#chunks[this.#head++] = EMPTY
    if (this.#head === this.#chunks.length || this.#head >= COMPACT_AT) {
      this.#chunks.splice(0, this.#head)
      this.#head = 0
    }
    return piece
  }

  /** Everything that waits, which goes on waiting. */
  pieces(): readonly Buffer[] {
    const pieces = this.#chunks.slice(this.#head)
    if (this.#headOffset > 0 && pieces[0] !== undefined) pieces[0] = pieces[0].subarray(this.#headOffset)
    return pieces
  }
}
