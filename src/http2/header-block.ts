// A header block in several frames: HEADERS and CONTINUATION (RFC 9113 section 6.10). It is kept in pooled memory.

import { ChunkQueue } from './chunk-queue.ts'
import { blockScratch } from './hpack/scratch.ts'

/** Frames that any block may have. Where large blocks are allowed, one more for each of these octets. */
const MAX_CONTINUATIONS = 128
const CONTINUATION_BYTES = 8192

export class HeaderBlock {
  /** Its stream; 0 = no block is open. */
  stream = 0
  /** Whether its HEADERS frame has END_STREAM. */
  end = false
  sinceMs = 0
  readonly #pieces: ChunkQueue = new ChunkQueue()
  #frames = 0
  /** That were dropped. */
  #dropped = 0

  /** Octets so far, without those that were dropped. */
  get bytes(): number {
    return this.#pieces.bytes
  }

  /** Memory that it takes with so many octets more. */
  memoryWith(octets: number): number {
    return this.#pieces.memory + this.#pieces.growth(octets)
  }

  begin(stream: number, end: boolean, bytes: Buffer, from: number, to: number, nowMs: number): void {
    this.stream = stream
    this.end = end
    this.sinceMs = nowMs
    this.#frames = 0
    this.#dropped = 0
    this.#pieces.push(bytes.subarray(from, to))
  }

  /** False when there are too many frames, or more bytes than `maxBytes`. */
  add(bytes: Buffer, from: number, to: number, maxBytes: number): boolean {
    const maxFrames = Math.max(MAX_CONTINUATIONS, maxBytes / CONTINUATION_BYTES)
    if (++this.#frames > maxFrames || this.#dropped + this.#pieces.bytes + to - from > maxBytes) return false
    this.#pieces.push(bytes.subarray(from, to))
    return true
  }

  /** The first `bytes` of it are the block, in one piece; valid until it is cleared, or another one is asked for. */
  whole(): Buffer {
    const pieces = this.#pieces.pieces()
    const [first] = pieces
    if (first !== undefined && pieces.length === 1) return first
    const block = blockScratch.of(this.#pieces.bytes)
    let at = 0
    for (const piece of pieces) at += piece.copy(block, at)
    return block
  }

  /** The first octets of `whole()` are not needed any more. */
  drop(octets: number): void {
    const rest = Buffer.from(this.whole().subarray(octets, this.#pieces.bytes))
    this.#dropped += octets
    this.#pieces.clear()
    this.#pieces.push(rest)
  }

  /** None is open. */
  clear(): void {
    this.#pieces.clear()
    this.stream = 0
  }
}
