// Counts distinct things in the last minute, across threads: one bitmap per ten seconds, in which each thing sets one bit (linear counting:
// Whang, Vander-Zanden, Taylor, 1990). Accurate for small numbers, and of fixed size for large ones.

const SLOT_MS = 10_000
/** A minute, plus the slot being filled. */
const SLOTS = 7
/** Bits per slot. With all bits set the estimate is 15,000. */
const BITS = 2_048
const BITMAP_WORDS = BITS / 32
/** The slot's period number (ten-second periods since the epoch), then its bitmap. */
const SLOT_WORDS = 1 + BITMAP_WORDS

/** Words of memory that the functions need. */
export const DISTINCT_WORDS: number = SLOTS * SLOT_WORDS

/** @param hash of the thing; all of its bits are used */
export function countDistinct(words: Int32Array<SharedArrayBuffer>, at: number, hash: number, nowMs: number): void {
  const period = periodOf(nowMs)
  const slot = slotOf(at, period)
  const seen = Atomics.load(words, slot)
  // The first thread clears the slot; what another thread counts at that moment may be lost.
  if (seen !== period && Atomics.compareExchange(words, slot, seen, period) === seen) {
    for (let i = 1; i < SLOT_WORDS; i++) Atomics.store(words, slot + i, 0)
  }
  const bit = (hash >>> 0) % BITS
  Atomics.or(words, slot + 1 + (bit >>> 5), 1 << (bit & 31))
}

/** Estimate for the last 60 to 70 seconds. */
export function distinctInLastMinute(words: Int32Array<SharedArrayBuffer>, at: number, nowMs: number): number {
  const period = periodOf(nowMs)
  let set = 0
  for (let i = 0; i < BITMAP_WORDS; i++) {
    let union = 0
    for (let back = 0; back < SLOTS; back++) {
      const slot = slotOf(at, period - back)
      if (Atomics.load(words, slot) === period - back) union |= Atomics.load(words, slot + 1 + i)
    }
    set += bitsIn(union)
  }
  return Math.round(BITS * Math.log(BITS / (BITS - Math.min(set, BITS - 1))))
}

/** Fits into int32 until the year 2650. */
function periodOf(nowMs: number): number {
  return Math.floor(nowMs / SLOT_MS)
}

function slotOf(at: number, period: number): number {
  return at + (((period % SLOTS) + SLOTS) % SLOTS) * SLOT_WORDS
}

function bitsIn(word: number): number {
  let rest = word
  let bits = 0
  for (; rest !== 0; rest &= rest - 1) bits++
  return bits
}
