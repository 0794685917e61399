// JSON as objects and patches come in it: repeated members are found, so that it is not JSON.parse alone.

import { parseJson } from '../../../src/kube/core/objects/json-text.ts'
import { type Parser, parser } from '../parser.ts'
import { halves, MIB, nested, repeat, type Shape } from '../shapes.ts'

export const JSON_SHAPES: Readonly<Record<string, Shape>> = {
  'closing braces': repeat('}'),
  'opening brackets': repeat('['),
  'brackets in brackets': nested('[', ']'),
  'members in members': nested('{"a":', '}', '1'),
  objects: repeat('{},', '[', '{}]'),
  lists: repeat('[],', '[', '[]]'),
  numbers: repeat('1,', '[', '1]'),
  'numbers with exponents': repeat('1e5,', '[', '1]'),
  digits: repeat('1'),
  'digits of a fraction': repeat('1', '0.'),
  'digits of an exponent': repeat('1', '1e'),
  escapes: repeat('\\u0041', '"', '"'),
  'halves of surrogates': repeat('\\ud800', '"', '"'),
  backslashes: repeat('\\\\', '"', '"'),
  'a text that is not closed': repeat('\\"', '"'),
  blanks: repeat(' ', '', '1'),
  'empty texts': repeat('"",', '[', '""]'),
  'errors everywhere': repeat('?'),
  'members without values': repeat('"a",', '{', '}'),
  'keys that are given twice': repeat('"a":1,', '{', '"a":1}'),
  'different keys': repeat('"a{n}":1,', '{', '"a":1}'),
  'keys that are numbers': repeat('"{n}":1,', '{', '"a":1}'),
  'keys that are escaped': repeat('"\\u0061{n}":1,', '{', '"a":1}'),
  'maps of the same keys': repeat('{"a":1,"b":2},', '[', '{}]'),
  'maps of different keys': repeat('{"a{n}":1},', '[', '{}]'),
  'long keys that are given twice': (length) => {
    const key = 'k'.repeat(length / 4)
    return `{"${key}":{${'"x":1,'.repeat(length / 8)}"x":1}}`
  },
  'half of it opens': halves('{"a":', '}'),
}

export const JSON_TOKENS: readonly string[] = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '"a":',
  '"a"',
  '\\',
  '\\u0041',
  '1',
  '-',
  'e5',
  '0.',
  'true',
  'null',
  ' ',
  '\n',
]

export const PARSERS: readonly Parser[] = [
  parser({ name: 'JSON', limit: 3 * MIB, fillsMaps: true, read: parseJson, tokens: JSON_TOKENS, shapes: JSON_SHAPES }),
]
