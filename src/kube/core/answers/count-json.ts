// Estimates the cost of JSON.parse before it is called, in a few nanoseconds per byte and without allocating. Reads the raw bytes, because
// reading a long decoded string takes three times as long.

import type { CountLimits } from './answer-limits.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b
const CLOSE_MAP = 0x7d

/** kube-apiserver accepts ten times as many (apimachinery/pkg/util/json, maxDepth), but no schema comes close. */
const MAX_DEPTH = 1000
/** Slots of the shape table, three times as many as any limit allows. */
const SLOTS = 1 << 15
const FNV_PRIME = 0x01000193
const MIX = 0x2c1b3c6d
/** A string is scanned byte by byte up to here; then `indexOf` looks for its end, which is ten times faster but costs a call. */
const NEAR_BYTES = 128
/** A string counts as one more value per 128 bytes, which take as long. */
const LONG_BITS = 7

const seen = new Int32Array(SLOTS)

/**
 * Counts values like hasMoreValues: one per comma and per opening bracket. The shape of a map is the sequence of its keys, like V8's hidden
 * classes: each key at a new position adds one.
 * @param json UTF-8
 * @param seed unknown to the author of the text, who could otherwise craft colliding shapes, which are not counted
 * @returns undefined if it is within the limits, else which one it exceeds, for people
 */
export function countJson(
  json: Buffer,
  { values: maxValues, shapes: maxShapes, bare: maxBare }: CountLimits,
  seed: number,
): string | undefined {
  // A value and its separator take at least two characters; so does a key.
  if (json.length <= 2 * Math.min(maxValues, maxShapes, MAX_DEPTH)) return undefined
  seen.fill(0)
  let values = 1
  let shapes = 0
  let shape = seed
  let keyStart = 0
  let keyEnd = 0
  /** End of the allowed input: each string extends it by its own length. */
  let end = Math.min(json.length, maxBare)
  const outer: number[] = []
  for (let at = 0; at < end; at++) {
    const c = json[at]
    if (c === QUOTE) {
      keyStart = at + 1
      keyEnd = endOfString(json, keyStart)
      at = keyEnd
      const length = keyEnd - keyStart
      end = Math.min(json.length, end + length)
      values += length >> LONG_BITS
    } else if (c === COMMA) {
      if (++values > maxValues) return tooMany(maxValues, 'values')
    } else if (c === COLON) {
      shape = shapeWith(shape, json, keyStart, keyEnd)
      if (isNew(shape) && ++shapes > maxShapes) return tooMany(maxShapes, 'different keys')
    } else if (c === OPEN_MAP || c === OPEN_LIST) {
      if (++values > maxValues) return tooMany(maxValues, 'values')
      if (outer.length === MAX_DEPTH) return tooMany(MAX_DEPTH, 'levels')
      outer.push(shape)
      shape = seed
    } else if (c === CLOSE_MAP || c === CLOSE_LIST) shape = outer.pop() ?? seed
  }
  if (end < json.length) return tooMany(maxBare, 'bytes outside of strings')
  return values > maxValues ? tooMany(maxValues, 'values') : undefined
}

function tooMany(most: number, what: string): string {
  return `more than ${most} ${what}`
}

/** Index of the closing quote; the length if there is none. @param start after the opening quote */
function endOfString(json: Buffer, start: number): number {
  let at = start
  while (at < json.length) {
    const near = Math.min(json.length, at + NEAR_BYTES)
    for (; at < near; at++) {
      const c = json[at]
      if (c === QUOTE) return at
      if (c === BACKSLASH) at++
    }
    const quote = json.indexOf(QUOTE, at)
    if (quote < 0) return json.length
    if (!isEscaped(json, at, quote)) return quote
    at = quote + 1
  }
  return json.length
}

/** @param start outside any escape sequence */
function isEscaped(json: Buffer, start: number, quote: number): boolean {
  let backslashes = 0
  for (let at = quote - 1; at >= start && json[at] === BACKSLASH; at--) backslashes++
  return backslashes % 2 === 1
}

/** Never 0. */
function shapeWith(before: number, json: Buffer, start: number, end: number): number {
  let hash = before
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (json[at] ?? 0), FNV_PRIME)
  hash = Math.imul(hash ^ (hash >>> 15), MIX)
  hash ^= hash >>> 12
  return hash === 0 ? 1 : hash
}

/** Also stores it. The table never fills up: a caller stops at its limit. */
function isNew(shape: number): boolean {
  let slot = shape & (SLOTS - 1)
  for (let known = seen[slot]; known !== 0; known = seen[slot]) {
    if (known === shape) return false
    slot = (slot + 1) & (SLOTS - 1)
  }
  seen[slot] = shape
  return true
}
