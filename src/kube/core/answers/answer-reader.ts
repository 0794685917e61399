// The one way to read responses to the gateway's own calls: bytes are counted and charged as they arrive, values are counted before they
// are parsed. Fed by every transport.

import type { CountLimits } from './answer-limits.ts'
import { BodyPieces } from './body-pieces.ts'
import { AnswerTooLargeError } from './call-errors.ts'
import { countJson } from './count-json.ts'

/** The memory account of a response, on behalf of the caller. */
export interface AnswerMemory {
  /** @returns false if there is no room */
  take(bytes: number): boolean
  /** @param bytes as many as were taken */
  give(bytes: number): void
}

/** too-large: any other server's response would be too; a page of fewer objects may fit. no-room: there may be room later. */
type AnswerFault = 'too-large' | 'no-room'

/** A response being received. One of `counted`, `whole`, `text` and `drop` must be called at the end. */
export class AnswerReader {
  readonly #maxBytes: number
  readonly #memory: AnswerMemory
  readonly #pieces = new BodyPieces()
  #bytes = 0

  constructor(maxBytes: number, memory: AnswerMemory) {
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  /** Received and charged so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Copies the chunk. undefined = continue; otherwise the chunk was refused, and the earlier ones are still held. */
  add(chunk: Buffer): AnswerFault | undefined {
    const { length } = chunk
    if (length === 0) return undefined
    if (this.#bytes + length > this.#maxBytes) return 'too-large'
    if (!this.#memory.take(length)) return 'no-room'
    this.#bytes += length
    this.#pieces.add(chunk)
    return undefined
  }

  /**
   * The whole text, safe to parse. It is no longer charged: what one turn creates from it is garbage afterwards, and process/core/memory/ceiling.ts
   * counts it once per thread. Charge separately for anything kept longer.
   * @param seed see countJson
   * @throws {AnswerTooLargeError} if parsing it would exceed the limits
   */
  counted(limits: CountLimits, seed: number): string {
    return this.countedBytes(limits, seed).toString('utf8')
  }

  /** Its bytes. Otherwise as `counted`. */
  countedBytes(limits: CountLimits, seed: number): Buffer {
    const json = this.whole()
    const excess = countJson(json, limits, seed)
    if (excess !== undefined) throw new AnswerTooLargeError(excess)
    return json
  }

  /** All bytes, not to be parsed as JSON: nothing has been counted. */
  whole(): Buffer {
    const pieces = this.#pieces.take()
    const [only] = pieces
    const bytes = only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces)
    this.drop()
    return bytes
  }

  drop(): void {
    this.#pieces.clear()
    const bytes = this.#bytes
    this.#bytes = 0
    if (bytes > 0) this.#memory.give(bytes)
  }
}
