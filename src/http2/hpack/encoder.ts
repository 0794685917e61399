// HPACK encoding (RFC 7541). Strings are sent as plain octets, without Huffman. Whether a field gets a table entry depends on
// its name, so that fields that differ in each message do not evict the useful ones.

import type { EncodedFields } from '../../kit/api/stream.ts'
import { writeLatin1 } from './latin1.ts'
import { blockScratch } from './scratch.ts'
import { KNOWN_NAMES, KNOWN_NUMBERS, STATIC_COUNT, STATIC_INDEX, STATIC_NAMES, STATIC_VALUES } from './static.ts'

/** More of the peer's table is never used; so much of it is until the peer says otherwise (RFC 9113 section 6.5.2). */
export const MAX_TABLE_BYTES = 4096
/** Overhead of an entry (RFC 7541 section 4.1). */
const ENTRY_OVERHEAD = 32
/** A power of two; twice as many when all are taken. Most connections have few fields that recur. */
const FIRST_SLOTS = 16
/** Longer values are rarely sent twice, and would evict many others. */
const MAX_INDEXED_VALUE = 1024
/** Maximum entries of one name that are compared. */
const MAX_CHAIN = 8
/** Type octet and two lengths of at most 6 octets, with room to spare. */
const FIELD_BOUND = 16
/** First octets of literal fields (RFC 7541 sections 6.2.1 to 6.2.3). */
const INDEXED = 0x40
const NOT_INDEXED = 0x00
const NEVER_INDEXED = 0x10
/** Two table size updates. */
const UPDATES_BOUND = 16

/** Entries of the static table that have this name and a value. */
const STATIC_MATCHES: Uint8Array = Uint8Array.from(
  KNOWN_NAMES,
  (name) => STATIC_NAMES.filter((other, index) => other === name && STATIC_VALUES[index] !== '').length,
)

/** Slots for the last values of unknown names, for ON_REPEAT. A power of two. */
const REPEAT_SLOTS = 16

/** Fields per list whose positions are cached: requests and responses of a connection have the same fields in the same positions. */
const PLACES = 16
/** Result of `#field` for a literal. Otherwise an entry of the dynamic table, or minus an index of the static one. */
const LITERAL = 0

/** Encodes the field blocks of one direction of one connection, in order. */
export class HpackEncoder {
  /** The dynamic table: entry number n (from 1, never reused) is in slot n mod the number of slots. */
  #values: string[] = new Array<string>(FIRST_SLOTS).fill('')
  #sizes: Int32Array = new Int32Array(FIRST_SLOTS)
  /** For each slot, the number of the entry before with the same name, 0 when there was none. */
  #previous: Float64Array = new Float64Array(FIRST_SLOTS)
  /** For each slot, the name when it is not a known one, else ''. */
  #names: string[] = new Array<string>(FIRST_SLOTS).fill('')
  /** Slots, less one. */
  #mask = FIRST_SLOTS - 1
  /** The last entry with each known name, dead or alive, 0 for none; then those of other names that are alive. */
  readonly #latest: Float64Array = new Float64Array(KNOWN_NAMES.length)
  readonly #others: Map<string, number> = new Map()
  #inserted = 0
  #count = 0
  #bytes = 0
  #maxBytes = MAX_TABLE_BYTES
  /** The smallest size since the last block, -1 when the size has not changed. */
  #smallest = -1

  /** The value last sent with each known name that is indexed on repetition; then the same for a few other names. */
  readonly #repeats: string[] = new Array<string>(KNOWN_NAMES.length).fill('')
  readonly #otherNames: string[] = new Array<string>(REPEAT_SLOTS).fill('')
  readonly #otherValues: string[] = new Array<string>(REPEAT_SLOTS).fill('')

  // By position in the previous list: a known name, its number, and the table entry found for its value. Saves looking up what has not
  // changed.
  readonly #placeNames: string[] = new Array<string>(PLACES).fill('')
  readonly #placeNumbers: Uint8Array = new Uint8Array(PLACES)
  readonly #placeValues: string[] = new Array<string>(PLACES).fill('')
  readonly #placeFound: Float64Array = new Float64Array(PLACES)
  /** Result of `#field`. */
  #found = LITERAL

