// The one way to read what another machine answers to a call of the gateway's own: its bytes are counted and charged while they come, its values
// are counted before they are parsed. Whoever reads from a connection feeds it, over whatever transport.

import type { CountLimits } from './answer-limits.ts'
import { BodyPieces } from './body-pieces.ts'
import { AnswerTooLargeError } from './call-errors.ts'
import { countJson } from './count-json.ts'

/** Where the memory of an answer is taken from, on behalf of whoever the call is made for. */
export interface AnswerMemory {
  /** False = there is no room for them. */
  take(bytes: number): boolean
  /** @param bytes as many as were taken */
  give(bytes: number): void
}

/** too-large: so is what any other server would answer; a page of fewer objects may be smaller. no-room: later there may be. */
export type AnswerFault = 'too-large' | 'no-room'

/** An answer that comes. One of `counted`, `text` and `drop` has to be called at the end. */
export class AnswerReader {
  readonly #maxBytes: number
  readonly #memory: AnswerMemory
  readonly #pieces = new BodyPieces()
  #bytes = 0

  constructor(maxBytes: number, memory: AnswerMemory) {
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  /** That have come, and are charged. */
  get bytes(): number {
    return this.#bytes
  }

  /** Copies it. Undefined = go on; otherwise it is not taken, and what came before is still held. */
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
   * All of it, and it may be parsed. It is not charged any more: what a turn makes of it is garbage when the turn is over, and process/core/memory/ceiling.ts
   * counts it once for each thread. Whoever keeps something of it longer charges that.
   * @param seed as of countJson
   * @throws {AnswerTooLargeError} when parsing it would cost more than the limits allow
   */
  counted(limits: CountLimits, seed: number): string {
    const json = Buffer.concat(this.#pieces.take())
    this.drop()
    const excess = countJson(json, limits, seed)
    if (excess !== undefined) throw new AnswerTooLargeError(excess)
    return json.toString('utf8')
  }

  /** All of it, for people. As `counted` otherwise. */
  text(): string {
    const text = Buffer.concat(this.#pieces.take()).toString('utf8')
    this.drop()
    return text
  }

  drop(): void {
    this.#pieces.clear()
    const bytes = this.#bytes
    this.#bytes = 0
    if (bytes > 0) this.#memory.give(bytes)
  }
}
