// Bodies being recorded. Their memory in a thread is divided among users, so that no user can push the bodies of others out of the audit
// log.

import { RESERVE_OF, Shares } from '../../kit/core/shares/shares.ts'
import { BodyPieces } from '../../kube/core/answers/body-pieces.ts'

/** Bytes in total. */
export const MAX_RECORDED_BYTES: number = 32 * 1024 * 1024
/** Bytes per user. */
export const MAX_RECORDED_BYTES_PER_USER: number = 8 * 1024 * 1024

/** The memory of recorded bodies. The reserve of `Shares` is included in the total, not on top of it. */
export function recordedMemory(): Shares {
  return new Shares(MAX_RECORDED_BYTES - MAX_RECORDED_BYTES / RESERVE_OF)
}

/** A body recorded up to a limit. */
export class RecordedBody {
  readonly #memory: Shares
  readonly #user: string
  /** Bytes. */
  readonly limit: number
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0
  /** Why it is incomplete; '' = it is complete. */
  #missing = ''

  constructor(memory: Shares, user: string, limit: number) {
    this.#memory = memory
    this.#user = user
    this.limit = limit
  }

  /** Copies the chunk. */
  add(chunk: Buffer): void {
    if (this.#missing !== '' || chunk.length === 0) return
    if (this.#bytes + chunk.length > this.limit) this.#giveUp(`it is larger than ${this.limit} bytes`)
    else if (!this.#take(chunk.length)) this.#giveUp('there was no memory for it')
    else {
      this.#bytes += chunk.length
      this.#pieces.add(chunk)
    }
  }

  get missing(): string {
    return this.#missing
  }

  /** The whole body; call once. Releases the memory. */
  take(): Buffer {
    const body = Buffer.concat(this.#pieces.take())
    this.discard()
    return body
  }

  discard(): void {
    if (this.#bytes > 0) this.#memory.give(this.#user, this.#bytes)
    this.#bytes = 0
    this.#pieces.clear()
  }

  #take(bytes: number): boolean {
    const own = this.#memory.heldBy(this.#user)
    return own + bytes <= MAX_RECORDED_BYTES_PER_USER && this.#memory.take(this.#user, 1, bytes) === 'taken'
  }

  #giveUp(why: string): void {
    this.#missing = why
    this.discard()
  }
}