  /**
   * SETTINGS_HEADER_TABLE_SIZE of the peer: an upper bound, of which at most 4096 are used. The size updates go in front
   * of the next block (RFC 7541 section 4.2).
   */
  setMaxTableBytes(bytes: number): void {
    const wanted = Math.min(bytes, MAX_TABLE_BYTES)
    if (wanted === this.#maxBytes) return
    this.#smallest = this.#smallest < 0 ? wanted : Math.min(this.#smallest, wanted)
    this.#maxBytes = wanted
    this.#evict(wanted)
  }

  /**
   * Encodes a list as one complete field block into `out` from `at` on, where `encodeBound(list)` octets are free.
   * Returns the offset behind it. Names are lower-case; all strings are latin1, one character for each octet.
   */
  encode(list: readonly string[], out: Buffer, at: number): number {
    let to = this.#smallest < 0 ? at : this.#updates(out, at)
    for (let i = 0; i + 1 < list.length; i += 2) {
      to = this.#placed(i >>> 1, list[i] as string, list[i + 1] as string, out, to)
    }
    return to
  }

  #placed(place: number, name: string, value: string, out: Buffer, at: number): number {
    if (place < PLACES && this.#placeNames[place] === name) {
      const found = this.#placeFound[place] as number
      if (found !== LITERAL && this.#placeValues[place] === value) {
        if (found < 0) {
          out[at] = 0x80 | -found
          return at + 1
        }
        if (found > this.#inserted - this.#count) return writeInteger(out, at, 0x80, 0x7f, this.#indexOf(found))
      }
      return this.#remembered(place, value, this.#field(this.#placeNumbers[place] as number, name, value, out, at))
    }
    const known = KNOWN_NUMBERS.get(name)
    if (known === undefined) return this.#otherField(name, value, out, at)
    const to = this.#field(known, name, value, out, at)
    if (place >= PLACES) return to
    this.#placeNames[place] = name
    this.#placeNumbers[place] = known
    return this.#remembered(place, value, to)
  }

  /** Values that are in no table are not cached. */
  #remembered(place: number, value: string, to: number): number {
    this.#placeFound[place] = this.#found
    this.#placeValues[place] = this.#found === LITERAL ? '' : value
    return to
  }

  #updates(out: Buffer, at: number): number {
    let to = at
    if (this.#smallest < this.#maxBytes) to = writeInteger(out, to, 0x20, 0x1f, this.#smallest)
    this.#smallest = -1
    return writeInteger(out, to, 0x20, 0x1f, this.#maxBytes)
  }

  /** A field with a known name. Sets `#found`. */
  #field(known: number, name: string, value: string, out: Buffer, at: number): number {
    this.#found = LITERAL
    const first = STATIC_INDEX[known] as number
    for (let index = first + (STATIC_MATCHES[known] as number) - 1; index >= first; index--) {
      if (STATIC_VALUES[index] === value && index > 0) {
        this.#found = -index
        out[at] = 0x80 | index
        return at + 1
      }
    }
    const policy = KNOWN_POLICIES[known] as number
    if (policy > ON_REPEAT) {
      return writeLiteral(out, at, policy === NEVER_INDEX ? NEVER_INDEXED : NOT_INDEXED, first, name, value)
    }
    const latest = this.#alive(this.#latest[known] as number)
    const found = this.#find(latest, value)
    if (found > 0) {
      this.#found = found
      return writeInteger(out, at, 0x80, 0x7f, this.#indexOf(found))
    }
    const nameIndex = first > 0 || latest === 0 ? first : this.#indexOf(latest)
    if (policy === ON_REPEAT && this.#repeats[known] !== value) {
      this.#repeats[known] = value.length <= MAX_INDEXED_VALUE ? value : ''
      return writeLiteral(out, at, NOT_INDEXED, nameIndex, name, value)
    }
    if (!this.#worthy(name, value)) return writeLiteral(out, at, NOT_INDEXED, nameIndex, name, value)
    this.#latest[known] = this.#insert('', name, value, latest)
    return writeLiteral(out, at, INDEXED, nameIndex, name, value)
  }

  #otherField(name: string, value: string, out: Buffer, at: number): number {
    if (otherPolicy(name) === NEVER_INDEX) return writeLiteral(out, at, NEVER_INDEXED, 0, name, value)
    const latest = this.#alive(this.#others.get(name) ?? 0)
    const found = this.#find(latest, value)
    if (found > 0) return writeInteger(out, at, 0x80, 0x7f, this.#indexOf(found))
    const nameIndex = latest === 0 ? 0 : this.#indexOf(latest)
    if (!this.#repeated(name, value) || !this.#worthy(name, value)) {
      return writeLiteral(out, at, NOT_INDEXED, nameIndex, name, value)
    }
    this.#others.set(name, this.#insert(name, name, value, latest))
    return writeLiteral(out, at, INDEXED, nameIndex, name, value)
  }

  #repeated(name: string, value: string): boolean {
    if (value.length > MAX_INDEXED_VALUE || name.length > MAX_INDEXED_VALUE) return false
    const slot = (name.length * 7 + name.charCodeAt(name.length - 1)) & (REPEAT_SLOTS - 1)
    if (this.#otherNames[slot] === name && this.#otherValues[slot] === value) return true
    this.#otherNames[slot] = name
    this.#otherValues[slot] = value
    return false
  }

  #worthy(name: string, value: string): boolean {
    return value.length <= MAX_INDEXED_VALUE && name.length + value.length + ENTRY_OVERHEAD <= this.#maxBytes
  }

  #alive(entry: number): number {
    return entry > this.#inserted - this.#count ? entry : 0
  }

