// Measures the response to a list as it passes: keeps only its first two kilobytes, where a page says how many items remain, and its last
// four bytes, where gzip records the original length.

import { Buffer } from 'node:buffer'
import type { ListAnswer } from '../../api/list-request.ts'

/** kube-apiserver writes a list's metadata before its items. */
const HEAD_BYTES = 2048
const EMPTY: Buffer = Buffer.alloc(0)

/** @param page the response is one page of several: the number of remaining items matters */
export function answerSize(contentEncoding: string, contentType: string, page: boolean): ListAnswer {
  const gzip = contentEncoding === 'gzip'
  return new PassingAnswer(gzip, page && contentEncoding === '' && contentType.startsWith('application/json'))
}

class PassingAnswer implements ListAnswer {
  readonly #gzip: boolean
  readonly #keepsHead: boolean
  #head: Buffer = EMPTY
  #received = 0
  /** The last four bytes, little-endian. */
  #tail = 0

  constructor(gzip: boolean, keepsHead: boolean) {
    this.#gzip = gzip
    this.#keepsHead = keepsHead
  }

  see(chunk: Buffer): void {
    const { length } = chunk
    this.#received += length
    if (this.#gzip) this.#seeTail(chunk)
    else if (this.#keepsHead && this.#head.length < HEAD_BYTES) {
      this.#head = Buffer.concat([this.#head, chunk.subarray(0, HEAD_BYTES - this.#head.length)])
    }
  }

  #seeTail(chunk: Buffer): void {
    const { length } = chunk
    if (length >= 4) this.#tail = chunk.readUInt32LE(length - 4)
    else for (const byte of chunk) this.#tail = ((this.#tail >>> 8) | (byte << 24)) >>> 0
  }

  bytes(complete: boolean): number {
    // ISIZE of RFC 1952, modulo 2^32. In a truncated response these are arbitrary bytes: a client that hangs up must not make a list look
    // large.
    return complete && this.#gzip && this.#tail > this.#received && this.#tail < this.#received * MAX_RATIO
      ? this.#tail
      : this.#received
  }

  remainingItems(): number {
    if (this.#head.length === 0) return 0
    const text = this.#head.toString('latin1')
    const end = /"(?:items|columnDefinitions|rows)":/.exec(text)?.index ?? text.length
    const [, digits = ''] = /"remainingItemCount":(\d{1,12})\b/.exec(text.slice(0, end)) ?? []
    return Number(digits)
  }
}

/** gzip's maximum compression ratio (RFC 1951: 258 bytes in two bits). */
const MAX_RATIO = 1032
