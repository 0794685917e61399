// The header fields of a SPDY stream (SPDY protocol, draft 3.1, section 2.6.10).

import { MalformedSession } from './channels.ts'

/** What the next compressed header block of a client says: they share one zlib stream. @throws {MalformedSession} if it is something else, or too much */
export type InflateHeaders = (block: Uint8Array) => Buffer

/** The first value of each field, by name in lower case. */
export type HeaderFields = ReadonlyMap<string, string>

/** Nothing may follow the last field: a Go server would read it as the first of the next frame. @throws {MalformedSession} */
export function readFields(block: Buffer): HeaderFields {
  let at = 0
  const number = (): number => {
    if (at + 4 > block.length) throw new MalformedSession('header fields that break off')
    at += 4
    return block.readUInt32BE(at - 4)
  }
  const text = (): string => {
    const length = number()
    if (length > block.length - at) throw new MalformedSession('header fields that break off')
    at += length
    return block.toString('latin1', at - length, at)
  }
  const fields = new Map<string, string>()
  for (let left = number(); left > 0; left--) {
    const name = text()
    const value = text()
    if (fields.has(name)) throw new MalformedSession('a header field that is there twice')
    // Values are separated by NUL.
    const end = value.indexOf('\0')
    fields.set(name, end < 0 ? value : value.slice(0, end))
  }
  if (at < block.length) throw new MalformedSession('more than its header fields')
  return fields
}
