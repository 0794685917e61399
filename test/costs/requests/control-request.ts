// What the embedded API server reads of a request's head.

import { negotiate } from '../../../src/apiserver/http/accept.ts'
import { Query } from '../../../src/apiserver/http/query.ts'
import { decodeToken } from '../../../src/apiserver/list/list.ts'
import { type Parser, parser } from '../parser.ts'
import { KIB, repeat, write } from '../shapes.ts'

const HEAD = 64 * KIB

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'token of a continued list',
    limit: 256 * KIB,
    fillsMaps: true,
    read: decodeToken,
    tokens: ['eyJ', Buffer.from('{"v":').toString('base64url'), 'AAAA', '=', '-', '_', '!'],
    shapes: {
      'no token': repeat('A'),
      'what is no base64': repeat('!'),
      'a long name': (length) =>
        Buffer.from(`{"v":"meta.k8s.io/v1","rv":1,"start":"/${'a'.repeat(length * 0.7)}\\u0000"}`).toString(
          'base64url',
        ),
      brackets: (length) => Buffer.from('['.repeat(length * 0.7)).toString('base64url'),
      members: (length) => Buffer.from(write(repeat('"k{n}":1,', '{', '"a":1}'), length * 0.7)).toString('base64url'),
    },
  }),
  parser({
    name: 'query of the embedded API server',
    limit: HEAD,
    read: (query) => new Query(query),
    tokens: ['a=b&', '&', '=', '%61', '%', '+', ';'],
    shapes: {
      pairs: repeat('a=b&'),
      'different pairs': repeat('a{n}=b&'),
      'equals signs': repeat('='),
      ampersands: repeat('&'),
      'encoded keys': repeat('%61=%62&'),
      'percent signs': repeat('%'),
    },
  }),
  parser({
    name: 'Accept',
    limit: HEAD,
    read: negotiate,
    tokens: ['application/json', ';', ',', 'q=0.1', 'as=Table', 'g=meta.k8s.io', 'v=v1', '*/*', ' ', '=', '"'],
    shapes: {
      clauses: repeat('a/b;q=0.1,'),
      'clauses that differ': repeat('a/b{n};q=0.{n},'),
      commas: repeat(','),
      semicolons: repeat(';', 'application/json'),
      parameters: repeat(';a=b', 'application/json'),
      'a weight of digits': repeat('1', 'application/json;q=0.'),
      blanks: repeat(' ', 'application/json;', 'q=1'),
      tables: repeat('application/json;as=Table;g=meta.k8s.io;v=v2,'),
    },
  }),
]
