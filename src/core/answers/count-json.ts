// What JSON.parse of a text will cost, found out before it is called, in a few nanoseconds for each character and without allocating anything.

import type { AnswerLimits } from './answer-limits.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b
const CLOSE_MAP = 0x7d

/** kube-apiserver takes ten times as many (apimachinery/pkg/util/json, maxDepth), but no schema comes near. */
const MAX_DEPTH = 1000
/** Slots of the table of shapes, four times as many as any limit allows. */
const SLOTS = 1 << 17
const FNV_PRIME = 0x01000193
const MIX = 0x2c1b3c6d

const seen = new Int32Array(SLOTS)

/**
 * Counts values as hasMoreValues does: what begins at each comma and each opening bracket. The shape of a map is the sequence of its keys, as V8's
 * hidden classes are: one more for each key in a place where it has not been before.
 * @param seed not known to whoever wrote the text: shapes that look the same would not be counted
 * @returns undefined when it is within the limits, else what it has too many of, for people
 */
export function countJson(
  text: string,
  { values: maxValues, shapes: maxShapes }: Pick<AnswerLimits, 'values' | 'shapes'>,
  seed: number,
): string | undefined {
  // A value and what stands before it have two characters at least; so has a key.
  if (text.length <= 2 * Math.min(maxValues, maxShapes, MAX_DEPTH)) return undefined
  seen.fill(0)
  let values = 1
  let shapes = 0
  let shape = seed
  let keyStart = 0
  let keyEnd = 0
  const outer: number[] = []
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at)
    if (c === QUOTE) {
      keyStart = at + 1
      at = endOfText(text, keyStart)
      keyEnd = at
    } else if (c === COMMA) {
      if (++values > maxValues) return tooMany(maxValues, 'values')
    } else if (c === COLON) {
      shape = shapeWith(shape, text, keyStart, keyEnd)
      if (isNew(shape) && ++shapes > maxShapes) return tooMany(maxShapes, 'different keys')
    } else if (c === OPEN_MAP || c === OPEN_LIST) {
      if (++values > maxValues) return tooMany(maxValues, 'values')
      if (outer.length === MAX_DEPTH) return tooMany(MAX_DEPTH, 'levels')
      outer.push(shape)
      shape = seed
    } else if (c === CLOSE_MAP || c === CLOSE_LIST) shape = outer.pop() ?? seed
  }
  return undefined
}

function tooMany(most: number, what: string): string {
  return `more than ${most} ${what}`
}

/** The index of the closing quote; at least the length where there is none. @param start behind the opening quote */
function endOfText(text: string, start: number): number {
  let at = start
  for (; at < text.length; at++) {
    const c = text.charCodeAt(at)
    if (c === QUOTE) break
    if (c === BACKSLASH) at++
  }
  return at
}

/** Never 0. */
function shapeWith(before: number, text: string, start: number, end: number): number {
  let hash = before
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME)
  hash = Math.imul(hash ^ (hash >>> 15), MIX)
  hash ^= hash >>> 12
  return hash === 0 ? 1 : hash
}

/** Remembers it. The table never fills: a caller stops at its limit. */
function isNew(shape: number): boolean {
  let slot = shape & (SLOTS - 1)
  for (let known = seen[slot]; known !== 0; known = seen[slot]) {
    if (known === shape) return false
    slot = (slot + 1) & (SLOTS - 1)
  }
  seen[slot] = shape
  return true
}
