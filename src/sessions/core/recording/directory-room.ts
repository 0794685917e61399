// Room in the directory of recordings, divided among users as other resources are (kit/core/shares/shares.ts). All threads write there, and files
// outlive the process: who holds how much is in memory that the threads share, by the slot that is in the name of a user's files.

import { RESERVE_OF, type Taken, takenOf } from '../../../kit/core/shares/shares.ts'

/** Users are divided among so many, by a hash that they cannot choose. Two users in one slot have the share of one. */
export const USER_SLOTS = 4096
/** For files whose names have no slot. */
export const OTHER_SLOT: number = USER_SLOTS
const SLOTS = USER_SLOTS + 1

/** Changed by all threads. */
export interface RoomMemory {
  /** For each slot; then their sum. */
  readonly bytes: BigInt64Array<SharedArrayBuffer>
  /** For each slot that holds something, otherwise 0; then their sum. */
  readonly weights: Int32Array<SharedArrayBuffer>
}

export function allocateRoom(): RoomMemory {
  const length = SLOTS + 1
  return {
    bytes: new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT)),
    weights: new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT)),
  }
}

/** As one thread sees it. */
export class DirectoryRoom {
  readonly #memory: RoomMemory
  /** The reserve is included in the limit, not on top of it. */
  readonly #capacity: number

  /** @param maxBytes in the whole directory */
  constructor(memory: RoomMemory, maxBytes: number) {
    this.#memory = memory
    this.#capacity = maxBytes - Math.ceil(maxBytes / RESERVE_OF)
  }

  get held(): number {
    return this.#heldAt(SLOTS)
  }

  /** Whether a user of this slot would get so many bytes. */
  wouldTake(slot: number, weight: number, bytes: number): Taken {
    const own = this.#heldAt(slot)
    const others = Atomics.load(this.#memory.weights, SLOTS) - Atomics.load(this.#memory.weights, slot)
    return takenOf({ capacity: this.#capacity, held: this.held + bytes, own, others, weight, amount: bytes })
  }

  /** Takes all or nothing. Nothing is given back: `measured` finds what is gone. */
  take(slot: number, weight: number, bytes: number): Taken {
    const taken = this.wouldTake(slot, weight, bytes)
    if (taken !== 'taken') return taken
    this.#add(slot, BigInt(bytes))
    this.#weigh(slot, weight)
    return taken
  }

  /** What is held now, for `measured` after a measurement that begins now. */
  beforeMeasuring(): BigInt64Array {
    return this.#memory.bytes.slice()
  }

  /**
   * Corrects it by what a measurement found. What threads have taken in the meantime stays counted, even if it was measured, too.
   * @param found bytes of each slot
   */
  measured(before: BigInt64Array, found: Float64Array): void {
    for (let slot = 0; slot < SLOTS; slot++) {
      const more = BigInt(found[slot] ?? 0) - (before[slot] ?? 0n)
      if (more !== 0n) this.#add(slot, more)
      if (this.#heldAt(slot) <= 0) this.#weigh(slot, 0)
      else if (Atomics.load(this.#memory.weights, slot) === 0) this.#weigh(slot, 1)
    }
  }

  #heldAt(slot: number): number {
    return Number(Atomics.load(this.#memory.bytes, slot))
  }

  #add(slot: number, bytes: bigint): void {
    Atomics.add(this.#memory.bytes, slot, bytes)
    Atomics.add(this.#memory.bytes, SLOTS, bytes)
  }

  /** Whichever thread sets it in between: the sum is that of what is set. */
  #weigh(slot: number, weight: number): void {
    const { weights } = this.#memory
    if (Atomics.load(weights, slot) === weight) return
    Atomics.add(weights, SLOTS, weight - Atomics.exchange(weights, slot, weight))
  }
}

export function emptySlots(): Float64Array {
  return new Float64Array(SLOTS)
}
