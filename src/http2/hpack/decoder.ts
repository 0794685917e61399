// HPACK decoding (RFC 7541) with the field rules of HTTP/2 (RFC 9113 section 8.2) on the way. A field that the table
// knows costs a few array reads: its strings exist already and its rules were checked when it entered.

import { DecoderTable, ENTRY_OVERHEAD, INITIAL_TABLE_BYTES, STATIC_FLAGS, STATIC_SIZES } from './decoder-table.ts'
import { BAD_NAME, BAD_VALUE, CONTENT_LENGTH, PSEUDO_BITS } from './field-rules.ts'
import { LiteralReader } from './literals.ts'
import { STATIC_COUNT, STATIC_NAMES, STATIC_VALUES } from './static.ts'

const BROKEN = -1
const INCOMPLETE = -2
/** Octets of an integer, after its prefix (literals.ts). */
const MAX_INTEGER_OCTETS = 5
/** The longest Huffman code (RFC 7541 appendix B). */
const LONGEST_CODE_BITS = 30

/** The fields are complete and well-formed. */
export const DECODED = 0
/** The block breaks RFC 7541: connection error COMPRESSION_ERROR. The decoder must not be used again. */
export const COMPRESSION = 1
/** The list is larger than allowed, or has more than MAX_FIELDS fields. The table is in step; there are no fields. */
export const TOO_LARGE = 2
/** A field breaks RFC 9113 section 8.2 or 8.3: stream error PROTOCOL_ERROR. The table is in step; there are no fields. */
export const MALFORMED = 3

/** More fields than any client sends. */
export const MAX_FIELDS = 4000

/** Decodes the field blocks that one peer sends on one connection, in order. */
export class HpackDecoder {
  /** Name, value, name, value, ... of the last block when it was DECODED, else empty. The caller may keep it. */
  fields: string[] = []
  /** How many pseudo-header fields the last block had, and which (PSEUDO_METHOD, PSEUDO_PATH, ... of field-rules.ts). */
  pseudoCount = 0
  pseudoMask = 0
  /** `content-length` of the last block; -1 when there is none, -2 when it is not a number or two contradict each other. */
  contentLength = -1
  /** The size of the last block's list, as `maxListBytes` counts it. */
  listBytes = 0

  readonly #limit: number
  readonly #table: DecoderTable
  readonly #literal: LiteralReader
  /** Set while a block is being skipped. */
  #skipper: FieldSkipper | undefined

  /** `maxTableBytes`: SETTINGS_HEADER_TABLE_SIZE that we announce, the most that the peer may use. */
  constructor(maxTableBytes: number) {
    this.#limit = maxTableBytes
    this.#table = new DecoderTable()
    this.#literal = new LiteralReader(this.#table)
  }

