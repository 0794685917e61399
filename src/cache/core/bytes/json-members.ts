// Where the values of maps and lists are in JSON.

import { malformed } from './malformed.ts'
import type { ByteRange } from './object-facts.ts'
import {
  CLOSE_LIST,
  CLOSE_MAP,
  COMMA,
  OPEN_LIST,
  OPEN_MAP,
  skipColon,
  skipKey,
  skipSpace,
  skipValue,
} from './skip-json.ts'

/** The range of each value of a map, by key. @throws {MalformedError} */
export function membersOf(json: Buffer, { start, end }: ByteRange): ReadonlyMap<string, ByteRange> {
  if (json[start] !== OPEN_MAP) throw malformed('a part of an object is not a map')
  const members = new Map<string, ByteRange>()
  let at = skipSpace(json, start + 1, end)
  if (json[at] === CLOSE_MAP) return members
  for (;;) {
    const from = skipSpace(json, at, end)
    at = skipKey(json, from, end)
    const key: string = JSON.parse(json.toString('utf8', from, at))
    const value = skipSpace(json, skipColon(json, at, end), end)
    at = skipValue(json, value, end)
    members.set(key, { start: value, end: at })
    at = skipSpace(json, at, end)
    const c = at < end ? json[at++] : undefined
    if (c === CLOSE_MAP) return members
    if (c !== COMMA) throw malformed('a value is followed by what is neither a comma nor its bracket')
  }
}

/** The ranges of the values of a list. @throws {MalformedError} */
export function itemsOf(json: Buffer, { start, end }: ByteRange): readonly ByteRange[] {
  if (json[start] !== OPEN_LIST) throw malformed('a part of an object is not a list')
  const items: ByteRange[] = []
  let at = skipSpace(json, start + 1, end)
  if (json[at] === CLOSE_LIST) return items
  for (;;) {
    const from = skipSpace(json, at, end)
    at = skipValue(json, from, end)
    items.push({ start: from, end: at })
    at = skipSpace(json, at, end)
    const c = at < end ? json[at++] : undefined
    if (c === CLOSE_LIST) return items
    if (c !== COMMA) throw malformed('a value is followed by what is neither a comma nor its bracket')
  }
}
