// Finds where JSON values end, without decoding them: the grammar of RFC 8259 in UTF-8, in one pass. Objects are up to 1.5 MiB, and most of them is of no
// interest to the cache.

import { malformed } from './malformed.ts'

export const QUOTE = 0x22
export const COMMA = 0x2c
const PLUS = 0x2b
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
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const LOWER_U = 0x75
export const OPEN_MAP = 0x7b
export const CLOSE_MAP = 0x7d

/** From an opening bracket to its closing one. */
const TO_CLOSE = 2

/** kube-apiserver accepts ten times as many (apimachinery/pkg/util/json, maxDepth), but no schema comes close. */
export const MAX_JSON_DEPTH = 1000

/** 1 = stands for itself in a string: ASCII without control characters, quote and backslash. */
const PLAIN = new Uint8Array(256)
for (let c = 0x20; c < 0x80; c++) PLAIN[c] = c === QUOTE || c === BACKSLASH ? 0 : 1

/** 1 = may follow a backslash, alone. */
const SHORT_ESCAPE = new Uint8Array(256)
for (const c of Buffer.from('"\\/bfnrt')) SHORT_ESCAPE[c] = 1

const TOO_EARLY = 'the JSON ends too early'
const NOT_A_VALUE = 'a value is neither a string, a number, true, false nor null'
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

/** What closes the maps and lists around the innermost one. No call suspends, so all share it. */
const closing = new Uint8Array(MAX_JSON_DEPTH)

/**
 * Index behind the value that begins at `at`, or behind white space there.
 *
 * This is a loop over every byte of every object: what is usual is tested first, and without a call.
 * @throws {MalformedError}
 */
export function skipValue(json: Buffer, at: number): number {
  let depth = 0
  /** What closes the innermost map or list. */
  let close = 0
  for (;;) {
    let c = json[at]
    if (c === QUOTE) at = skipString(json, at)
    else if (c === OPEN_MAP || c === OPEN_LIST) {
      if (depth === MAX_JSON_DEPTH) throw malformed(`more than ${MAX_JSON_DEPTH} levels`)
      at++
      if (isSpace(json[at])) at = skipSpace(json, at)
      if (json[at] === c + TO_CLOSE) at++
      else {
        closing[depth++] = close
        close = c + TO_CLOSE
        if (c === OPEN_MAP) at = skipColon(json, skipKey(json, at))
        continue
      }
    } else if (isSpace(c)) {
      at = skipSpace(json, at)
      continue
    } else at = skipScalar(json, at)
    while (depth > 0) {
      c = json[at++]
      if (c === COMMA) {
        if (close === CLOSE_MAP) at = skipColon(json, skipKey(json, at))
        break
      }
      if (c === close) close = closing[--depth] ?? 0
      else if (isSpace(c)) at = skipSpace(json, at)
      else throw notAfterValue(c)
    }
    if (depth === 0) return at
  }
}

/** @param c what follows a value in a map or list; undefined = the end */
export function notAfterValue(c: number | undefined): Error {
  return malformed(c === undefined ? TOO_EARLY : 'a value is followed by what is neither a comma nor its bracket')
}

/** @param at where a value begins that was checked, or will be */
export function isNull(json: Buffer, at: number): boolean {
  return json[at] === LOWER_N
}

export function skipSpace(json: Buffer, at: number): number {
  while (isSpace(json[at])) at++
  return at
}

function isSpace(c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

/** Index behind the key of a map, which may have white space in front of it. */
export function skipKey(json: Buffer, at: number): number {
  const start = json[at] === QUOTE ? at : skipSpace(json, at)
  if (json[start] !== QUOTE) throw malformed(start < json.length ? 'a key is not a string' : TOO_EARLY)
  return skipString(json, start)
}

export function skipColon(json: Buffer, at: number): number {
  if (json[at] === COLON) return at + 1
  const colon = skipSpace(json, at)
  if (json[colon] !== COLON) throw malformed('a key is not followed by a colon')
  return colon + 1
}

/** @param at of the opening quote */
export function skipString(json: Buffer, at: number): number {
  at++
  for (;;) {
    let c = json[at++] ?? 0
    while (PLAIN[c] === 1) c = json[at++] ?? 0
    if (c === QUOTE) return at
    // managedFields are full of escaped quotes.
    if (c === BACKSLASH) at = SHORT_ESCAPE[json[at] ?? 0] === 1 ? at + 1 : skipUnicodeEscape(json, at)
    else at = skipRare(json, at, c)
  }
}

/** What is in few strings. @param at behind `c` */
function skipRare(json: Buffer, at: number, c: number): number {
  if (c >= 0x80) return skipRune(json, at, c)
  throw malformed(at > json.length ? TOO_EARLY : 'a string has a control character')
}

/** @param at behind the backslash */
function skipUnicodeEscape(json: Buffer, at: number): number {
  if (json[at] !== LOWER_U) throw malformed('a string has an escape that JSON does not have')
  for (let digit = at + 1; digit <= at + 4; digit++) {
    if (!isHex(json[digit] ?? 0)) throw malformed('a string has an escape that JSON does not have')
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
function skipRune(json: Buffer, at: number, first: number): number {
  const more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
  if (first < 0xc2 || first > 0xf4) throw malformed('a string is not UTF-8')
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

function skipScalar(json: Buffer, at: number): number {
  const c = json[at]
  if (c === LOWER_T) return skipWord(json, at, TRUE)
  if (c === LOWER_F) return skipWord(json, at, FALSE)
  if (c === LOWER_N) return skipWord(json, at, NULL)
  if (c === undefined) throw malformed(TOO_EARLY)
  return skipNumber(json, at)
}

function skipWord(json: Buffer, at: number, word: Buffer): number {
  for (let i = 0; i < word.length; i++) if (json[at + i] !== word[i]) throw malformed(NOT_A_VALUE)
  return at + word.length
}

function skipNumber(json: Buffer, at: number): number {
  if (json[at] === MINUS) at++
  const whole = skipDigits(json, at)
  if (json[at] === ZERO && whole > at + 1) throw malformed('a number begins with 0')
  at = json[whole] === DOT ? skipDigits(json, whole + 1) : whole
  const e = json[at]
  if (e !== LOWER_E && e !== UPPER_E) return at
  const sign = json[at + 1]
  return skipDigits(json, sign === MINUS || sign === PLUS ? at + 2 : at + 1)
}

/** At least one. */
function skipDigits(json: Buffer, at: number): number {
  const start = at
  for (let c = json[at] ?? 0; c >= ZERO && c <= NINE; c = json[at] ?? 0) at++
  if (at === start) throw malformed(NOT_A_VALUE)
  return at
}
