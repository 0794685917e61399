// How many connections of clients each gateway thread has, in memory that all threads share. A new connection takes a place here
// before it gets to its thread, so that threads that accept at the same moment do not choose the same one.

import { placeConnection, type ThreadLoad } from '../core/balance/thread-load.ts'

/** A place that was taken in a thread. */
export interface ConnectionPlace {
  readonly thread: number
  /** Which of the threads that had this index one after the other: the places of one that died are void. */
  readonly life: number
}

const WORDS = 4
const COUNT = 0
const OPEN = 1
const RATE = 2
const BEAT = 3
/** Of the word that counts; the rest is the life. */
const COUNT_BITS = 20
const COUNT_MASK = 2 ** COUNT_BITS - 1
const LIVES = 2 ** (31 - COUNT_BITS)

export class ConnectionPlaces {
  readonly memory: Int32Array<SharedArrayBuffer>
  readonly threads: number

  /** @param memory of another thread's, or of `ConnectionPlaces.allocate` */
  constructor(memory: Int32Array<SharedArrayBuffer>) {
    this.memory = memory
    this.threads = memory.length / WORDS
  }

  static allocate(threads: number): Int32Array<SharedArrayBuffer> {
    return new Int32Array(new SharedArrayBuffer(threads * WORDS * Int32Array.BYTES_PER_ELEMENT))
  }

  /** Takes a place in the thread that a new connection belongs to: `own`, or an open one that `reachable` names. */
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
      // Somebody was faster: look again.
      if ((word & COUNT_MASK) !== seen) continue
      if (this.#swap(thread, word, word + 1)) return { thread, life: word >> COUNT_BITS }
    }
  }

  /** Gives a place back; without effect when the thread has died since. */
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

  /** The life that the thread has now. */
  lifeOf(thread: number): number {
    return Atomics.load(this.memory, thread * WORDS + COUNT) >> COUNT_BITS
  }

  load(thread: number): ThreadLoad {
    return {
      connections: Atomics.load(this.memory, thread * WORDS + COUNT) & COUNT_MASK,
      requestRate: Atomics.load(this.memory, thread * WORDS + RATE),
    }
  }

  /** Of all threads that take connections. */
  loads(): readonly (ThreadLoad | undefined)[] {
    return Array.from({ length: this.threads }, (_, thread) => (this.isOpen(thread) ? this.load(thread) : undefined))
  }

  /** Whether it takes connections that others have accepted. */
  isOpen(thread: number): boolean {
    return Atomics.load(this.memory, thread * WORDS + OPEN) === 1
  }

  setOpen(thread: number, open: boolean): void {
    Atomics.store(this.memory, thread * WORDS + OPEN, open ? 1 : 0)
  }

  setRequestRate(thread: number, perSecond: number): void {
    Atomics.store(this.memory, thread * WORDS + RATE, Math.round(perSecond))
  }

  /** The thread has got something done for a connection. */
  beat(thread: number): void {
    Atomics.add(this.memory, thread * WORDS + BEAT, 1)
  }

  /** Different from before: the thread has got something done since. */
  beatOf(thread: number): number {
    return Atomics.load(this.memory, thread * WORDS + BEAT)
  }

  /** The thread has died: its connections are gone, and places in it that others still hold are void. */
  died(thread: number): void {
    this.setOpen(thread, false)
    // Its successor has not hung yet.
    this.beat(thread)
    this.setRequestRate(thread, 0)
    const life = (this.lifeOf(thread) + 1) % LIVES
    Atomics.store(this.memory, thread * WORDS + COUNT, life << COUNT_BITS)
  }
}
