// Memory of the bodies that are being recorded in one thread: for all of them, and for each user, so that nobody can keep the bodies of
// others out of the audit log.

import { BodyPieces } from '../request/body-pieces.ts'

/** Bytes, all in all. */
export const MAX_RECORDED_BYTES: number = 32 * 1024 * 1024
/** Of one user. */
export const MAX_RECORDED_BYTES_PER_USER: number = 8 * 1024 * 1024

export class BodyMemory {
  #all = 0
  readonly #users = new Map<string, number>()

  /** False: there is no room. */
  take(user: string, bytes: number): boolean {
    const own = this.#users.get(user) ?? 0
    if (this.#all + bytes > MAX_RECORDED_BYTES || own + bytes > MAX_RECORDED_BYTES_PER_USER) return false
    this.#all += bytes
    this.#users.set(user, own + bytes)
    return true
  }

  giveBack(user: string, bytes: number): void {
    const left = (this.#users.get(user) ?? 0) - bytes
    this.#all -= bytes
    if (left > 0) this.#users.set(user, left)
    else this.#users.delete(user)
  }

  get bytes(): number {
    return this.#all
  }
}

/** A body that is recorded, up to a limit. */
export class RecordedBody {
  readonly #memory: BodyMemory
  readonly #user: string
  /** Bytes. */
  readonly limit: number
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0
  /** Why it is not whole; '' = it is. */
  #missing = ''

  constructor(memory: BodyMemory, user: string, limit: number) {
    this.#memory = memory
    this.#user = user
    this.limit = limit
  }

  /** Copies it. */
  add(chunk: Buffer): void {
    if (this.#missing !== '' || chunk.length === 0) return
    if (this.#bytes + chunk.length > this.limit) this.#giveUp(`it is larger than ${this.limit} bytes`)
    else if (!this.#memory.take(this.#user, chunk.length)) this.#giveUp('there was no memory for it')
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
    if (this.#bytes > 0) this.#memory.giveBack(this.#user, this.#bytes)
    this.#bytes = 0
    this.#pieces.clear()
  }

  #giveUp(why: string): void {
    this.#missing = why
    this.discard()
  }
}
