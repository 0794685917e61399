// The lines of messages over HTTP/1.1 (RFC 9112 sections 5 and 7), each of which has come whole: what they may contain, and nothing else. A line that
// another server, or client, could read differently is refused, not repaired.

import { latin1Text } from '../../../http2/hpack/latin1.ts'

export const CR = 0x0d
export const LF = 0x0a
export const SPACE = 0x20
const TAB = 0x09
const COMMA = 0x2c
const COLON = 0x3a
const SEMICOLON = 0x3b
const EQUALS = 0x3d
export const ZERO = 0x30
export const NINE = 0x39

/** The octets of a token (RFC 9110 section 5.6.2), as lower case; 0 for all others. */
export const TOKEN_OCTETS: Uint8Array = new Uint8Array(256)
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  TOKEN_OCTETS[char.charCodeAt(0)] = char.charCodeAt(0)
  TOKEN_OCTETS[char.toUpperCase().charCodeAt(0)] = char.charCodeAt(0)
}
/** 1 for the octets of a field value: visible ASCII, obs-text, SP and HTAB. */
export const VALUE_OCTETS: Uint8Array = new Uint8Array(256)
for (let octet = SPACE; octet < 0x100; octet++) VALUE_OCTETS[octet] = octet === 0x7f ? 0 : 1
VALUE_OCTETS[TAB] = 1
/** Longer names are made in two steps. */
const SHORT_NAME = 64
const scratch: Buffer = Buffer.allocUnsafeSlow(SHORT_NAME)

/** Names that nearly all requests or answers have, by length and first octet: their strings need not be made. */
const COMMON_NAMES: ReadonlyMap<number, string> = new Map(
  [
    'host',
    'accept',
    'user-agent',
    'connection',
    'content-type',
    'authorization',
    'content-length',
    'accept-encoding',
    'transfer-encoding',
    'date',
    'audit-id',
    'cache-control',
  ].map((name) => [(name.length << 8) | name.charCodeAt(0), name]),
)

/** The last field line. */
export class FieldLine {
  name = ''
  value = ''
  /** A tab is next to the value, which is allowed; but not all servers see the same value then. */
  hasTab = false

