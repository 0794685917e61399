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
  if (json[start] !== OPEN_MAP) throw malformed('a part of an object is not a map')
  const members = new Map<string, ByteRange>()
  let at = skipSpace(json, start + 1)
  if (json[at] === CLOSE_MAP) return members
  for (;;) {
    const from = skipSpace(json, at)
    at = skipKey(json, from)
    const key: string = JSON.parse(json.toString('utf8', from, at))
    const value = skipSpace(json, skipColon(json, at))
    at = skipValue(json, value)
    members.set(key, { start: value, end: at })
    at = skipSpace(json, at)
    const c = json[at++]
    if (c === CLOSE_MAP) return members
    if (c !== COMMA) throw notAfterValue(c)
  }
}

/** The ranges of the values of the list that begins at `start`. @throws {MalformedError} */
export function elementsOf(json: Buffer, start: number): readonly ByteRange[] {
  if (json[start] !== OPEN_LIST) throw malformed('a part of an object is not a list')
  const items: ByteRange[] = []
  let at = skipSpace(json, start + 1)
  if (json[at] === CLOSE_LIST) return items
  for (;;) {
    const from = skipSpace(json, at)
    at = skipValue(json, from)
    items.push({ start: from, end: at })
    at = skipSpace(json, at)
    const c = json[at++]
    if (c === CLOSE_LIST) return items
    if (c !== COMMA) throw notAfterValue(c)
  }
}
