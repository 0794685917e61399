// The first line of a request over HTTP/1.1 (RFC 9112 section 3), which has come whole: what it may contain, and nothing else.

import { METHODS } from 'node:http'
import { latin1Text } from '../../../../http2/hpack/latin1.ts'
import { minorVersion, SPACE, VERSION_BYTES } from '../../http1/lines.ts'

const COLON = 0x3a
const SLASH = 0x2f
const STAR = 0x2a
const QUESTION = 0x3f
const AT_SIGN = 0x40

/** 1 for the octets of a target: visible ASCII. */
const TARGET_OCTETS: Uint8Array = new Uint8Array(256)
TARGET_OCTETS.fill(1, SPACE + 1, 0x7f)
/** 1 for the octets of user, host and port in a target in absolute-form (RFC 3986 section 3.2). */
const AUTHORITY_OCTETS: Uint8Array = new Uint8Array(256)
for (const char of "!$%&'()*+,-.:;=@[]_~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
  AUTHORITY_OCTETS[char.charCodeAt(0)] = 1
}

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)
const LONGEST_METHOD: number = Math.max(...METHODS.map(({ length }) => length))

/** The last request line. */
export class RequestLine {
  method = ''
  target = ''
  isHttp10 = false

  /** `bytes` from `from` to `to`, without the end of the line. @returns whether it is a request line */
  read(bytes: Buffer, from: number, to: number): boolean {
    const version = to - VERSION_BYTES
    const end = version - 1
    const space = methodEnd(bytes, from, end)
    if (space < 0 || bytes[end] !== SPACE) return false
    const minor = minorVersion(bytes, version)
    if (minor < 0) return false
    this.isHttp10 = minor === 0
    this.method = latin1Text(bytes, from, space)
    if (!KNOWN_METHODS.has(this.method)) return false
    // The server answers CONNECT, which has another form, without a look at it.
    if (this.method !== 'CONNECT' && !isTarget(bytes, space + 1, end)) return false
    this.target = latin1Text(bytes, space + 1, end)
    return true
  }

  /** Keeps neither text. */
  forget(): void {
    this.method = ''
    this.target = ''
  }
}

function methodEnd(bytes: Buffer, from: number, end: number): number {
  const last = Math.min(end, from + LONGEST_METHOD + 1)
  for (let i = from; i < last; i++) if (bytes[i] === SPACE) return i
  return -1
}

/** RFC 9112 section 3.2: origin-form, `*`, or absolute-form. */
function isTarget(bytes: Buffer, from: number, to: number): boolean {
  if (from >= to) return false
  if (bytes[from] === STAR) return to - from === 1
  const path = bytes[from] === SLASH ? from : authorityEnd(bytes, from, to)
  if (path < 0) return false
  for (let i = path; i < to; i++) if (TARGET_OCTETS[bytes[i] as number] === 0) return false
  return true
}

/** Where the path of a target in absolute-form begins, or its query; -1 = it is none. */
function authorityEnd(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to && isLetter(bytes[at] as number)) at++
  if (at === from || bytes[at] !== COLON || bytes[at + 1] !== SLASH || bytes[at + 2] !== SLASH) return -1
  const authority = at + 3
  let users = 0
  for (at = authority; at < to && bytes[at] !== SLASH && bytes[at] !== QUESTION; at++) {
    if (AUTHORITY_OCTETS[bytes[at] as number] === 0) return -1
    if (bytes[at] === AT_SIGN) users++
  }
  return at === authority || users > 1 ? -1 : at
}

function isLetter(octet: number): boolean {
  const lower = octet | 0x20
  return lower >= 0x61 && lower <= 0x7a
}
