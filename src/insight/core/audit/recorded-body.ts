// Bodies that are being recorded. Their memory in one thread is divided among users, so that nobody can keep the bodies of others out of the
// audit log.

import { RESERVE_OF, Shares } from '../../../kit/core/shares/shares.ts'
import { BodyPieces } from '../../../kube/core/answers/body-pieces.ts'

/** Bytes, all in all. */
export const MAX_RECORDED_BYTES: number = 32 * 1024 * 1024
/** Of one user. */
export const MAX_RECORDED_BYTES_PER_USER: number = 8 * 1024 * 1024

/** Their memory. What `Shares` keep for those who have little is a part of the bytes, not on top of them. */
export function recordedMemory(): Shares {
  return new Shares(MAX_RECORDED_BYTES - MAX_RECORDED_BYTES / RESERVE_OF)
}

/** A body that is recorded, up to a limit. */
export class RecordedBody {
  readonly #memory: Shares
  readonly #user: string
  /** Bytes. */
  readonly limit: number
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0
  /** Why it is not whole; '' = it is. */
  #missing = ''

  constructor(memory: Shares, user: string, limit: number) {
    this.#memory = memory
    this.#user = user
    this.limit = limit
  }

  /** Copies it. */
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

  /** All of it; to be taken once. Gives the memory back. */
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
