// A secret kept only for comparison.

import { timingSafeEqual } from 'node:crypto'

/** Compares in constant time: timing reveals lengths, but not where two texts differ. */
export class KnownSecret {
  readonly #known: Buffer
  /** Buffer for the text to compare: a loop over the characters would cost five times as much. */
  readonly #asked: Buffer

  /** @param text one character per byte, like field values */
  constructor(text: string) {
    this.#known = Buffer.from(text, 'latin1')
    this.#asked = Buffer.alloc(this.#known.length)
  }

  is(text: string): boolean {
    if (text.length !== this.#known.length) return false
    this.#asked.write(text, 'latin1')
    return timingSafeEqual(this.#asked, this.#known)
  }
}
