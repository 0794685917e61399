// Finds where JSON values end, without decoding them: the grammar of RFC 8259 in UTF-8, in one pass. Objects are up to 1.5 MiB, and most of them is of no
// interest to the cache.

import { malformed } from './malformed.ts'

export const QUOTE = 0x22
export const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
export const COLON = 0x3a
const UPPER_E = 0x45
export const OPEN_LIST = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_LIST = 0x5d
const LOWER_E = 0x65
const LOWER_N = 0x6e
const LOWER_U = 0x75
export const OPEN_MAP = 0x7b
export const CLOSE_MAP = 0x7d

/** kube-apiserver accepts ten times as many (apimachinery/pkg/util/json, maxDepth), but no schema comes close. */
export const MAX_JSON_DEPTH = 1000

/** 1 = stands for itself in a string: ASCII without control characters, quote and backslash. */
const PLAIN = new Uint8Array(256)
for (let c = 0x20; c < 0x80; c++) PLAIN[c] = c === QUOTE || c === BACKSLASH ? 0 : 1

/** 1 = may follow a backslash. */
const ESCAPED = new Uint8Array(256)
for (const c of Buffer.from('"\\/bfnrtu')) ESCAPED[c] = 1

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

/** What closes the map or list of each level. No call suspends, so all share it. */
const closing = new Uint8Array(MAX_JSON_DEPTH)

/**
 * Index behind the value that begins at `at`, or behind white space there.
 * @param end where the text ends
 * @throws {MalformedError}
 */
export function skipValue(json: Buffer, at: number, end: number): number {
  let depth = 0
  for (;;) {
    at = skipSpace(json, at, end)
    const c = json[at]
    if (c === QUOTE) at = skipString(json, at, end)
    else if (c === OPEN_MAP || c === OPEN_LIST) {
      if (depth === MAX_JSON_DEPTH) throw malformed(`more than ${MAX_JSON_DEPTH} levels`)
      const close = c + 2
      at = skipSpace(json, at + 1, end)
      if (at < end && json[at] === close) at++
      else {
        closing[depth++] = close
        if (c === OPEN_MAP) at = skipColon(json, skipKey(json, at, end), end)
        continue
      }
    } else at = skipScalar(json, at, end)
    for (;;) {
      if (depth === 0) return at
      at = skipSpace(json, at, end)
      if (at >= end) throw malformed('the JSON ends too early')
      const next = json[at++]
      const close = closing[depth - 1]
      if (next === COMMA) {
        if (close === CLOSE_MAP) at = skipColon(json, skipKey(json, at, end), end)
        break
      }
      if (next !== close) throw malformed('a value is followed by what is neither a comma nor its bracket')
      depth--
    }
  }
}

/** @param at where a value begins that was checked, or will be */
export function isNull(json: Buffer, at: number): boolean {
  return json[at] === LOWER_N
}

export function skipSpace(json: Buffer, at: number, end: number): number {
  while (at < end) {
    const c = json[at]
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) break
    at++
  }
  return at
}

/** Index behind the key of a map, which may have white space in front of it; its quotes are the first and the last byte. */
export function skipKey(json: Buffer, at: number, end: number): number {
  const start = skipSpace(json, at, end)
  if (start >= end || json[start] !== QUOTE) throw malformed('a key is not a string')
  return skipString(json, start, end)
}

export function skipColon(json: Buffer, at: number, end: number): number {
  const colon = skipSpace(json, at, end)
  if (colon >= end || json[colon] !== COLON) throw malformed('a key is not followed by a colon')
  return colon + 1
}

/** @param at of the opening quote */
export function skipString(json: Buffer, at: number, end: number): number {
  at++
  while (at < end) {
    const c = json[at++] ?? 0
    if (PLAIN[c] === 1) continue
    if (c === QUOTE) return at
    if (c === BACKSLASH) at = skipEscape(json, at, end)
    else if (c < 0x80) throw malformed('a string has a control character')
    else at = skipRune(json, at, end, c)
  }
  throw malformed('the JSON ends too early')
}

/** @param at behind the backslash */
function skipEscape(json: Buffer, at: number, end: number): number {
  const c = at < end ? (json[at] ?? 0) : 0
  if (ESCAPED[c] !== 1) throw malformed('a string has an escape that JSON does not have')
  if (c !== LOWER_U) return at + 1
  for (let digit = at + 1; digit <= at + 4; digit++) {
    if (digit >= end || !isHex(json[digit] ?? 0)) throw malformed('a string has an escape that JSON does not have')
  }
  return at + 5
}

function isHex(c: number): boolean {
  const lower = c | 0x20
  return (c >= ZERO && c <= NINE) || (lower >= 0x61 && lower <= 0x66)
}

/**
 * The rest of a character that is not ASCII (Unicode 15, table 3-7).
 * @param at behind its first byte
 */
function skipRune(json: Buffer, at: number, end: number, first: number): number {
  const more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
  if (first < 0xc2 || first > 0xf4 || at + more > end) throw malformed('a string is not UTF-8')
  const second = json[at] ?? 0
  // Neither longer than needed, nor a surrogate, nor above U+10FFFF.
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  if (second < least || second > most) throw malformed('a string is not UTF-8')
  for (let i = 1; i < more; i++) {
    if (((json[at + i] ?? 0) & 0xc0) !== 0x80) throw malformed('a string is not UTF-8')
  }
  return at + more
}

function skipScalar(json: Buffer, at: number, end: number): number {
  const c = at < end ? json[at] : undefined
  if (c === 0x74) return skipWord(json, at, end, TRUE)
  if (c === 0x66) return skipWord(json, at, end, FALSE)
  if (c === LOWER_N) return skipWord(json, at, end, NULL)
  if (c === undefined) throw malformed('the JSON ends too early')
  return skipNumber(json, at, end)
}

function skipWord(json: Buffer, at: number, end: number, word: Buffer): number {
  for (const c of word) {
    if (at >= end || json[at++] !== c) throw malformed('a value is neither a string, a number, true, false nor null')
  }
  return at
}

function skipNumber(json: Buffer, at: number, end: number): number {
  if (json[at] === MINUS) at++
  const whole = skipDigits(json, at, end)
  if (json[at] === ZERO && whole > at + 1) throw malformed('a number begins with 0')
  at = whole
  if (at < end && json[at] === DOT) at = skipDigits(json, at + 1, end)
  const e = at < end ? json[at] : 0
  if (e !== LOWER_E && e !== UPPER_E) return at
  const sign = json[at + 1]
  return skipDigits(json, sign === MINUS || sign === 0x2b ? at + 2 : at + 1, end)
}

/** At least one. */
function skipDigits(json: Buffer, at: number, end: number): number {
  const start = at
  while (at < end) {
    const c = json[at] ?? 0
    if (c < ZERO || c > NINE) break
    at++
  }
  if (at === start) throw malformed('a value is neither a string, a number, true, false nor null')
  return at
}
