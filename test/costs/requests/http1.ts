// HTTP/1.1 as node:http reads it for the gateway: heads, bodies in chunks with extensions and trailers, pipelined requests.

import { createServer } from 'node:http'
import { Duplex } from 'node:stream'
import { bytes, type Parser, parserOf } from '../parser.ts'
import { KIB, MIB, repeat } from '../shapes.ts'

/** As much as one read of a TLS socket has. */
const READ_BYTES = 64 * KIB

class FakeSocket extends Duplex {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
    done()
  }
  setTimeout(): this {
    return this
  }
}

/** With the options of the gateway's own (src/gateway/io/listener/http1-server.ts), whose pieces of input wait for the turns of a thread. */
const server = createServer({ maxHeaderSize: MIB, insecureHTTPParser: false })
server.maxHeadersCount = 2001
server.on('request', (request, response) => {
  request.resume()
  response.writeHead(204, request.rawHeaders.length > 4000 ? { connection: 'close' } : {})
  response.end()
})
server.on('clientError', (_, socket) => socket.destroy())

function receive(message: Buffer): void {
  const socket = new FakeSocket()
  socket.on('error', () => undefined)
  server.emit('connection', socket)
  for (let at = 0; at < message.length && !socket.destroyed; at += READ_BYTES) {
    socket.emit('data', message.subarray(at, at + READ_BYTES))
  }
  socket.destroy()
}

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n'
const CHUNKED = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n'

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'HTTP/1.1',
    limit: MIB,
    prepare: bytes,
    read: receive,
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
]
