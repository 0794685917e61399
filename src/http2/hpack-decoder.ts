// HPACK decoding (RFC 7541) with the field rules of HTTP/2 (RFC 9113 section 8.2) on the way. A field that the table
// knows costs a few array reads: its strings exist already and its rules were checked when it entered.

import {
  BAD_NAME,
  BAD_VALUE,
  CONTENT_LENGTH,
  KNOWN_FLAGS,
  NAME_FLAGS,
  nameFlags,
  PSEUDO_BITS,
  valueFlags,
} from './field-rules.ts'
import { KNOWN_NAMES, knownNumber, STATIC_COUNT, STATIC_NAMES, STATIC_NUMBERS, STATIC_VALUES } from './hpack-static.ts'
import { huffmanBound, huffmanDecode } from './huffman.ts'
import { latin1Text } from './latin1.ts'
import { LiteralMemo } from './literal-memo.ts'

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

/** What an entry costs beyond its octets (RFC 7541 section 4.1, RFC 9113 section 6.5.2). */
const ENTRY_OVERHEAD = 32
/** Size of the table until the peer knows our SETTINGS (RFC 9113 section 6.5.2). */
const INITIAL_TABLE_BYTES = 4096
/** No integer in a block means anything as large as this. */
const MAX_INTEGER = 2 ** 28

const STATIC_FLAGS: Uint16Array = Uint16Array.from(STATIC_NUMBERS, (number) => KNOWN_FLAGS[number] ?? 0)
const STATIC_SIZES: Uint16Array = Uint16Array.from(
  STATIC_NAMES,
  (name, index) => name.length + (STATIC_VALUES[index] ?? '').length + ENTRY_OVERHEAD,
)

/** Names of the static table whose last literal is remembered. */
const PATH_FIRST: number = STATIC_NAMES.indexOf(':path')
const PATH_LAST: number = STATIC_NAMES.lastIndexOf(':path')
const AUTHORIZATION_INDEX: number = STATIC_NAMES.indexOf('authorization')

/** Where Huffman-coded strings are decoded to. One thread decodes one string at a time, so all decoders share it. */
const SCRATCH_BYTES = 16_384
const SCRATCH: Buffer = Buffer.allocUnsafeSlow(SCRATCH_BYTES)

/** Decodes the field blocks that one peer sends on one connection, in order. */
export class HpackDecoder {
  /** Name, value, name, value, ... of the last block when it was DECODED, else empty. The caller may keep it. */
  fields: string[] = []
  /** Of the last block: how many pseudo-header fields, and which (METHOD, PATH, ... of field-rules.ts). */
  pseudoCount = 0
  pseudoMask = 0
  /** `content-length` of the last block; -1 when there is none, -2 when it is no number or two contradict each other. */
  contentLength = -1

  readonly #limit: number
  /** The dynamic table: a ring. The newest entry is at #newest, `#count` entries are alive. */
  readonly #names: string[]
  readonly #values: string[]
  readonly #sizes: Int32Array
  readonly #flags: Uint16Array
  readonly #mask: number
  #newest = 0
  #count = 0
  #bytes = 0
  #maxBytes = INITIAL_TABLE_BYTES

  readonly #path: LiteralMemo = new LiteralMemo()
  readonly #authorization: LiteralMemo = new LiteralMemo()

  /** What the last read of an integer, a string or a literal brought. */
  #at = 0
  #octets: Uint8Array = SCRATCH
  #from = 0
  #to = 0
  #name = ''
  #value = ''
  #size = 0
  #fieldFlags = 0

  /** `maxTableBytes`: SETTINGS_HEADER_TABLE_SIZE that we announce, the most that the peer may use. */
  constructor(maxTableBytes: number) {
    this.#limit = maxTableBytes
    // A peer that has not seen our SETTINGS yet uses the initial size.
    const entries = Math.max(maxTableBytes, INITIAL_TABLE_BYTES) / ENTRY_OVERHEAD
    const capacity = 2 ** Math.ceil(Math.log2(entries))
    this.#names = new Array<string>(capacity).fill('')
    this.#values = new Array<string>(capacity).fill('')
    this.#sizes = new Int32Array(capacity)
    this.#flags = new Uint16Array(capacity)
    this.#mask = capacity - 1
  }

