// What the admin listener reads of browsers: cookies, and the form of the login page.

import { tagged, taggedAnswer } from '../../../src/apiserver/http/entity-tag.ts'
import { sessionIn, tokenIn } from '../../../src/insight/admin/dashboard/sessions.ts'
import { type Parser, parser } from '../parser.ts'
import { KIB, repeat } from '../shapes.ts'

const ID = 'a'.repeat(43)
const DOCUMENT = tagged(Buffer.from('a'), 'text/plain', 'a')

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'cookies',
    limit: 64 * KIB,
    read: (text) => sessionIn(text, 'session'),
    tokens: ['session=', ID, ';', '=', ' ', '__Host-'],
    shapes: {
      semicolons: repeat(';'),
      'equals signs': repeat('='),
      'equals signs of a value': repeat('=', 'session='),
      blanks: repeat(' '),
      'sessions that are none': repeat('session=a;'),
      'sessions that are too long': repeat(`session=${ID}a;`),
      'other cookies': repeat('a{n}=b; '),
    },
  }),
  parser({
    name: 'form of a login',
    limit: 64 * KIB,
    read: tokenIn,
    tokens: ['token=', '&', '%41', '%', '+', 'a'],
    shapes: {
      ampersands: repeat('&'),
      'tokens again and again': repeat('token=a&'),
      'other fields': repeat('a{n}=b&'),
      'a token of blanks': repeat('+', 'token=a', 'b'),
      'a token of escapes': repeat('%41', 'token='),
      'a token of percent signs': repeat('%', 'token='),
    },
  }),
  parser({
    name: 'If-None-Match',
    limit: 64 * KIB,
    read: (text) => taggedAnswer(DOCUMENT, text),
    tokens: ['W/', '"', ',', ' ', '*', '"b"'],
    shapes: {
      commas: repeat(','),
      blanks: repeat(' '),
      'tags that differ': repeat('"b{n}",'),
      'weak tags': repeat('W/"b",'),
      quotes: repeat('"'),
    },
  }),
]
