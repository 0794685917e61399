// Skips the fields of an oversized block as they arrive: fields to be indexed still enter the table, or later blocks could not be
// decoded. A string too long for the table is not even buffered.

import { type DecoderTable, ENTRY_OVERHEAD } from './decoder-table.ts'
import type { LiteralReader } from './literals.ts'
import { STATIC_COUNT } from './static.ts'

const BROKEN = -1
const INCOMPLETE = -2
/** Octets of an integer, after its prefix (literals.ts). */
const MAX_INTEGER_OCTETS = 5
/** The longest Huffman code (RFC 7541 appendix B). */
const LONGEST_CODE_BITS = 30

export class FieldSkipper {
  readonly #table: DecoderTable
  readonly #literal: LiteralReader
  /** Largest size of the table. */
  readonly #tableBytes: number
  /** Octets of a string still to come. */
  #left = 0
  /** Strings of a field still to come. */
  #strings = 0
  /** Offset behind the last item read. */
  #at = 0

  constructor(table: DecoderTable, literal: LiteralReader, tableBytes: number) {
    this.#table = table
    this.#literal = literal
    this.#tableBytes = tableBytes
  }

  /** Between two fields. */
  get done(): boolean {
    return this.#left === 0 && this.#strings === 0
  }

  /** Skips the complete items of `start` to `end`. Returns where the rest begins, or -1: the block is not HPACK. */
  skip(block: Buffer, start: number, end: number): number {
    let at = start
    while (at < end) {
      if (this.#left > 0) {
        const octets = Math.min(this.#left, end - at)
        this.#left -= octets
        at += octets
        continue
      }
      const next = this.#strings > 0 ? this.#string(block, at, end) : this.#field(block, at, end)
      if (next === INCOMPLETE) break
      if (next === BROKEN) return BROKEN
      at = next
    }
    return at
  }

  /** Skips the string octet by octet, as it arrives. */
  #string(block: Buffer, at: number, end: number): number {
    const length = this.#integer(block, at, end, 0x7f)
    if (length < 0) return length
    this.#strings--
    this.#left = length
    return this.#at
  }

  #field(block: Buffer, at: number, end: number): number {
    const octet = block[at] as number
    if (octet >= 0x80) {
      const index = this.#integer(block, at, end, 0x7f)
      if (index < 0) return index
      return index === 0 || !this.#isKnown(index) ? BROKEN : this.#at
    }
    const isIndexing = (octet & 0x40) !== 0
    // A size update is allowed only at the beginning of a block.
    if (!isIndexing && (octet & 0x20) !== 0) return BROKEN
    const index = this.#integer(block, at, end, isIndexing ? 0x3f : 0x0f)
    if (index < 0) return index
    if (!this.#isKnown(index)) return BROKEN
    const strings = index === 0 ? 2 : 1
    const behindIndex = this.#at
    if (isIndexing) {
      const size = this.#leastSize(block, behindIndex, end, strings)
      if (size < 0) return size
      if (size <= this.#tableBytes) {
        if (this.#at > end) return INCOMPLETE
        return this.#literal.field(block, at + 1, end, octet) ? this.#literal.at : BROKEN
      }
      // Larger than the table: inserting it empties the table (RFC 7541 section 4.4).
      this.#table.insert('', '', size, 0)
    }
    this.#strings = strings
    return behindIndex
  }

  /** Lower bound of the size of an entry with these strings, as far as they have arrived, excluding an indexed name. Sets `#at` behind them. */
  #leastSize(block: Buffer, start: number, end: number, strings: number): number {
    let size = ENTRY_OVERHEAD
    this.#at = start
    for (let n = 0; n < strings && size <= this.#tableBytes; n++) {
      const isHuffman = this.#at < end && (block[this.#at] as number) >= 0x80
      const length = this.#integer(block, this.#at, end, 0x7f)
      if (length < 0) return length
      size += isHuffman ? Math.floor((length * 8) / LONGEST_CODE_BITS) : length
      this.#at += length
    }
    return size
  }

  #isKnown(index: number): boolean {
    return index <= STATIC_COUNT || this.#table.has(index - STATIC_COUNT - 1)
  }

  /** An integer whose prefix is in the octet at `at` (RFC 7541 section 5.1). Sets `#at` behind it. */
  #integer(block: Buffer, at: number, end: number, prefix: number): number {
    if (at >= end) return INCOMPLETE
    const first = (block[at] as number) & prefix
    this.#at = at + 1
    if (first < prefix) return first
    for (let behind = at + 2; behind <= at + 1 + MAX_INTEGER_OCTETS; behind++) {
      if (behind > end) return INCOMPLETE
      if ((block[behind - 1] as number) >= 0x80) continue
      const value = this.#literal.integer(block, at + 1, behind, prefix)
      this.#at = behind
      return value
    }
    return BROKEN
  }
}
