// Collects a request body until it is complete, too large or too late.

import { BodyPieces } from '../../../kube/core/answers/body-pieces.ts'

export type BodyEnd = 'complete' | 'too-large' | 'too-late' | 'overfull' | 'gone'

export class WholeBody {
  /** Never rejects. */
  readonly ended: Promise<BodyEnd>
  readonly #limit: number
  readonly #deadline: NodeJS.Timeout
  #resolve: ((end: BodyEnd) => void) | undefined
  readonly #pieces: BodyPieces = new BodyPieces()
  #bytes = 0

  constructor(limit: number, timeoutMs: number) {
    this.#limit = limit
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#deadline = setTimeout(() => this.finish('too-late'), timeoutMs)
  }

  /** Copies the chunk; ignores anything after the end. */
  add(chunk: Buffer): void {
    if (this.#resolve === undefined) return
    this.#bytes += chunk.length
    if (this.#bytes > this.#limit) this.finish('too-large')
    else this.#pieces.add(chunk)
  }

  /** The first end counts. */
  finish(end: BodyEnd): void {
    if (this.#resolve === undefined) return
    clearTimeout(this.#deadline)
    this.#resolve(end)
    this.#resolve = undefined
    if (end !== 'complete') this.discard()
  }

  /** The complete body; may be taken once. */
  take(): Buffer {
    return Buffer.concat(this.#pieces.take())
  }

  /** Releases the memory: to be called when the request has ended. */
  discard(): void {
    this.finish('gone')
    this.#pieces.clear()
  }
}