  /**
   * Decodes one complete field block, `start` to `end`. `maxListBytes` bounds the list as RFC 9113 section 6.5.2 counts
   * it: name, value and 32 for each field. Nothing of `block` is kept. Never throws.
   */
  decode(block: Buffer, start: number, end: number, maxListBytes: number): 0 | 1 | 2 | 3 {
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
          index = this.#integer(block, at, end, 0x7f)
          at = this.#at
        }
        if (index > STATIC_COUNT) {
          const age = index - STATIC_COUNT - 1
          if (age >= this.#count) return this.#fail()
          const slot = (this.#newest - age) & this.#mask
          name = this.#names[slot] as string
          value = this.#values[slot] as string
          flags = this.#flags[slot] as number
          listBytes += this.#sizes[slot] as number
        } else {
          if (index <= 0) return this.#fail()
          name = STATIC_NAMES[index] as string
          value = STATIC_VALUES[index] as string
          flags = STATIC_FLAGS[index] as number
          listBytes += STATIC_SIZES[index] as number
        }
      } else {
        if (!this.#literal(block, at, end, octet)) return this.#fail()
        at = this.#at
        name = this.#name
        value = this.#value
        flags = this.#fieldFlags
        listBytes += this.#size
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
    this.#forget()
    this.pseudoMask = pseudoMask
    this.pseudoCount = pseudoCount
    if (!bad && listBytes <= maxListBytes && fields.length <= 2 * MAX_FIELDS) return DECODED
    this.fields = []
    return bad ? MALFORMED : TOO_LARGE
  }

  #fail(): 1 {
    this.#forget()
    this.fields = []
    return COMPRESSION
  }

  /** Lets go of the block and of the last literal. */
  #forget(): void {
    this.#octets = SCRATCH
    this.#value = ''
  }

  /** Size updates come before the first field (RFC 7541 section 4.2). Returns where the fields begin, or -1. */
  #sizeUpdates(block: Buffer, start: number, end: number): number {
    let at = start
    while (at < end && ((block[at] as number) & 0xe0) === 0x20) {
      let size = (block[at++] as number) & 0x1f
      if (size === 0x1f) {
        size = this.#integer(block, at, end, 0x1f)
        at = this.#at
      }
      if (size < 0 || size > this.#limit) return -1
      this.#maxBytes = size
      this.#evict(size)
    }
    return at
  }