  /** The live entry with this value among those chained from `entry`; 0 when there is none. */
  #find(entry: number, value: string): number {
    let link = entry
    for (let steps = 0; link > 0 && steps < MAX_CHAIN; steps++) {
      const slot = link & this.#mask
      if (this.#values[slot] === value) return link
      link = this.#alive(this.#previous[slot] as number)
    }
    return 0
  }

  #indexOf(entry: number): number {
    return STATIC_COUNT + 1 + this.#inserted - entry
  }

  /** Returns the number of the new entry. The caller has checked that it fits; `otherName` is '' for a known name. */
  #insert(otherName: string, name: string, value: string, previous: number): number {
    const size = name.length + value.length + ENTRY_OVERHEAD
    this.#evict(this.#maxBytes - size)
    if (this.#count > this.#mask) this.#grow()
    const entry = ++this.#inserted
    const slot = entry & this.#mask
    this.#names[slot] = otherName
    this.#values[slot] = value
    this.#sizes[slot] = size
    this.#previous[slot] = previous
    this.#bytes += size
    this.#count++
    return entry
  }

  /** Twice as many slots. Those of a table of at most 4096 octets become 128 at most. */
  #grow(): void {
    const [values, sizes, previous, names, before] = [
      this.#values,
      this.#sizes,
      this.#previous,
      this.#names,
      this.#mask,
    ]
    const slots = 2 * (before + 1)
    this.#values = new Array<string>(slots).fill('')
    this.#sizes = new Int32Array(slots)
    this.#previous = new Float64Array(slots)
    this.#names = new Array<string>(slots).fill('')
    this.#mask = slots - 1
    for (let entry = this.#inserted - this.#count + 1; entry <= this.#inserted; entry++) {
      const [from, to] = [entry & before, entry & this.#mask]
      this.#values[to] = values[from] as string
      this.#sizes[to] = sizes[from] as number
      this.#previous[to] = previous[from] as number
      this.#names[to] = names[from] as string
    }
  }

  #evict(bytes: number): void {
    while (this.#bytes > bytes) {
      const entry = this.#inserted - --this.#count
      const slot = entry & this.#mask
      const name = this.#names[slot] as string
      if (name !== '') {
        if (this.#others.get(name) === entry) this.#others.delete(name)
        this.#names[slot] = ''
      }
      this.#values[slot] = ''
      this.#bytes -= this.#sizes[slot] as number
    }
  }
}

/** How many octets `encode` needs at most. */
export function encodeBound(list: readonly string[]): number {
  let bound = UPDATES_BOUND + FIELD_BOUND * (list.length >>> 1)
  for (let i = 0; i < list.length; i++) bound += (list[i] as string).length
  return bound
}

/** The size of a list of so many fields as RFC 9113 section 6.5.2 counts it, from its `encodeBound`. */
export function listBytesOf(bound: number, fields: number): number {
  return bound - UPDATES_BOUND + (ENTRY_OVERHEAD - FIELD_BOUND) * fields
}

/**
 * Encodes fields so that the octets are right on every connection at any time: literals that enter no table and refer
 * to no table but the static one, for names (RFC 7541 sections 6.2.2 and 6.2.3).
 */
