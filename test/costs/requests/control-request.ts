// What the embedded API server reads of a request's head.

import { negotiate } from '../../../src/apiserver/http/accept.ts'
import { Query } from '../../../src/apiserver/http/query.ts'
import { type Parser, parser } from '../parser.ts'
import { KIB, repeat } from '../shapes.ts'

const HEAD = 64 * KIB

export const PARSERS: readonly Parser[] = [
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
