// The fields of a request's head, as every listener hands them on.

import { MAX_LISTED_LENGTH, readRequestHead } from '../../../src/gateway/core/request/request-head.ts'
import { readBearerToken } from '../../../src/gateway/core/request/websocket-token.ts'
import type { HeaderList } from '../../../src/kit/api/stream.ts'
import { type Parser, parserOf } from '../parser.ts'
import { MIB, repeat } from '../shapes.ts'

const REQUEST = [':method', 'GET', ':path', '/', ':authority', 'a', ':scheme', 'https']
const NAMES = [
  'connection',
  'te',
  'x-forwarded-for',
  'authorization',
  'user-agent',
  'sec-websocket-protocol',
  'upgrade',
]
const TOKENS = [
  ...NAMES.map((name) => `${name}: `),
  '\n',
  ',',
  ' ',
  '\t',
  ';',
  '=',
  'Bearer ',
  'trailers',
  'close',
  'a',
]

/** A line for each field. */
function headerList(text: string): HeaderList {
  const list = [...REQUEST]
  for (const line of text.split('\n')) {
    const colon = line.indexOf(': ')
    if (colon >= 0) list.push(line.slice(0, colon), line.slice(colon + 2))
  }
  return list
}

function readHead(list: HeaderList): void {
  readRequestHead([...list], '192.0.2.1', false)
  readBearerToken([...list])
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'head',
    limit: MIB,
    prepare: headerList,
    read: readHead,
    tokens: TOKENS,
    shapes: {
      'lines of x-forwarded-for': repeat('x-forwarded-for: \n'),
      'addresses of x-forwarded-for': repeat('::,', 'x-forwarded-for: '),
      'lines of connection': repeat('connection: \n'),
      'lines of te': repeat('te: trailers\n'),
      'lines of sec-websocket-protocol': repeat('sec-websocket-protocol: \n'),
      'lines of cookie': repeat('cookie: a=b\n'),
      'lines that differ': repeat('a{n}: b\n'),
      'names that are almost known': repeat('impersonate: b\nx-remote: b\n'),
      'lines of impersonate-group': repeat('impersonate-group: a\n'),
      'blanks around a token': repeat(' ', 'authorization: Bearer'),
      'a long user agent': repeat('kubectl/v1 ', 'user-agent: '),
      'blanks in a user agent': repeat(' ', 'user-agent: '),
      'a long name': repeat('a', '', ': b'),
      'a long value': repeat('\t', 'a: '),
      'a long traceparent': repeat('0', 'traceparent: 00-'),
      'a long Audit-ID': repeat('0', 'audit-id: '),
      'a long host': repeat('.', 'host: a'),
    },
  }),
  parserOf({
    name: 'fields that are lists',
    limit: MAX_LISTED_LENGTH,
    prepare: headerList,
    read: readHead,
    tokens: TOKENS,
    shapes: {
      'commas of connection': repeat(',', 'connection: '),
      'options of connection': repeat('a{n},', 'connection: '),
      'options of connection, and fields': (length) =>
        `connection: ${Array.from({ length: length / 16 }, (_, n) => `a${n}`).join(',')}\n` +
        Array.from({ length: length / 16 }, (_, n) => `b${n}: c\n`).join(''),
      'codings of te': repeat(',', 'te: '),
      'weights of te': repeat('a;q=0.1,', 'te: '),
      subprotocols: repeat(',', 'sec-websocket-protocol: base64url.bearer.authorization.k8s.io.YQ'),
      'tokens among subprotocols': repeat('base64url.bearer.authorization.k8s.io.YQ,', 'sec-websocket-protocol: '),
      blanks: repeat(' ', 'connection: a', ',b'),
    },
  }),
]
