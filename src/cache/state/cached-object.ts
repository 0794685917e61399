// An object in a gateway thread: what is selected by, and where its bytes are in memory that all threads share.

import type { KeptObject } from '../core/bytes/answer-form.ts'
import type { KeptFacts } from '../core/bytes/read-encoding.ts'

export class CachedObject implements KeptObject {
  /** namespace/name */
  readonly key: string
  readonly facts: KeptFacts
  #memory: Buffer
  #offset: number
  readonly #length: number

  constructor(key: string, facts: KeptFacts, segment: Buffer, offset: number, length: number) {
    this.key = key
    this.facts = facts
    this.#memory = segment
    this.#offset = offset
    this.#length = length
  }

  get bytes(): number {
    return this.#length
  }

  get memory(): Buffer {
    return this.#memory
  }

  get offset(): number {
    return this.#offset
  }

  /** A view, as a watch has it. */
  get content(): Buffer {
    return this.#memory.subarray(this.#offset, this.#offset + this.#length)
  }

  moved(segment: Buffer, offset: number): void {
    this.#memory = segment
    this.#offset = offset
  }
}
