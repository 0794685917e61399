// HTTP/1.1 from upstream: what an API server, or who is in its place, answers.

import { type AnswerSink, Http1AnswerReader } from '../../../src/gateway/io/upstream/http1/answer-reader.ts'
import { WITHOUT_PAUSE } from '../../../src/http2/frame-reader.ts'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat } from '../shapes.ts'

/** As much as one read of a TLS socket has. */
const READ_BYTES = 64 * KIB
const SINK: AnswerSink = {
  held: false,
  onHead: () => undefined,
  onBody: () => undefined,
  onTrailers: () => undefined,
  onMalformed: () => undefined,
  onRefused: () => undefined,
}

/** @param pieceBytes of one read */
function receive(answer: Buffer, pieceBytes = READ_BYTES): void {
  const reader = new Http1AnswerReader(SINK, { maxHeaderBytes: 64 * MIB, maxFields: MIB })
  reader.begin(false)
  for (let at = 0; at < answer.length && !reader.hasEnded; at += pieceBytes)
    reader.read(answer.subarray(at, at + pieceBytes), 0, 0, WITHOUT_PAUSE)
}

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'answers over HTTP/1.1',
    limit: MIB,
    prepare: bytes,
    read: (answer) => receive(answer),
    tokens: [OK, CHUNKED, '\r\n', '\n', ': ', 'a: b\r\n', '1\r\na\r\n', '0\r\n', 'keep-alive: timeout=1\r\n', ' ', ','],
    shapes: {
      fields: repeat('a: b\r\n', OK),
      'fields that differ': repeat('a{n}: b\r\n', OK),
      'timeouts of idle connections': repeat('keep-alive: timeout=1\r\n', OK),
      'a long timeout': repeat('1', `${OK}keep-alive: timeout=`),
      'timeouts in one field': repeat('timeout,', `${OK}keep-alive: `),
      'options of connection': repeat('close,', `${OK}connection: `),
      'a long field': repeat('a', `${OK}a: `),
      'a long name': repeat('a', OK),
      'a long reason': repeat('a', 'HTTP/1.1 200 '),
      'a long status': repeat('1', 'HTTP/1.1 '),
      'interim answers': repeat('HTTP/1.1 103 a\r\na: b\r\n\r\n'),
      'chunks of one byte': repeat('1\r\na\r\n', CHUNKED),
      'long sizes of chunks': repeat('0', CHUNKED),
      'extensions of chunks': repeat('1;a=b\r\na\r\n', CHUNKED),
      trailers: repeat('a: b\r\n', `${CHUNKED}0\r\n`),
      'a body without length': repeat('a', `${OK}\r\n`),
    },
  }),
  parserOf({
    name: 'answers over HTTP/1.1, in pieces of 16 bytes',
    limit: MIB,
    prepare: bytes,
    read: (answer) => receive(answer, 16),
    shapes: {
      fields: repeat('a: b\r\n', OK),
      'a long field': repeat('a', `${OK}a: `),
      'a long reason': repeat('a', 'HTTP/1.1 200 '),
      'interim answers': repeat('HTTP/1.1 103 a\r\na: b\r\n\r\n'),
      'chunks of one byte': repeat('1\r\na\r\n', CHUNKED),
    },
  }),
]
