// Where the values of maps and lists are in JSON.

import { malformed } from './malformed.ts'
import type { ByteRange } from './object-facts.ts'
import {
  CLOSE_LIST,
  CLOSE_MAP,
  COMMA,
  notAfterValue,
  OPEN_LIST,
  OPEN_MAP,
  skipColon,
  skipKey,
  skipSpace,
  skipValue,
} from './skip-json.ts'

/** The range of each value of the map that begins at `start`, by key. @throws {MalformedError} */
export function membersOf(json: Buffer, start: number): ReadonlyMap<string, ByteRange> {
  const members = new Map<string, ByteRange>()
  eachMember(json, start, (keyStart, keyEnd, valueStart, valueEnd) => {
    members.set(keyAt(json, keyStart, keyEnd), { start: valueStart, end: valueEnd })
  })
  return members
}

/**
 * Goes through the map that begins at `start`, in the order of the text. A key may be there twice.
 * @param visit gets where each key is, with its quotes, and where its value is
 * @returns the index behind the map
 * @throws {MalformedError}
 */
export function eachMember(
  json: Buffer,
  start: number,
  visit: (keyStart: number, keyEnd: number, valueStart: number, valueEnd: number) => void,
): number {
  if (json[start] !== OPEN_MAP) throw malformed('a part of an object is not a map')
  let at = skipSpace(json, start + 1)
  if (json[at] === CLOSE_MAP) return at + 1
  for (;;) {
    const keyStart = skipSpace(json, at)
    const keyEnd = skipKey(json, keyStart)
    const value = skipSpace(json, skipColon(json, keyEnd))
    at = skipValue(json, value)
    visit(keyStart, keyEnd, value, at)
    at = skipSpace(json, at)
    const c = json[at++]
    if (c === CLOSE_MAP) return at
    if (c !== COMMA) throw notAfterValue(c)
  }
}

/** Where the text of a key is not the key itself. */
const NOT_PLAIN = /[\\\x80-\xff]/

/** The key at [start, end), with its quotes. */
export function keyAt(json: Buffer, start: number, end: number): string {
  const key = json.toString('latin1', start + 1, end - 1)
  return NOT_PLAIN.test(key) ? JSON.parse(json.toString('utf8', start, end)) : key
}

/** The ranges of the values of the list that begins at `start`. @throws {MalformedError} */
export function elementsOf(json: Buffer, start: number): readonly ByteRange[] {
  const items: ByteRange[] = []
  eachElement(json, start, (item) => items.push(item))
  return items
}

/**
 * Goes through the list that begins at `start`.
 * @returns the index behind the list
 * @throws {MalformedError}
 */
export function eachElement(json: Buffer, start: number, visit: (value: ByteRange) => void): number {
  if (json[start] !== OPEN_LIST) throw malformed('a part of an object is not a list')
  let at = skipSpace(json, start + 1)
  if (json[at] === CLOSE_LIST) return at + 1
  for (;;) {
    const from = skipSpace(json, at)
    at = skipValue(json, from)
    visit({ start: from, end: at })
    at = skipSpace(json, at)
    const c = json[at++]
    if (c === CLOSE_LIST) return at
    if (c !== COMMA) throw notAfterValue(c)
  }
}
