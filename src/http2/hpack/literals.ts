// How a decoder reads integers, strings and literal fields (RFC 7541 sections 5 and 6.2). The field rules of a literal
// are checked here, once: the flags go into the table with it.

import { type DecoderTable, ENTRY_OVERHEAD, STATIC_FLAGS } from './decoder-table.ts'
import { KNOWN_FLAGS, NAME_FLAGS, nameFlags, valueFlags } from './field-rules.ts'
import { huffmanBound, huffmanDecode } from './huffman.ts'
import { latin1Text } from './latin1.ts'
import { Scratch } from './scratch.ts'
import { KNOWN_NAMES, knownNumber, STATIC_COUNT, STATIC_NAMES } from './static.ts'

/** No valid integer in a block is as large as this. */
const MAX_INTEGER = 2 ** 28

/** Names of the static table whose last literal is cached. */
const PATH_FIRST: number = STATIC_NAMES.indexOf(':path')
const PATH_LAST: number = STATIC_NAMES.lastIndexOf(':path')
const AUTHORIZATION_INDEX: number = STATIC_NAMES.indexOf('authorization')

/** Where Huffman-coded strings are decoded to. One thread decodes one string at a time, so all decoders share it. */
const SCRATCH_BYTES = 16_384
const SCRATCH: Buffer = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
/** For longer strings. */
const longScratch: Scratch = new Scratch()

/** Reads the literals of one decoder; its fields hold the last result. */
export class LiteralReader {
  /** Offset behind what was read. */
  at = 0
  name = ''
  value = ''
  /** Size, as the table and the list count it. */
  size = 0
  flags = 0
  readonly #table: DecoderTable
  readonly #path: LiteralMemo = new LiteralMemo()
  readonly #authorization: LiteralMemo = new LiteralMemo()
  /** The octets of the last string. */
  #octets: Uint8Array = SCRATCH
  #from = 0
  #to = 0

  constructor(table: DecoderTable) {
    this.#table = table
  }

  /** Releases the block and the last literal. */
  forget(): void {
    this.#octets = SCRATCH
    this.value = ''
  }

