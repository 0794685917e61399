// Writes heads and trailers of answers over HTTP/1.1 (RFC 9112). How an answer ends is for its stream to say: fields of the list that are about the
// connection are left out.

import { STATUS_CODES } from 'node:http'
import type { Output } from '../../../../http2/output.ts'
import { SLAB_BYTES } from '../../../../http2/slabs.ts'
import type { HeaderList } from '../../../../kit/api/stream.ts'
import { TOKEN_OCTETS, VALUE_OCTETS } from './lines.ts'

const CR = 0x0d
const LF = 0x0a
const COLON = 0x3a
const SPACE = 0x20
/** ": " and the end of the line. */
const AROUND_FIELD = 4

const statusLines = new Map<string, string>()

function statusLine(status: string): string {
  let line = statusLines.get(status)
  if (line === undefined) {
    line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
    statusLines.set(status, line)
  }
  return line
}

/**
 * Writes a head. `last` are the fields about the connection, and the empty line. False: nothing was written, because a field has octets that
 * HTTP/1.1 cannot carry.
 */
export function writeAnswerHead(output: Output, list: HeaderList, last: string): boolean {
  return writeFields(output, statusLine(list[1] ?? ''), list, 2, last)
}

/** The end of a body in chunks. */
export function writeLastChunk(output: Output, trailers: HeaderList): boolean {
  return writeFields(output, '0\r\n', trailers, 0, '\r\n')
}

function writeFields(output: Output, first: string, list: HeaderList, from: number, last: string): boolean {
  let size = first.length + last.length
  for (let i = from; i + 1 < list.length; i += 2)
    size += (list[i] as string).length + (list[i + 1] as string).length + AROUND_FIELD
  if (size > SLAB_BYTES) {
    const bytes = Buffer.allocUnsafe(size)
    const end = encode(bytes, 0, first, list, from, last)
    if (end >= 0) output.append(bytes.subarray(0, end))
    return end >= 0
  }
  output.reserve(size)
  const end = encode(output.buffer, output.at, first, list, from, last)
  if (end >= 0) output.advance(end - output.at)
  return end >= 0
}

/** @returns the end, -1 = a field has octets that it may not have */
function encode(into: Buffer, start: number, first: string, list: HeaderList, from: number, last: string): number {
  let at = writeAscii(into, start, first)
  for (let i = from; i + 1 < list.length; i += 2) {
    const name = list[i] as string
    if (isOfConnection(name)) continue
    at = writeChecked(into, at, name, TOKEN_OCTETS)
    if (at < 0) return -1
    into[at++] = COLON
    into[at++] = SPACE
    at = writeChecked(into, at, list[i + 1] as string, VALUE_OCTETS)
    if (at < 0) return -1
    into[at++] = CR
    into[at++] = LF
  }
  return writeAscii(into, at, last)
}

function isOfConnection(name: string): boolean {
  return name === 'connection' || name === 'keep-alive' || name === 'transfer-encoding'
}

function writeAscii(into: Buffer, start: number, text: string): number {
  let at = start
  for (let i = 0; i < text.length; i++) into[at++] = text.charCodeAt(i)
  return at
}

/** One octet for each character, which must be among `octets`: a line end would begin another field. -1 = one is not. */
function writeChecked(into: Buffer, start: number, text: string, octets: Uint8Array): number {
  let at = start
  for (let i = 0; i < text.length; i++) {
    const octet = text.charCodeAt(i)
    // There are 256 of them.
    if (octet > 0xff || octets[octet] === 0) return -1
    into[at++] = octet
  }
  return at
}
