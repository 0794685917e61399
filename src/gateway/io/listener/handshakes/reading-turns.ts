// Which of many sockets are read. All that can be read is read in one turn of the event loop, so only a few are looked at, and the others
// wait in the kernel for their turn: a thousand that send in the same millisecond cost no more in it than a few.

import type { Socket } from 'node:net'
import { Queued, TurnQueue } from '../../../../kit/core/queues/turn-queue.ts'

/** What node:net has of the system's socket. */
interface ReadHandle {
  readStart(): number
  readStop(): number
}

/** A socket of which something is expected. */
export abstract class Expected extends Queued {
  readonly socket: Socket
  readonly source: string

  constructor(socket: Socket, source: string) {
    super()
    this.socket = socket
    this.source = source
  }
}

export class ReadingTurns<T extends Expected> {
  readonly #width: number
  /** The one that is read for the longest time first. */
  readonly #read = new Set<T>()
  readonly #parked = new TurnQueue<T>()
  #filling = false

  /** @param width sockets that are read at a time */
  constructor(width: number) {
    this.#width = width
  }

  get size(): number {
    return this.#read.size + this.#parked.count
  }

  /** Those that are not read now. */
  get parked(): number {
    return this.#parked.count
  }

  /** A socket that is read already: the one that was for the longest time makes room. */
  add(item: T): void {
    this.#read.add(item)
    if (this.#read.size > this.#width) this.#parkOldest()
  }

  /** It is read in any case from now on, if it was here. */
  delete(item: T): void {
    if (this.#read.delete(item)) {
      this.#fillLater()
      return
    }
    this.#parked.remove(item)
    startReading(item.socket)
  }

  /** So many that wait get their turn. */
  rotate(count: number): void {
    for (let i = Math.min(count, this.#parked.count); i > 0; i--) {
      const item = this.#parked.next()
      if (item === undefined) return
      startReading(item.socket)
      this.add(item)
    }
  }

  /** Not in this turn: libuv still hears of sockets that were read before, and would read those that are started again at once. */
  #fillLater(): void {
    if (this.#filling || this.#parked.count === 0) return
    this.#filling = true
    setImmediate(() => {
      this.#filling = false
      this.rotate(this.#width - this.#read.size)
    })
  }

  #parkOldest(): void {
    for (const item of this.#read) {
      this.#read.delete(item)
      stopReading(item.socket)
      this.#parked.add(item, item.source)
      return
    }
  }
}

/** Below the stream of the socket, or of the TLS socket above it, which both think that it is being read. */
export function startReading(socket: Socket): void {
  handleOf(socket)?.readStart()
}

export function stopReading(socket: Socket): void {
  handleOf(socket)?.readStop()
}

function handleOf(socket: Socket): ReadHandle | null | undefined {
  return Reflect.get(socket, '_handle')
}
