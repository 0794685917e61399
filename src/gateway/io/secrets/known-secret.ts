// A secret kept only for comparison.

import { timingSafeEqual } from 'node:crypto'

/**
 * Where a text is written to be compared: a loop over its characters would cost five times as much. Shared by all secrets of a thread, which compares one
 * at a time: memory of its own would cost each connection as much as the secret.
 */
const ASKED_BYTES = 72 * 1024
const ASKED: Buffer = Buffer.alloc(ASKED_BYTES)

/** Compares in constant time: timing reveals lengths, but not where two texts differ. */
export class KnownSecret {
  readonly #known: Buffer
  readonly #asked: Buffer

  /** @param text one character per byte, like field values */
  constructor(text: string) {
    this.#known = Buffer.from(text, 'latin1')
    const { length } = this.#known
    this.#asked = length <= ASKED_BYTES ? ASKED.subarray(0, length) : Buffer.alloc(length)
  }

  is(text: string): boolean {
    if (text.length !== this.#known.length) return false
    this.#asked.write(text, 'latin1')
    return timingSafeEqual(this.#asked, this.#known)
  }
}
