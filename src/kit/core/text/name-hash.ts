// A keyed hash of user names, for tables in shared memory. Without the key, colliding names can't be chosen (HalfSipHash-2-4 with 64 bits
// of output: Aumasson, Bernstein, "SipHash: a fast short-input PRF").

/** The key: two random words, the same in all threads. */
export type HashSeed = readonly [low: number, high: number]

const COMPRESSION_ROUNDS = 2
const FINAL_ROUNDS = 4

/** Hashes one name at a time; the result is in `low` and `high` until the next. Allocates nothing. */
export class NameHash {
  /** int32, never 0 together with `high`. */
  low = 0
  high = 0
  readonly #key0: number
  readonly #key1: number

  constructor([key0, key1]: HashSeed) {
    this.#key0 = key0 | 0
    this.#key1 = key1 | 0
  }

  hash(name: string): void {
    const length = name.length
    // Two code units per word; the last word contains the length, which distinguishes names that are padded to the same words.
    const words = (length >> 1) + 1
    let v0 = this.#key0
    let v1 = this.#key1 ^ 0xee
    let v2 = 0x6c796765 ^ this.#key0
    let v3 = 0x74656462 ^ this.#key1
    for (let step = 0; step < words + 2; step++) {
      let word = 0
      let rounds = FINAL_ROUNDS
      if (step < words) {
        const at = step * 2
        word = (at < length ? name.charCodeAt(at) : 0) | ((at + 1 < length ? name.charCodeAt(at + 1) : length) << 16)
        v3 ^= word
        rounds = COMPRESSION_ROUNDS
      } else if (step === words) {
        v2 ^= 0xee
      } else {
        this.low = v1 ^ v3
        v1 ^= 0xdd
      }
      for (; rounds > 0; rounds--) {
        v0 = (v0 + v1) | 0
        v1 = rotate(v1, 5) ^ v0
        v0 = rotate(v0, 16)
        v2 = (v2 + v3) | 0
        v3 = rotate(v3, 8) ^ v2
        v0 = (v0 + v3) | 0
        v3 = rotate(v3, 7) ^ v0
        v2 = (v2 + v1) | 0
        v1 = rotate(v1, 13) ^ v2
        v2 = rotate(v2, 16)
      }
      v0 ^= word
    }
    this.high = v1 ^ v3
    if (this.low === 0 && this.high === 0) this.low = 1
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}