  /**
   * Reads a literal field whose first octet is `first`; `at` is behind it. Inserts it into the table if it is to be indexed.
   * False: a decoding error.
   */
  field(block: Buffer, at: number, end: number, first: number): boolean {
    const indexing = (first & 0x40) !== 0
    if (!indexing && (first & 0x20) !== 0) return false
    const prefix = indexing ? 0x3f : 0x0f
    let index = first & prefix
    this.at = at
    if (index === prefix) index = this.integer(block, at, end, prefix)
    if (index < 0 || !this.#nameOf(block, end, index)) return false
    // One that enters the table comes as its index from then on: it is not cached.
    if (!(indexing ? this.#valueOf(block, end) : this.#remembered(block, end, index))) return false
    this.size = this.name.length + this.value.length + ENTRY_OVERHEAD
    if (indexing) this.#table.insert(this.name, this.value, this.size, this.flags)
    return true
  }

  /** Sets `value` and adds its flags to `flags`; for some fields from the cache. */
  #remembered(block: Buffer, end: number, nameIndex: number): boolean {
    let memo = this.#path
    if (nameIndex === AUTHORIZATION_INDEX) memo = this.#authorization
    else if (nameIndex < PATH_FIRST || nameIndex > PATH_LAST) return this.#valueOf(block, end)
    const start = this.at
    const behind = memo.match(block, start, end)
    if (behind >= 0) {
      this.at = behind
      this.value = memo.value
      this.flags = memo.flags
      return true
    }
    if (!this.#valueOf(block, end)) return false
    memo.keep(block, start, this.at, this.value, this.flags)
    return true
  }

  #valueOf(block: Buffer, end: number): boolean {
    if (!this.#string(block, this.at, end)) return false
    const flags = this.flags
    this.flags = flags | valueFlags(flags, this.#octets, this.#from, this.#to)
    this.value = latin1Text(this.#octets, this.#from, this.#to)
    return true
  }

  /** Sets `name` and its flags from a table entry, or from the string that follows when `index` is 0. */
  #nameOf(block: Buffer, end: number, index: number): boolean {
    if (index === 0) {
      if (!this.#string(block, this.at, end)) return false
      const known = knownNumber(this.#octets, this.#from, this.#to)
      this.name = known >= 0 ? (KNOWN_NAMES[known] as string) : latin1Text(this.#octets, this.#from, this.#to)
      this.flags = known >= 0 ? (KNOWN_FLAGS[known] as number) : nameFlags(this.#octets, this.#from, this.#to)
    } else if (index <= STATIC_COUNT) {
      this.name = STATIC_NAMES[index] as string
      this.flags = STATIC_FLAGS[index] as number
    } else {
      const age = index - STATIC_COUNT - 1
      if (!this.#table.has(age)) return false
      const slot = this.#table.slotOf(age)
      this.name = this.#table.names[slot] as string
      this.flags = (this.#table.flags[slot] as number) & NAME_FLAGS
    }
    return true
  }

  /** A string literal (RFC 7541 section 5.2): sets #octets, #from, #to to its decoded octets, and `at` behind it. */
  #string(block: Buffer, start: number, end: number): boolean {
    if (start >= end) return false
    const first = block[start] as number
    let at = start + 1
    let length = first & 0x7f
    if (length === 0x7f) {
      length = this.integer(block, at, end, 0x7f)
      at = this.at
    }
    if (length < 0 || length > end - at) return false
    this.at = at + length
    if (first < 0x80) {
      this.#octets = block
      this.#from = at
      this.#to = at + length
      return true
    }
    const room = huffmanBound(length)
    this.#octets = room <= SCRATCH_BYTES ? SCRATCH : longScratch.of(room)
    this.#from = 0
    this.#to = huffmanDecode(block, at, at + length, this.#octets)
    return this.#to >= 0
  }

  /** What follows a full prefix (RFC 7541 section 5.1); sets `at` behind it. -1 when truncated or too large. */
  integer(block: Buffer, start: number, end: number, prefix: number): number {
    let value = prefix
    let unit = 1
    for (let at = start; at < end && at < start + 5; at++) {
      const octet = block[at] as number
      value += (octet & 0x7f) * unit
      unit *= 128
      if (octet < 0x80) {
        this.at = at + 1
        return value <= MAX_INTEGER ? value : -1
      }
    }
    this.at = end
    return -1
  }
}

// A literal that is repeated octet for octet need not be decoded again. Many HTTP/2 libraries never put `:path` and
// `authorization` into the table, so that the path of a poll or a bearer token is sent in full with each request.

/** Longer literals are not cached. A service account token has about 1,200 characters. */
const MAX_OCTETS = 2048

/** The last string literal of one field, as on the wire and as decoded. */
class LiteralMemo {
  value = ''
  flags = 0
  #octets: Uint8Array = new Uint8Array(0)
  #length = 0

  /**
   * The end of the cached literal if it is at `at` again, else -1. Its length is part of it (RFC 7541 section
   * 5.2), so equal octets are the whole literal.
   */
  match(block: Uint8Array, at: number, end: number): number {
    const length = this.#length
    if (length === 0 || length > end - at) return -1
    const octets = this.#octets
    for (let i = 0; i < length; i++) if (block[at + i] !== octets[i]) return -1
    return at + length
  }

  /** Caches the literal from `from` to `to` and its value. */
  keep(block: Buffer, from: number, to: number, value: string, flags: number): void {
    const length = to - from
    this.value = value
    this.flags = flags
    this.#length = 0
    if (length > MAX_OCTETS) {
      this.value = ''
      return
    }
    if (length > this.#octets.length) this.#octets = new Uint8Array(Math.max(64, 2 ** Math.ceil(Math.log2(length))))
    block.copy(this.#octets, 0, from, to)
    this.#length = length
  }
}
