// Writes heads and trailers of answers over HTTP/1.1 (RFC 9112). How an answer ends is for its stream to say: fields of the list that are about the
// connection are left out.

import { STATUS_CODES } from 'node:http'
import type { Output } from '../../../../http2/output.ts'
import type { HeaderList } from '../../../../kit/api/stream.ts'
import { writeFields } from '../../http1/write-fields.ts'

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
