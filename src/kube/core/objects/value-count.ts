// Counts the values (texts, numbers, lists, maps ...) of an object: an estimate of the work it will cost, taken in advance.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { statusError } from '../../api/status.ts'
import { type Atom, deduced, memberAtom } from './atom.ts'
import { MAX_VALUES } from './json-text.ts'

/**
 * Maximum number of separately owned fields of an object (managedFields): map members, items of keyed lists and of sets. A write compares,
 * sorts and names each of them several times.
 */
export const MAX_OWNED_FIELDS = 6_000

/** A patch may have made an object larger than any body. @throws {StatusError} 413 if it has more values than a body may have */
export function limitValues(object: unknown): void {
  if (countValues(object, MAX_VALUES) <= MAX_VALUES) return
  const message = `Request entity too large: the object would have more than ${MAX_VALUES} values (texts, numbers, lists, maps)`
  throw statusError('RequestEntityTooLarge', message)
}

/** Stops counting soon after `most`. */
function countValues(value: unknown, most: number): number {
  let count = 1
  const members = Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : []
  for (const member of members) {
    count += typeof member === 'object' ? countValues(member, most - count) : 1
    if (count > most) break
  }
  return count
}

/** @throws {StatusError} 413 if too many of its fields are owned separately */
export function limitOwnedFields(atom: Atom, object: unknown): void {
  if (countOwned(atom, object, MAX_OWNED_FIELDS) <= MAX_OWNED_FIELDS) return
  const message = `Request entity too large: limit is ${MAX_OWNED_FIELDS} fields that have owners (metadata.managedFields)`
  throw statusError('RequestEntityTooLarge', message)
}

function countOwned(atom: Atom, value: unknown, most: number): number {
  const { map, list } = deduced(atom, value)
  let count = 1
  if (map !== undefined && !map.atomic && isRecord(value)) {
    for (const [key, member] of Object.entries(value)) {
      const of = memberAtom(map, key)
      count += of === undefined ? 0 : countOwned(of, member, most - count)
      if (count > most) break
    }
  } else if (list !== undefined && !list.atomic && Array.isArray(value)) {
    for (const item of value) {
      count += countOwned(list.items, item, most - count)
      if (count > most) break
    }
  }
  return count
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

/**
 * Whether a JSON text has more than `most` values, for callers that leave its syntax to JSON.parse. Counts commas and opening brackets, so
 * an empty list or map counts as two.
 */
export function hasMoreValues(text: string, most: number): boolean {
  // A value and its separator take at least two characters.
  if (text.length <= 2 * most) return false
  let count = 1
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at)
    if (c === QUOTE) at = endOfText(text, at)
    else if ((c === COMMA || c === BRACKET || c === BRACE) && ++count > most) return true
  }
  return false
}

/** Index of the closing quote; at least the length if there is none. @param start index of the opening quote */
function endOfText(text: string, start: number): number {
  let at = start + 1
  for (; at < text.length; at++) {
    const c = text.charCodeAt(at)
    if (c === QUOTE) break
    if (c === BACKSLASH) at++
  }
  return at
}
