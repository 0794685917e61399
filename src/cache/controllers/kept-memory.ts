// Memory of one collection of the read cache: the bytes of its objects once, and what each gateway thread and the main thread know of them. It is part of
// the memory for followed objects, which all clusters share.

import type { Charge } from '../../kit/api/stream.ts'
import { AnswerBytes } from '../../kube/io/answers/thread-answers.ts'
import { followedBytes, OutgrownError } from '../../kube/io/followed-bytes.ts'

/** Taken and given back in multiples of it: objects come and go one by one. */
const STEP_BYTES = 64 * 1024

/** A state has it for as long as it lasts: without numbers, which would change. */
const NO_ROOM = 'it takes more than is left for this cluster of the memory for followed objects (--max-followed-bytes)'

/** Those that have room for compressed lists. */
const withRoom = new Set<KeptMemory>()

export class KeptMemory {
  readonly #memory: AnswerBytes
  readonly #threads: number
  #taken = 0
  #sharedBytes = 0
  #indexBytes = 0
  /** For compressed lists, in each gateway thread. */
  #room = 0
  #isOver = false
  readonly #roomTaken: () => void

  /**
   * @param threads gateway threads: they know of all objects, as this one does
   * @param roomTaken objects need the room for compressed lists: the threads are to be told
   */
  constructor(charge: Charge, threads: number, roomTaken: () => void) {
    this.#roomTaken = roomTaken
    this.#memory = new AnswerBytes(charge, followedBytes())
    this.#threads = threads + 1
  }

  /** How much of its lists each gateway thread may keep compressed. */
  get room(): number {
    return this.#room
  }

  /** The same of all threads. */
  get roomOfAll(): number {
    return this.#room * (this.#threads - 1)
  }

  /**
   * There will be so much. Compressed lists give way to it, those of other collections, too.
   * @param sharedBytes once for all threads
   * @param indexBytes in each of them
   * @throws {OutgrownError} if there is no room for more: then it must not be
   */
  reach(sharedBytes: number, indexBytes: number): void {
    if (this.#isOver) return
    const before = [this.#sharedBytes, this.#indexBytes] as const
    this.#sharedBytes = sharedBytes
    this.#indexBytes = indexBytes
    if (this.#take()) return
    for (const memory of [this, ...withRoom]) {
      memory.#giveRoom()
      if (this.#take()) return
    }
    ;[this.#sharedBytes, this.#indexBytes] = before
    this.#take()
    throw new OutgrownError(NO_ROOM)
  }

  /** Room for compressed lists, in each gateway thread: no more than half of what is left for objects. */
  setRoom(bytes: number): void {
    if (this.#isOver) return
    const { capacity, held } = followedBytes().known
    const left = capacity === 0 ? Number.POSITIVE_INFINITY : Math.max(0, capacity - held)
    const most = this.#room + Math.floor(left / 2 / (this.#threads - 1))
    const before = this.#room
    this.#room = Math.max(0, Math.min(bytes, most))
    // Other clusters may have their share of it.
    if (!this.#take()) this.#room = before
    if (this.#room > 0) withRoom.add(this)
    else withRoom.delete(this)
  }

  #giveRoom(): void {
    if (this.#room === 0) return
    this.#room = 0
    withRoom.delete(this)
    this.#take()
    this.#roomTaken()
  }

  /** @returns whether there is memory for all of it */
  #take(): boolean {
    const all = this.#sharedBytes + this.#threads * this.#indexBytes + this.roomOfAll
    const bytes = Math.ceil(all / STEP_BYTES) * STEP_BYTES
    const more = bytes - this.#taken
    if (more > 0 && !this.#memory.take(more)) return false
    // Not what the next object takes again.
    if (more < -STEP_BYTES) this.#memory.give(-more)
    if (more > 0 || more < -STEP_BYTES) this.#taken = bytes
    return true
  }

  /** Nothing is kept any more, whatever follows. */
  end(): void {
    this.#isOver = true
    this.#room = 0
    withRoom.delete(this)
    this.#memory.end()
  }
}
