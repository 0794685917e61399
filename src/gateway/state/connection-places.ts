// Client connections per gateway thread, in memory shared by all threads. A new connection takes a place here
// before it reaches its thread, so that threads accepting at the same moment don't all choose the same one.

import { placeConnection, type ThreadLoad } from '../core/balance/thread-load.ts'

/** A place taken in a thread. */
export interface ConnectionPlace {
  readonly thread: number
  /** Incarnation of the thread at this index: the places of a dead one are void. */
  readonly life: number
}

const WORDS = 4
const COUNT = 0
const OPEN = 1
const RATE = 2
const BEAT = 3
/** Low bits hold the count; the rest is the life. */
const COUNT_BITS = 20
const COUNT_MASK = 2 ** COUNT_BITS - 1
const LIVES = 2 ** (31 - COUNT_BITS)

export class ConnectionPlaces {
  readonly memory: Int32Array<SharedArrayBuffer>
  readonly threads: number

  /** @param memory of another thread, or from `ConnectionPlaces.allocate` */
  constructor(memory: Int32Array<SharedArrayBuffer>) {
    this.memory = memory
    this.threads = memory.length / WORDS
  }

  static allocate(threads: number): Int32Array<SharedArrayBuffer> {
    return new Int32Array(new SharedArrayBuffer(threads * WORDS * Int32Array.BYTES_PER_ELEMENT))
  }

  /** Takes a place in the thread that a new connection is assigned to: `own`, or an open one accepted by `reachable`. */
  take(own: number, reachable: (thread: number) => boolean): ConnectionPlace {
    const loads: (ThreadLoad | undefined)[] = []
    for (;;) {
      for (let thread = 0; thread < this.threads; thread++) {
        const usable = thread === own || (this.isOpen(thread) && reachable(thread))
        loads[thread] = usable ? this.load(thread) : undefined
      }
      const thread = placeConnection(loads, own)
      const seen = loads[thread]?.connections ?? 0
      const word = Atomics.load(this.memory, thread * WORDS + COUNT)
      // Another thread was faster: retry.
      if ((word & COUNT_MASK) !== seen) continue
      if (this.#swap(thread, word, word + 1)) return { thread, life: word >> COUNT_BITS }
    }
  }

  /** Returns a place; no effect if the thread has died since. */
  release({ thread, life }: ConnectionPlace): void {
    for (;;) {
      const word = Atomics.load(this.memory, thread * WORDS + COUNT)
      if (word >> COUNT_BITS !== life || (word & COUNT_MASK) === 0) return
      if (this.#swap(thread, word, word - 1)) return
    }
  }

  #swap(thread: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.memory, thread * WORDS + COUNT, from, to) === from
  }

  /** Current life of the thread. */
  lifeOf(thread: number): number {
    return Atomics.load(this.memory, thread * WORDS + COUNT) >> COUNT_BITS
  }

  load(thread: number): ThreadLoad {
    return {
      connections: Atomics.load(this.memory, thread * WORDS + COUNT) & COUNT_MASK,
      requestRate: Atomics.load(this.memory, thread * WORDS + RATE),
    }
  }

  /** Loads of all threads that take connections. */
  loads(): readonly (ThreadLoad | undefined)[] {
    return Array.from({ length: this.threads }, (_, thread) => (this.isOpen(thread) ? this.load(thread) : undefined))
  }

  /** Whether it takes connections accepted by others. */
  isOpen(thread: number): boolean {
    return Atomics.load(this.memory, thread * WORDS + OPEN) === 1
  }

  setOpen(thread: number, open: boolean): void {
    Atomics.store(this.memory, thread * WORDS + OPEN, open ? 1 : 0)
  }

  setRequestRate(thread: number, perSecond: number): void {
    Atomics.store(this.memory, thread * WORDS + RATE, Math.round(perSecond))
  }

  /** The thread has made progress on a connection. */
  beat(thread: number): void {
    Atomics.add(this.memory, thread * WORDS + BEAT, 1)
  }

  /** Changes whenever the thread has made progress. */
  beatOf(thread: number): number {
    return Atomics.load(this.memory, thread * WORDS + BEAT)
  }

  /** The thread has died: its connections are gone, and places in it that others still hold are void. */
  died(thread: number): void {
    this.setOpen(thread, false)
    // Its successor starts without a hang.
    this.beat(thread)
    this.setRequestRate(thread, 0)
    const life = (this.lifeOf(thread) + 1) % LIVES
    Atomics.store(this.memory, thread * WORDS + COUNT, life << COUNT_BITS)
  }
}
