// Limits how many of a set of sockets are read at once. All readable data is read in one turn of the event loop, so only a few sockets are polled,
// and the others wait in the kernel for their turn: a thousand that send in the same millisecond cost no more in one turn than a few.

import type { Socket } from 'node:net'
import { Queued, RoundRobinQueue } from '../../../../kit/core/queues/round-robin-queue.ts'

/** The part of node:net's system handle used here. */
interface ReadHandle {
  readStart(): number
  readStop(): number
}

/** A socket from which data is expected. */
export abstract class Expected extends Queued {
  readonly socket: Socket
  readonly source: string

  constructor(socket: Socket, source: string) {
    super()
    this.socket = socket
    this.source = source
  }
}

export class ReadRotation<T extends Expected> {
  readonly #width: number
  /** Being read, longest first. */
  readonly #read = new Set<T>()
  readonly #parked = new RoundRobinQueue<T>()
  #filling = false

  /** @param width sockets read at a time */
  constructor(width: number) {
    this.#width = width
  }

  get size(): number {
    return this.#read.size + this.#parked.count
  }

  /** Number of sockets not being read now. */
  get parked(): number {
    return this.#parked.count
  }

  /** Adds a socket that is already being read; the one read longest makes room. */
  add(item: T): void {
    this.#read.add(item)
    if (this.#read.size > this.#width) this.#parkOldest()
  }

  /** Removes it; from now on it is read in any case. */
  delete(item: T): void {
    if (this.#read.delete(item)) {
      this.#fillLater()
      return
    }
    this.#parked.remove(item)
    startReading(item.socket)
  }

  /** Gives this many waiting sockets their turn. */
  rotate(count: number): void {
    for (let i = Math.min(count, this.#parked.count); i > 0; i--) {
      const item = this.#parked.next()
      if (item === undefined) return
      startReading(item.socket)
      this.add(item)
    }
  }

  /** Deferred: libuv still reports sockets that were being read, and would read restarted ones in the same turn. */
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

/** Below the stream of the socket, or of the TLS socket above it, both of which believe that it is being read. */
export function startReading(socket: Socket): void {
  handleOf(socket)?.readStart()
}

export function stopReading(socket: Socket): void {
  handleOf(socket)?.readStop()
}

function handleOf(socket: Socket): ReadHandle | null | undefined {
  return Reflect.get(socket, '_handle')
}