  /**
   * Decodes one complete field block, `start` to `end`. `maxListBytes` bounds the list as RFC 9113 section 6.5.2 counts
   * it: name, value and 32 for each field. Nothing of `block` is kept. Never throws.
   */
  decode(block: Buffer, start: number, end: number, maxListBytes: number): 0 | 1 | 2 | 3 {
    const table = this.#table
    const literal = this.#literal
    const fields: string[] = []
    this.fields = fields
    this.contentLength = -1
    let at = this.#sizeUpdates(block, start, end)
    let listBytes = 0
    let pseudoMask = 0
    let pseudoCount = 0
    let regular = false
    let bad = false
    if (at < 0) return this.#fail()
    while (at < end) {
      const octet = block[at++] as number
      let name: string
      let value: string
      let flags: number
      if (octet >= 0x80) {
        let index = octet & 0x7f
        if (index === 0x7f) {
          index = literal.integer(block, at, end, 0x7f)
          at = literal.at
        }
        if (index > STATIC_COUNT) {
          const age = index - STATIC_COUNT - 1
          if (!table.has(age)) return this.#fail()
          const slot = table.slotOf(age)
          name = table.names[slot] as string
          value = table.values[slot] as string
          flags = table.flags[slot] as number
          listBytes += table.sizes[slot] as number
        } else {
          if (index <= 0) return this.#fail()
          name = STATIC_NAMES[index] as string
          value = STATIC_VALUES[index] as string
          flags = STATIC_FLAGS[index] as number
          listBytes += STATIC_SIZES[index] as number
        }
      } else {
        if (!literal.field(block, at, end, octet)) return this.#fail()
        at = literal.at
        name = literal.name
        value = literal.value
        flags = literal.flags
        listBytes += literal.size
      }
      if (flags === 0) {
        regular = true
      } else if ((flags & PSEUDO_BITS) !== 0) {
        if (regular || (pseudoMask & flags) !== 0 || (flags & BAD_VALUE) !== 0) bad = true
        pseudoMask |= flags & PSEUDO_BITS
        pseudoCount++
      } else {
        regular = true
        if ((flags & CONTENT_LENGTH) !== 0) this.#noteLength(value)
        if ((flags & (BAD_NAME | BAD_VALUE)) !== 0) bad = true
      }
      if (listBytes <= maxListBytes && fields.length <= 2 * MAX_FIELDS) fields.push(name, value)
    }
    literal.forget()
    this.listBytes = listBytes
    this.pseudoMask = pseudoMask
    this.pseudoCount = pseudoCount
    if (!bad && listBytes <= maxListBytes && fields.length <= 2 * MAX_FIELDS) return DECODED
    this.fields = []
    return bad ? MALFORMED : TOO_LARGE
  }

  /**
   * Skips a block that is too large, in pieces: the part that `skip` leaves of one begins the next; size updates are in
   * the first. Returns where the rest begins, or -1 for COMPRESSION. Call `endSkip` after the last piece.
   */
  skip(block: Buffer, start: number, end: number): number {
    let at = start
    if (this.#skipper === undefined) {
      at = this.#sizeUpdates(block, start, end)
      if (at < 0) return at
      this.#skipper = new FieldSkipper(this.#table, this.#literal, Math.max(this.#limit, INITIAL_TABLE_BYTES))
    }
    const rest = this.#skipper.skip(block, at, end)
    this.#literal.forget()
    return rest
  }

  /** @param isWhole the last piece was consumed completely */
  endSkip(isWhole: boolean): 1 | 2 {
    const isDone = isWhole && this.#skipper?.done === true
    this.#skipper = undefined
    this.fields = []
    return isDone ? TOO_LARGE : COMPRESSION
  }

  #fail(): 1 {
    this.#literal.forget()
    this.fields = []
    return COMPRESSION
  }

  /** Size updates come before the first field (RFC 7541 section 4.2). Returns where the fields begin, or -1. */
  #sizeUpdates(block: Buffer, start: number, end: number): number {
    let at = start
    while (at < end && ((block[at] as number) & 0xe0) === 0x20) {
      let size = (block[at++] as number) & 0x1f
      if (size === 0x1f) {
        size = this.#literal.integer(block, at, end, 0x1f)
        at = this.#literal.at
      }
      if (size < 0 || size > this.#limit) return -1
      this.#table.resize(size)
    }
    return at
  }

  #noteLength(value: string): void {
    const length = parseLength(value)
    this.contentLength = this.contentLength === -1 || this.contentLength === length ? length : -2
  }
}

/** Digits only, at most 15 of them: exact as a number. -2 for anything else. */
function parseLength(value: string): number {
  if (value.length === 0 || value.length > 15) return -2
  let length = 0
  for (let i = 0; i < value.length; i++) {
    const digit = value.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return -2
    length = length * 10 + digit
  }
  return length
}

/**
 * Skips the fields of an oversized block as they arrive: fields to be indexed still enter the table, or later blocks could not be
 * decoded. A string too long for the table is not even buffered.
 */
class FieldSkipper {
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
