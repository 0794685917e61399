// What a connection has received and not read yet, because it is not its turn.

import { threadScheduler } from '../scheduling/thread-scheduler.ts'

export class KeptInput {
  readonly #chunks: Buffer[] = []

  get isEmpty(): boolean {
    return this.#chunks.length === 0
  }

  add(bytes: Buffer): void {
    this.#chunks.push(bytes)
    threadScheduler.keptBytes += bytes.length
  }

  /** Reads the first chunk. It is not among those that are kept meanwhile: the reader may give the socket away. @returns whether all of it was read */
  readFirst(read: (chunk: Buffer) => number): boolean {
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return true
    const at = read(chunk)
    threadScheduler.keptBytes -= at
    if (at === chunk.length) return true
    this.#chunks.unshift(chunk.subarray(at))
    return false
  }

  /** Removes and returns everything. */
  take(): Buffer {
    const rest = Buffer.concat(this.#chunks.splice(0))
    threadScheduler.keptBytes -= rest.length
    return rest
  }

  clear(): void {
    for (const chunk of this.#chunks.splice(0)) threadScheduler.keptBytes -= chunk.length
  }
}
