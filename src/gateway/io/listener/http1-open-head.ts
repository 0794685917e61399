// What the parser of node:http keeps of a head that has no end yet, or of trailers: it tells nobody, and its limit is that of one connection. It
// cannot be more than came since the parser last passed something on.

import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { LARGE_HEAD_BYTES, type OpenHead } from '../../../kit/core/shares/open-heads.ts'

/** It is taken from the share in such parts, so that it costs nothing to speak of. */
const STEP_BYTES = 16 * 1024
const HEAD_END = '\r\n\r\n'

export class Http1OpenHead {
  readonly #head: OpenHead
  readonly #maxBytes: number
  /** At least as much as the parser keeps. */
  #bytes = 0
  #isHeld = false
  /** The last piece was a part of something large, and nothing but that. */
  #isInLarge = false
  /** Of the piece that is being parsed: whether anything was passed on, and how many octets of bodies. */
  #moved = false
  #bodyBytes = 0
  #message: IncomingMessage | undefined

  /** @param maxHeaderBytes what the parser keeps at most */
  constructor(head: OpenHead, maxHeaderBytes: number) {
    this.#head = head
    this.#maxBytes = maxHeaderBytes
  }

  /** Whether what comes is part of a message that has begun already: it cannot be answered any more. */
  get isInMessage(): boolean {
    return this.#message?.complete === false
  }

  /**
   * The parser is inside of a large head, or of trailers: what comes next changes nothing before the end of its line. With each piece of a field,
   * the parser copies all that it has of it.
   */
  get isInLarge(): boolean {
    return this.#isInLarge
  }

  /** The head of a message is complete. */
  onMessage(message: IncomingMessage, hasBody: boolean): void {
    this.#message = message
    this.#moved = true
    this.end()
    if (!hasBody) return
    // The parser calls it, whether or not anybody reads the body.
    const { push } = message
    message.push = (chunk: Buffer | null): boolean => {
      this.#moved = true
      this.#bodyBytes += chunk?.length ?? 0
      return push.call(message, chunk)
    }
  }

  /** The parser has got this. Undefined = there is room for what it keeps, otherwise why there is none. */
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

/** How much of a piece may be of something that has no end yet: not bodies, and nothing in front of the last end of a head. */
function restOf(piece: Buffer, bodyBytes: number): number {
  const rest = piece.length - bodyBytes
  if (rest <= LARGE_HEAD_BYTES) return rest
  const end = piece.lastIndexOf(HEAD_END)
  return end < 0 ? rest : Math.min(rest, piece.length - end - HEAD_END.length)
}
