// A secret that is remembered only to be recognised.

import { timingSafeEqual } from 'node:crypto'

/** Compares in a time that tells nothing of where two texts differ; only their lengths show. */
export class KnownSecret {
  readonly #known: Buffer
  /** What is compared is written here: a loop over the characters would cost five times as much. */
  readonly #asked: Buffer

  /** @param text one character a byte, as field values are */
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
