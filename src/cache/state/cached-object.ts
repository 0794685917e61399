// An object in a gateway thread: what is selected by, and where its bytes are in memory that all threads share.

import type { JsonObjectBytes } from '../core/bytes/answers.ts'
import type { ObjectFacts } from '../core/bytes/object-facts.ts'

export class CachedObject implements JsonObjectBytes {
  /** namespace/name */
  readonly key: string
  readonly facts: ObjectFacts
  #segment: Buffer
  #offset: number
  readonly #length: number

  constructor(key: string, facts: ObjectFacts, segment: Buffer, offset: number, length: number) {
    this.key = key
    this.facts = facts
    this.#segment = segment
    this.#offset = offset
    this.#length = length
  }

  get bytes(): number {
    return this.#length
  }

  /** A view, as a watch has it. */
  get json(): Buffer {
    return this.#segment.subarray(this.#offset, this.#offset + this.#length)
  }

  moved(segment: Buffer, offset: number): void {
    this.#segment = segment
    this.#offset = offset
  }
}
