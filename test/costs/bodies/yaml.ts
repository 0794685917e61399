// YAML, which clients may send wherever JSON may stand.

import { MAX_YAML_LENGTH } from '../../../src/kube/core/objects/strict-decode.ts'
import { parseYaml } from '../../../src/kube/core/objects/yaml-text.ts'
import { type Parser, parser } from '../parser.ts'
import { halves, nested, recipe, repeat, type Shape } from '../shapes.ts'

export const YAML_SHAPES: Readonly<Record<string, Shape>> = {
  'closing braces': repeat('}'),
  'closing brackets': repeat(']'),
  'opening braces': repeat('{'),
  'opening brackets': repeat('['),
  'brackets in brackets': nested('[', ']'),
  'lists in lists': nested('{a: [', ']}'),
  'commas in a flow sequence': repeat(',', '[', ']'),
  'colons in a flow sequence': repeat(': ', '[', ']'),
  'question marks in a flow map': repeat('? ', '{', '}'),
  'bad escapes': repeat('\\q', '"', '"'),
  escapes: repeat('\\u0041', '"', '"'),
  'a text that is not closed': repeat('a', '"'),
  'texts that are not closed': repeat('"\n'),
  apostrophes: repeat("'"),
  anchors: repeat('&a '),
  'different anchors': repeat('- &a{n} b\n'),
  aliases: repeat('- *a\n', 'a: &a 1\nb:\n'),
  tags: repeat('!a '),
  'tags of items': repeat('- !a{n} b\n'),
  directives: repeat('%a\n', '', '---\n'),
  dashes: repeat('- '),
  'members of a map': repeat('a: 1\n'),
  'different members of a map': repeat('a{n}: 1\n'),
  'different members of a flow map': repeat('a{n}: 1,', '{', '}'),
  'items of a list': repeat('- a\n'),
  'maps of one member': repeat('- a: b\n'),
  comments: repeat('#a\n'),
  'a long comment': repeat('#'),
  documents: repeat('---\n'),
  'ends of documents': repeat('...\n'),
  'lines of a text': repeat('\n a', 'a'),
  'lines of a block': repeat('  a\n', 'a: |\n'),
  'lines of a folded block': repeat('  a\n\n', 'a: >-\n'),
  'empty lines': repeat('\n', 'a: b', 'c: d'),
  'carriage returns': repeat('\r\n', 'a: b', 'c: d'),
  blanks: repeat(' ', 'a', 'b'),
  tabs: repeat('\t', 'a:', 'b'),
  'deeper and deeper': (length) => {
    const depth = Math.floor(Math.sqrt(length))
    return Array.from({ length: depth }, (_, n) => `${' '.repeat(n)}a:\n`).join('')
  },
  merges: repeat('  <<: *a\n', 'a: &a {x: 1}\nb:\n'),
  'long aliases': recipe(['a: &a ', 0], ['x', 1], ['\nb:\n', 0], ['- *a\n', 1]),
  'keys that are collections': repeat('? [a]\n: b\n'),
  digits: repeat('1', 'a: '),
  'almost a number': repeat('1_', 'a: '),
  'almost a date': repeat('2001-01-01 ', 'a: '),
  'numbers of base sixty': repeat('1:', 'a: ', '1'),
  'a key that is long': repeat('a', '', ': b'),
  colons: repeat(':'),
  'percent signs': repeat('%'),
  'half of it opens': halves('{a: ', '}'),
}

export const YAML_TOKENS: readonly string[] = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ': ',
  '- ',
  '? ',
  '\n',
  '\n  ',
  '"',
  "'",
  '\\',
  '&a ',
  '*a',
  '!a ',
  '|',
  '>',
  '#',
  '---\n',
  '%',
  '<<',
  'a',
  '1',
  ' ',
  '\t',
]

export const PARSERS: readonly Parser[] = [
  parser({ name: 'YAML', limit: MAX_YAML_LENGTH, read: parseYaml, tokens: YAML_TOKENS, shapes: YAML_SHAPES }),
]
