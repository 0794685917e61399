// The body of a request, whole: for decisions that depend on what it says. It is small, and the client is not waited for longer
// than for an answer of the gateway's own.

export type BodyEnd = 'complete' | 'too-large' | 'too-late' | 'no-room' | 'gone'

/** Bodies up to here need no room: options of deletions have some hundred bytes, and must not wait for anybody. */
export const SMALL_BODY_BYTES: number = 64 * 1024

/** What all long bodies of a thread may take together, beyond SMALL_BODY_BYTES of each. */
export class BodyRoom {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** @returns false when there is not so much */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  give(bytes: number): void {
    this.#left += bytes
  }
}

export class WholeBody {
  /** Never rejects. */
  readonly ended: Promise<BodyEnd>
  readonly #limit: number
  readonly #room: BodyRoom
  readonly #deadline: NodeJS.Timeout
  #resolve: ((end: BodyEnd) => void) | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #taken = 0

  constructor(limit: number, timeoutMs: number, room: BodyRoom) {
    this.#limit = limit
    this.#room = room
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#deadline = setTimeout(() => this.finish('too-late'), timeoutMs)
  }

  /** Copies; what comes after the end is dropped. */
  add(chunk: Buffer): void {
    if (this.#resolve === undefined) return
    this.#bytes += chunk.length
    if (this.#bytes > this.#limit) this.finish('too-large')
    else if (this.#takeRoom()) this.#chunks.push(Buffer.from(chunk))
    else this.finish('no-room')
  }

  /** The first end counts. */
  finish(end: BodyEnd): void {
    if (this.#resolve === undefined) return
    clearTimeout(this.#deadline)
    this.#resolve(end)
    this.#resolve = undefined
    if (end !== 'complete') this.discard()
  }

  /** All of it, once it is complete; to be taken once. */
  take(): Buffer {
    const body = Buffer.concat(this.#chunks)
    this.#chunks = []
    return body
  }

  /** Nobody holds it any more: to be called when its request has ended. */
  discard(): void {
    this.finish('gone')
    this.#chunks = []
    this.#room.give(this.#taken)
    this.#taken = 0
  }

  #takeRoom(): boolean {
    const more = Math.max(0, this.#bytes - SMALL_BODY_BYTES) - this.#taken
    if (more <= 0) return true
    if (!this.#room.take(more)) return false
    this.#taken += more
    return true
  }
}
