// Which header fields HTTP/2 allows (RFC 9113 section 8.2, RFC 9110 sections 5.1 and 5.5). Names and values are checked
// once, when a literal is read or enters a table; the flags stay with the table entry.

import { KNOWN_NAMES } from './static.ts'

/** Pseudo-header fields (RFC 9113 section 8.3, RFC 8441 section 4): bits of a field's flags, and of `pseudoMask`. */
export const PSEUDO_METHOD = 1
export const PSEUDO_PATH = 2
export const PSEUDO_AUTHORITY = 4
export const PSEUDO_SCHEME = 8
const PSEUDO_PROTOCOL = 16
export const PSEUDO_STATUS = 32
export const PSEUDO_BITS = 63
/** `content-length`. */
export const CONTENT_LENGTH = 64
/** `te`, of which only the value "trailers" is allowed. */
export const TE = 128
/** The name makes the field malformed, whatever its value. */
export const BAD_NAME = 256
export const BAD_VALUE = 512
/** The part of the flags that comes from the name alone. */
export const NAME_FLAGS = 511

/** Connection-specific (RFC 9113 section 8.2.2). */
const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

const SPECIAL: ReadonlyMap<string, number> = new Map([
  [':method', PSEUDO_METHOD],
  [':path', PSEUDO_PATH],
  [':authority', PSEUDO_AUTHORITY],
  [':scheme', PSEUDO_SCHEME],
  [':protocol', PSEUDO_PROTOCOL],
  [':status', PSEUDO_STATUS],
  ['content-length', CONTENT_LENGTH],
  ['te', TE],
])

/** Flags of the known names, by number (static.ts). */
export const KNOWN_FLAGS: Uint16Array = Uint16Array.from(KNOWN_NAMES, (name) =>
  CONNECTION_SPECIFIC.has(name) ? BAD_NAME : (SPECIAL.get(name) ?? 0),
)

/** 1 for the octets of a field name: those of a token (RFC 9110 section 5.6.2) but upper case (RFC 9113 8.2.1). */
const NAME_OCTETS: Uint8Array = new Uint8Array(256)
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") NAME_OCTETS[char.charCodeAt(0)] = 1

/** 1 for the octets of a field value: visible ASCII, obs-text, SP and HTAB; no other control character, no DEL. */
const VALUE_OCTETS: Uint8Array = new Uint8Array(256)
for (let octet = 0x20; octet < 0x100; octet++) VALUE_OCTETS[octet] = octet === 0x7f ? 0 : 1
VALUE_OCTETS[0x09] = 1

const SPACE = 0x20
const TAB = 0x09

/** Flags of an unknown name: BAD_NAME or 0. Unknown pseudo-header fields are bad. */
export function nameFlags(octets: Uint8Array, from: number, to: number): number {
  let good = from < to ? 1 : 0
  for (let i = from; i < to; i++) good &= NAME_OCTETS[octets[i] as number] as number
  return good === 1 ? 0 : BAD_NAME
}

/** BAD_VALUE or 0. `name` are the flags of the field's name: `te` allows only one value. */
export function valueFlags(name: number, octets: Uint8Array, from: number, to: number): number {
  if (from === to) return name & TE ? BAD_VALUE : 0
  let good = 1
  for (let i = from; i < to; i++) good &= VALUE_OCTETS[octets[i] as number] as number
  if (good === 0 || isBlank(octets[from] as number) || isBlank(octets[to - 1] as number)) return BAD_VALUE
  return name & TE && !isTrailers(octets, from, to) ? BAD_VALUE : 0
}

function isBlank(octet: number): boolean {
  return octet === SPACE || octet === TAB
}

/** Transfer codings are case-insensitive (RFC 9110 section 10.1.4). */
function isTrailers(octets: Uint8Array, from: number, to: number): boolean {
  const wanted = 'trailers'
  if (to - from !== wanted.length) return false
  for (let i = 0; i < wanted.length; i++) {
    if (((octets[from + i] as number) | 0x20) !== wanted.charCodeAt(i)) return false
  }
  return true
}
