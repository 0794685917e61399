// Accounts for what node:http's parser keeps of an incomplete head or trailers: it does not report that, and its limit is per connection. The upper
// bound is what arrived since the parser last passed something on.

import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { LARGE_HEAD_BYTES, type OpenHead } from '../../../kit/core/shares/open-heads.ts'

/** Reservations are made in steps of this size, to make their cost negligible. */
const STEP_BYTES = 16 * 1024
const HEAD_END = '\r\n\r\n'

export class Http1OpenHead {
  readonly #head: OpenHead
  readonly #maxBytes: number
  /** Upper bound of what the parser keeps. */
  #bytes = 0
  #isHeld = false
  /** The last piece was nothing but a part of something large. */
  #isInLarge = false
  /** For the current piece: whether anything was passed on, and the octets of bodies in it. */
  #moved = false
  #bodyBytes = 0
  #message: IncomingMessage | undefined

  /** @param maxHeaderBytes limit of what the parser keeps */
  constructor(head: OpenHead, maxHeaderBytes: number) {
    this.#head = head
    this.#maxBytes = maxHeaderBytes
  }

  /** Whether the bytes belong to a message that has begun: it can no longer be answered. */
  get isInMessage(): boolean {
    return this.#message?.complete === false
  }

  /**
   * The parser is inside a large head or trailers: more bytes change nothing before the end of the line, and for each piece of a field the parser
   * copies all of it so far.
   */
  get isInLarge(): boolean {
    return this.#isInLarge
  }

  /** A message head is complete. */
  onMessage(message: IncomingMessage, hasBody: boolean): void {
    this.#message = message
    this.#moved = true
    this.end()
    if (!hasBody) return
    // The parser calls it whether or not the body is read.
    const { push } = message
    message.push = (chunk: Buffer | null): boolean => {
      this.#moved = true
      this.#bodyBytes += chunk?.length ?? 0
      return push.call(message, chunk)
    }
  }

  /** The parser has consumed this piece. undefined = there is memory for what it keeps, otherwise the refusal. */
  onParsed(piece: Buffer): Refusal | undefined {
    this.#bytes = this.#moved ? restOf(piece, this.#bodyBytes) : Math.min(this.#maxBytes, this.#bytes + piece.length)
    this.#isInLarge = !this.#moved && this.#bytes > LARGE_HEAD_BYTES
    this.#moved = false
    this.#bodyBytes = 0
    if (this.#bytes <= LARGE_HEAD_BYTES && !this.#isHeld) return undefined
    this.#isHeld = this.#bytes > LARGE_HEAD_BYTES
    return this.#head.hold(this.#isHeld ? Math.ceil(this.#bytes / STEP_BYTES) * STEP_BYTES : 0)
  }

  /** Nothing is kept any more. */
  end(): void {
    this.#bytes = 0
    if (this.#isHeld) this.#head.hold(0)
    this.#isHeld = false
  }
}

/** How much of a piece may belong to something incomplete: no bodies, and nothing before the end of the last head. */
function restOf(piece: Buffer, bodyBytes: number): number {
  const rest = piece.length - bodyBytes
  if (rest <= LARGE_HEAD_BYTES) return rest
  const end = piece.lastIndexOf(HEAD_END)
  return end < 0 ? rest : Math.min(rest, piece.length - end - HEAD_END.length)
}