  /**
   * `bytes` from `from` to `to`, without the end of the line. @returns whether it is a field. No blanks in front of the name, or between it and the
   * colon: a line that continues another is none.
   */
  read(bytes: Buffer, from: number, to: number): boolean {
    let at = from
    for (let octet = 0; at < to && bytes[at] !== COLON; at++) {
      octet = TOKEN_OCTETS[bytes[at] as number] as number
      if (octet === 0) return false
      if (at - from < SHORT_NAME) scratch[at - from] = octet
    }
    if (at === from || at === to) return false
    this.name = nameText(bytes, from, at)
    let [first, last] = [at + 1, to]
    this.hasTab = false
    while (first < last && this.#isBlank(bytes[first])) first++
    while (last > first && this.#isBlank(bytes[last - 1])) last--
    for (let i = first; i < last; i++) if (VALUE_OCTETS[bytes[i] as number] === 0) return false
    this.value = latin1Text(bytes, first, last)
    return true
  }

  /** Keeps neither text. */
  forget(): void {
    this.name = ''
    this.value = ''
  }

  #isBlank(octet: number | undefined): boolean {
    if (octet === TAB) this.hasTab = true
    return octet === SPACE || octet === TAB
  }
}

/** "HTTP/1.", and one octet more: see `minorVersion`. */
export const VERSION_BYTES = 'HTTP/1.'.length + 1
const VERSION: Uint8Array = Buffer.from('HTTP/1.', 'latin1')

/** At `from`: HTTP/1.0, or HTTP/1.1; -1 = neither of them. */
export function minorVersion(bytes: Buffer, from: number): number {
  for (let i = 0; i < VERSION.length; i++) if (bytes[from + i] !== VERSION[i]) return -1
  const minor = (bytes[from + VERSION.length] ?? 0) - ZERO
  return minor === 0 || minor === 1 ? minor : -1
}

/** The name as lower case; its octets were checked, and the first ones are in `scratch`. */
function nameText(bytes: Buffer, from: number, to: number): string {
  const length = to - from
  if (length > SHORT_NAME) return latin1Text(bytes, from, to).toLowerCase()
  const common = COMMON_NAMES.get((length << 8) | (scratch[0] as number))
  return common !== undefined && isScratch(common) ? common : latin1Text(scratch, 0, length)
}

function isScratch(name: string): boolean {
  for (let i = 1; i < name.length; i++) if (name.charCodeAt(i) !== scratch[i]) return false
  return true
}

/** Options of Connection that mean something to us (RFC 9112 sections 9.3 and 9.6, RFC 9110 section 7.8), one bit each. */
export const CLOSE = 1
export const KEEP_ALIVE = 2
export const UPGRADE = 4

/** Which of them a value of Connection lists. A peer may list a million others: none of them becomes a string. */
export function connectionOptions(value: string): number {
  let found = 0
  let first = -1
  let last = -1
  for (let i = 0; i < value.length; i++) {
    const octet = value.charCodeAt(i)
    if (octet === COMMA) {
      if (first >= 0) found |= optionOf(value, first, last)
      first = -1
    } else if (octet !== SPACE && octet !== TAB) {
      if (first < 0) first = i
      last = i
    }
  }
  return first < 0 ? found : found | optionOf(value, first, last)
}

function optionOf(value: string, first: number, last: number): number {
  switch (last - first) {
    case 4:
      return isOption(value, first, 'close') ? CLOSE : 0
    case 6:
      return isOption(value, first, 'upgrade') ? UPGRADE : 0
    case 9:
      return isOption(value, first, 'keep-alive') ? KEEP_ALIVE : 0
    default:
      return 0
  }
}

/** `option` is in lower case. No control character is in a value that could be taken for the hyphen. */
function isOption(value: string, from: number, option: string): boolean {
  for (let i = 0; i < option.length; i++) {
    if ((value.charCodeAt(from + i) | 0x20) !== option.charCodeAt(i)) return false
  }
  return true
}

/** Content-Length (RFC 9112 section 6.2): digits alone; -1 = something else, or more than can be counted. */
export function contentLengthOf(value: string): number {
  if (value.length === 0) return -1
  let length = 0
  for (let i = 0; i < value.length; i++) {
    const digit = value.charCodeAt(i)
    if (digit < ZERO || digit > NINE) return -1
    length = length * 10 + digit - ZERO
    if (length > Number.MAX_SAFE_INTEGER) return -1
  }
  return length
}

/**
 * The size in front of a chunk (RFC 9112 section 7.1), `bytes` from `from` to `to`, without the end of the line; -1 = it is none. Extensions mean
 * nothing to us, but must be ones.
 */
export function chunkSizeOf(bytes: Buffer, from: number, to: number): number {
  let size = 0
  let at = from
  for (let digit = 0; at < to; at++) {
    digit = hexDigit(bytes[at] as number)
    if (digit < 0) break
    size = size * 16 + digit
    if (size > Number.MAX_SAFE_INTEGER) return -1
  }
  return at > from && areExtensions(bytes, at, to) ? size : -1
}

function hexDigit(octet: number): number {
  if (octet >= ZERO && octet <= NINE) return octet - ZERO
  const lower = octet | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Any number of `;name` and `;name=value`, both tokens: quoted values, which no client sends, are not read. */
function areExtensions(bytes: Buffer, from: number, to: number): boolean {
  let at = from
  while (at < to) {
    if (bytes[at] !== SEMICOLON) return false
    const name = tokenEnd(bytes, at + 1, to)
    if (name === at + 1) return false
    at = name
    if (bytes[at] !== EQUALS || at === to) continue
    const value = tokenEnd(bytes, at + 1, to)
    if (value === at + 1) return false
    at = value
  }
  return true
}

function tokenEnd(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to && TOKEN_OCTETS[bytes[at] as number] !== 0) at++
  return at
}
