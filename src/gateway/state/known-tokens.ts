// Recently accepted bearer tokens, in memory shared by all threads. Each token is still reviewed when due, but a client that
// presents one is not guessing. A table of bounded size; a new token may replace an old one.

/** Two words each: a hit means that at least 63 bits of a SHA-256 are equal. */
const SLOTS = 16_384
const WORDS = 2

export class KnownTokens {
  readonly #memory: Int32Array<SharedArrayBuffer>

  /** @param memory from `KnownTokens.allocate` */
  constructor(memory: Int32Array<SharedArrayBuffer>) {
    this.#memory = memory
  }

  static allocate(): Int32Array<SharedArrayBuffer> {
    return new Int32Array(new SharedArrayBuffer(SLOTS * WORDS * Int32Array.BYTES_PER_ELEMENT))
  }

  /** @param hash SHA-256 in hexadecimal */
  add(hash: string): void {
    const [slot, first, second] = placeOf(hash)
    // Another thread may write the same slot in between: then neither is known.
    Atomics.store(this.#memory, slot, first)
    Atomics.store(this.#memory, slot + 1, second)
  }

  has(hash: string): boolean {
    const [slot, first, second] = placeOf(hash)
    return Atomics.load(this.#memory, slot) === first && Atomics.load(this.#memory, slot + 1) === second
  }
}

function placeOf(hash: string): readonly [number, number, number] {
  const word = (at: number): number => Number.parseInt(hash.slice(at, at + 8), 16) | 0
  // No token equals an empty slot.
  return [(word(16) & (SLOTS - 1)) * WORDS, word(0) | 1, word(8)]
}