export function encodeShared(list: readonly string[]): EncodedFields {
  const bound = encodeBound(list)
  const out = blockScratch.of(bound)
  let to = 0
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = list[i] as string
    const known = KNOWN_NUMBERS.get(name)
    const policy = known === undefined ? otherPolicy(name) : (KNOWN_POLICIES[known] as number)
    const index = known === undefined ? 0 : (STATIC_INDEX[known] as number)
    to = writeLiteral(out, to, policy === NEVER_INDEX ? NEVER_INDEXED : NOT_INDEXED, index, name, list[i + 1] as string)
  }
  return { octets: new Uint8Array(out.subarray(0, to)), listBytes: listBytesOf(bound, list.length >>> 1) }
}

/** A literal field (RFC 7541 section 6.2): `kind` and `prefix` say which; `nameIndex` 0 spells the name out. */
function writeLiteral(out: Buffer, at: number, kind: number, nameIndex: number, name: string, value: string): number {
  const to = writeInteger(out, at, kind, kind === INDEXED ? 0x3f : 0x0f, nameIndex)
  return writeText(out, nameIndex === 0 ? writeText(out, to, name) : to, value)
}

/** RFC 7541 section 5.1. */
function writeInteger(out: Buffer, at: number, kind: number, prefix: number, value: number): number {
  if (value < prefix) {
    out[at] = kind | value
    return at + 1
  }
  out[at] = kind | prefix
  let to = at + 1
  let rest = value - prefix
  for (; rest >= 0x80; rest >>>= 7) out[to++] = (rest & 0x7f) | 0x80
  out[to] = rest
  return to + 1
}

/** A string literal without Huffman (RFC 7541 section 5.2). */
function writeText(out: Buffer, at: number, text: string): number {
  return writeLatin1(out, writeInteger(out, at, 0, 0x7f, text.length), text)
}

// Which fields an HPACK encoder puts into its table. The table holds some forty fields and evicts the oldest, so what
// differs in each message stays out; identities and credentials always stay out.

/** Into the table at once: few distinct values, sent repeatedly. */
const INDEX_AT_ONCE = 0
/** Into the table when the same value is repeated, with no other new value in between. */
const ON_REPEAT = 1
/** Differs in each message: literal without indexing. */
const DO_NOT_INDEX = 2
/** A credential or an identity: never-indexed literal, also for every later hop (RFC 7541 section 7.1.3). */
const NEVER_INDEX = 3

// biome-ignore format: word lists
const POLICIES: ReadonlyMap<string, number> = new Map([
  ...[
    ':method', ':authority', ':scheme', ':status', ':protocol', 'accept', 'accept-encoding', 'accept-language', 'allow',
    'cache-control', 'content-encoding', 'content-type', 'server', 'strict-transport-security', 'te', 'user-agent',
    'vary', 'x-content-type-options', 'x-frame-options', 'content-security-policy', 'alt-svc', 'kubectl-command',
    'x-forwarded-host', 'x-forwarded-proto', 'x-kubernetes-pf-flowschema-uid', 'x-kubernetes-pf-prioritylevel-uid',
  ].map((name): [string, number] => [name, INDEX_AT_ONCE]),
  ...[
    'age', 'audit-id', 'content-length', 'content-range', 'etag', 'expires', 'if-match', 'if-modified-since',
    'if-none-match', 'if-range', 'if-unmodified-since', 'kubectl-session', 'last-modified', 'link', 'location', 'range',
    'referer', 'traceparent', 'tracestate', 'x-request-id',
  ].map((name): [string, number] => [name, DO_NOT_INDEX]),
  ...[
    'authorization', 'cookie', 'set-cookie', 'proxy-authorization', 'www-authenticate', 'proxy-authenticate',
    'impersonate-user', 'impersonate-group', 'impersonate-uid', 'x-remote-user', 'x-remote-group',
  ].map((name): [string, number] => [name, NEVER_INDEX]),
])

/** By number of the known name. */
const KNOWN_POLICIES: Uint8Array = Uint8Array.from(KNOWN_NAMES, (name) => POLICIES.get(name) ?? ON_REPEAT)

/** Prefixes of names that carry an identity. */
const IDENTITY_PREFIXES: readonly string[] = ['impersonate-', 'x-remote-']

/** The policy of an unknown name. */
function otherPolicy(name: string): number {
  for (let i = 0; i < IDENTITY_PREFIXES.length; i++) {
    if (name.startsWith(IDENTITY_PREFIXES[i] as string)) return NEVER_INDEX
  }
  return ON_REPEAT
}