  /** Reads a literal field whose first octet is `first`; `at` is behind it. False: a decoding error. */
  #literal(block: Buffer, at: number, end: number, first: number): boolean {
    const indexing = (first & 0x40) !== 0
    if (!indexing && (first & 0x20) !== 0) return false
    const prefix = indexing ? 0x3f : 0x0f
    let index = first & prefix
    this.#at = at
    if (index === prefix) index = this.#integer(block, at, end, prefix)
    if (index < 0 || !this.#nameOf(block, end, index)) return false
    if (!this.#remembered(block, end, index)) return false
    this.#size = this.#name.length + this.#value.length + ENTRY_OVERHEAD
    if (indexing) this.#insert()
    return true
  }

  /** Sets #value and adds its flags to #fieldFlags; of some fields from memory. */
  #remembered(block: Buffer, end: number, nameIndex: number): boolean {
    let memo = this.#path
    if (nameIndex === AUTHORIZATION_INDEX) memo = this.#authorization
    else if (nameIndex < PATH_FIRST || nameIndex > PATH_LAST) return this.#valueOf(block, end)
    const start = this.#at
    const behind = memo.match(block, start, end)
    if (behind >= 0) {
      this.#at = behind
      this.#value = memo.value
      this.#fieldFlags = memo.flags
      return true
    }
    if (!this.#valueOf(block, end)) return false
    memo.keep(block, start, this.#at, this.#value, this.#fieldFlags)
    return true
  }

  #valueOf(block: Buffer, end: number): boolean {
    if (!this.#string(block, this.#at, end)) return false
    const flags = this.#fieldFlags
    this.#fieldFlags = flags | valueFlags(flags, this.#octets, this.#from, this.#to)
    this.#value = latin1Text(this.#octets, this.#from, this.#to)
    return true
  }

  /** Sets #name and its flags from a table entry, or from the string that follows when `index` is 0. */
  #nameOf(block: Buffer, end: number, index: number): boolean {
    if (index === 0) {
      if (!this.#string(block, this.#at, end)) return false
      const known = knownNumber(this.#octets, this.#from, this.#to)
      this.#name = known >= 0 ? (KNOWN_NAMES[known] as string) : latin1Text(this.#octets, this.#from, this.#to)
      this.#fieldFlags = known >= 0 ? (KNOWN_FLAGS[known] as number) : nameFlags(this.#octets, this.#from, this.#to)
    } else if (index <= STATIC_COUNT) {
      this.#name = STATIC_NAMES[index] as string
      this.#fieldFlags = STATIC_FLAGS[index] as number
    } else {
      const age = index - STATIC_COUNT - 1
      if (age >= this.#count) return false
      const slot = (this.#newest - age) & this.#mask
      this.#name = this.#names[slot] as string
      this.#fieldFlags = (this.#flags[slot] as number) & NAME_FLAGS
    }
    return true
  }

  /** A string literal (RFC 7541 section 5.2): sets #octets, #from, #to to its decoded octets, and #at behind it. */
  #string(block: Buffer, start: number, end: number): boolean {
    if (start >= end) return false
    const first = block[start] as number
    let at = start + 1
    let length = first & 0x7f
    if (length === 0x7f) {
      length = this.#integer(block, at, end, 0x7f)
      at = this.#at
    }
    if (length < 0 || length > end - at) return false
    this.#at = at + length
    if (first < 0x80) {
      this.#octets = block
      this.#from = at
      this.#to = at + length
      return true
    }
    const room = huffmanBound(length)
    this.#octets = room <= SCRATCH_BYTES ? SCRATCH : Buffer.allocUnsafeSlow(room)
    this.#from = 0
    this.#to = huffmanDecode(block, at, at + length, this.#octets)
    return this.#to >= 0
  }

  /** What follows a full prefix (RFC 7541 section 5.1); sets #at behind it. -1 when truncated or too large. */
  #integer(block: Buffer, start: number, end: number, prefix: number): number {
    let value = prefix
    let unit = 1
    for (let at = start; at < end && at < start + 5; at++) {
      const octet = block[at] as number
      value += (octet & 0x7f) * unit
      unit *= 128
      if (octet < 0x80) {
        this.#at = at + 1
        return value <= MAX_INTEGER ? value : -1
      }
    }
    this.#at = end
    return -1
  }

  /** The literal just read becomes the newest entry. One that is too large empties the table (RFC 7541 section 4.4). */
  #insert(): void {
    if (this.#size > this.#maxBytes) {
      this.#evict(0)
      return
    }
    this.#evict(this.#maxBytes - this.#size)
    const slot = (this.#newest + 1) & this.#mask
    this.#newest = slot
    this.#names[slot] = this.#name
    this.#values[slot] = this.#value
    this.#sizes[slot] = this.#size
    this.#flags[slot] = this.#fieldFlags
    this.#bytes += this.#size
    this.#count++
  }

  /** Drops the oldest entries until at most `bytes` are left, and their strings with them. */
  #evict(bytes: number): void {
    while (this.#bytes > bytes) {
      const slot = (this.#newest - --this.#count) & this.#mask
      this.#bytes -= this.#sizes[slot] as number
      this.#names[slot] = ''
      this.#values[slot] = ''
    }
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
