// The body of a request, collected until it is whole, too large or too late.

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

  /** Copies; what comes after the end is dropped. */
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

  /** All of it, once it is complete; to be taken once. */
  take(): Buffer {
    return Buffer.concat(this.#pieces.take())
  }

  /** Nobody holds it any more: to be called when its request has ended. */
  discard(): void {
    this.finish('gone')
    this.#pieces.clear()
  }
}
