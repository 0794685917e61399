// Joins and cuts what is sent into pieces of a size that streams like: a client that takes nothing has a few of them waiting, whatever the size
// of an object.

import type { PartReader } from '../core/bytes/part-reader.ts'
import { DEFLATED_BYTES } from '../io/gzip-source.ts'

/** One write's worth; a piece has less than twice as much. */
export const PIECE_BYTES: number = 32 * 1024
/** What stands around objects, mostly: to copy so little byte by byte takes less time than to call what copies. */
const SHORT_BYTES = 16
/** Where parts are joined: streams copy what they are given, so all answers of a thread can use the same memory. */
const JOINED = Buffer.allocUnsafeSlow(2 * DEFLATED_BYTES)

export class Pieces {
  readonly #pieceBytes: number
  #rest: Buffer | undefined

  /** @param pieceBytes at most DEFLATED_BYTES */
  constructor(pieceBytes: number = PIECE_BYTES) {
    this.#pieceBytes = pieceBytes
  }

  /** What was taken has not all been returned. */
  get hasRest(): boolean {
    return this.#rest !== undefined
  }

  /** @returns valid until the next call for any answer; undefined = there was none */
  next(parts: PartReader): Buffer | undefined {
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined && rest.length > this.#pieceBytes) return this.#cut(rest)
    let bytes = rest === undefined ? 0 : rest.copy(JOINED)
    let isEmpty = rest === undefined
    while (bytes < this.#pieceBytes || parts.isOpen) {
      if (!parts.next()) return isEmpty ? undefined : JOINED.subarray(0, bytes)
      const { memory, start, end } = parts
      if (end - start > this.#pieceBytes) {
        const large = memory.subarray(start, end)
        if (isEmpty) return this.#cut(large)
        this.#rest = large
        break
      }
      isEmpty = false
      bytes = join(bytes, memory, start, end)
    }
    return JOINED.subarray(0, bytes)
  }

  #cut(large: Buffer): Buffer {
    this.#rest = large.subarray(this.#pieceBytes)
    return large.subarray(0, this.#pieceBytes)
  }
}

/** @returns where the next part goes */
function join(at: number, memory: Buffer, start: number, end: number): number {
  // Not by `set`, which takes several times as long where the source is shared memory.
  if (end - start > SHORT_BYTES) return at + memory.copy(JOINED, at, start, end)
  for (let from = start; from < end; from++) JOINED[at++] = memory[from] ?? 0
  return at
}
