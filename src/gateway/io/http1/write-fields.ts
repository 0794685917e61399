// Writes header fields over HTTP/1.1 (RFC 9112 section 5). Fields of the list that are about the connection are left out.

import type { Output } from '../../../http2/output.ts'
import { SLAB_BYTES } from '../../../http2/slabs.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { CR, LF, SPACE, TOKEN_OCTETS, VALUE_OCTETS } from './lines.ts'

const COLON = 0x3a
/** ": " and the end of the line. */
const AROUND_FIELD = 4

/**
 * Writes `first`, the fields of the list from `from` on, and `last`. False: nothing was written, because a field has octets that HTTP/1.1 cannot
 * carry.
 */
export function writeFields(output: Output, first: string, list: HeaderList, from: number, last: string): boolean {
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
