// HTTP/1.1 as clients' connections read it: heads, bodies in chunks with extensions and trailers, pipelined requests.

import { Http1Side } from '../../harness/frames/http1-side.ts'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat } from '../shapes.ts'

/** As much as one read of a TLS socket has. */
const READ_BYTES = 64 * KIB
const ANSWER = [':status', '204']

/** Requests are answered as they come, and answers taken. @param pieceBytes of one read */
function receive(message: Buffer, pieceBytes = READ_BYTES): void {
  const side = new Http1Side({ limits: { maxHeaderBytes: MIB, maxConcurrentStreams: MIB } })
  for (let at = 0; at < message.length && !side.closed && !side.aborted; at += pieceBytes) {
    side.send(message.subarray(at, at + pieceBytes))
    for (const { stream } of side.requests.splice(0)) stream?.headers(ANSWER, true)
    side.take()
    side.goOn()
  }
  side.connection.onSocketClosed()
}

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n'
const CHUNKED = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n'

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'HTTP/1.1',
    limit: MIB,
    prepare: bytes,
    read: (message) => receive(message),
    tokens: [
      GET,
      CHUNKED,
      '\r\n',
      '\n',
      ': ',
      'a: b\r\n',
      '1\r\na\r\n',
      '0\r\n',
      ';a=b',
      ' ',
      '\t',
      ',',
      '"',
      'connection: close\r\n',
    ],
    shapes: {
      fields: repeat('a: b\r\n', GET),
      'fields that differ': repeat('a{n}: b\r\n', GET),
      'fields that are joined': repeat('accept: a\r\n', GET),
      cookies: repeat('cookie: a\r\n', GET),
      'lengths of content': repeat('content-length: 1\r\n', GET),
      'codings of the transfer': repeat('transfer-encoding: chunked\r\n', GET),
      hosts: repeat('host: a\r\n', GET),
      'a long field': repeat('a', `${GET}a: `),
      'a long name': repeat('a', GET),
      'a long target': repeat('a', 'GET /'),
      'a long method': repeat('G'),
      blanks: repeat(' ', `${GET}a:`),
      tabs: repeat('\t', `${GET}a:`),
      'empty lines in front': repeat('\r\n'),
      'folded lines': repeat('\r\n b', `${GET}a: b`),
      'options of connection': repeat('close,', `${GET}connection: `),
      'empty options of connection': repeat(',', `${GET}connection: `),
      'lists of options of connection': repeat('connection: a,a,a,a\r\n', GET),
      'codings in one field': repeat('chunked,', `${GET}transfer-encoding: `),
      'pipelined requests': repeat(`${GET}\r\n`),
      'chunks of one byte': repeat('1\r\na\r\n', CHUNKED),
      'long sizes of chunks': repeat('0', CHUNKED),
      'extensions of a chunk': repeat(';a=b', `${CHUNKED}1`),
      'extensions of chunks': repeat('1;a=b\r\na\r\n', CHUNKED),
      'quoted extensions': repeat('\\"', `${CHUNKED}1;a="`),
      trailers: repeat('a: b\r\n', `${CHUNKED}0\r\n`),
      'trailers that differ': repeat('a{n}: b\r\n', `${CHUNKED}0\r\n`),
      'a long trailer': repeat('a', `${CHUNKED}0\r\na: `),
      'messages without end': repeat(CHUNKED),
    },
  }),
  parserOf({
    name: 'HTTP/1.1, in pieces of 16 bytes',
    limit: MIB,
    prepare: bytes,
    read: (message) => receive(message, 16),
    shapes: {
      'a long field': repeat('a', `${GET}a: `),
      'a long name': repeat('a', GET),
      'a long target': repeat('a', 'GET /'),
      fields: repeat('a: b\r\n', GET),
      'pipelined requests': repeat(`${GET}\r\n`),
      'chunks of one byte': repeat('1\r\na\r\n', CHUNKED),
      'extensions of chunks': repeat('1;a=b\r\na\r\n', CHUNKED),
      'a long trailer': repeat('a', `${CHUNKED}0\r\na: `),
    },
  }),
]
