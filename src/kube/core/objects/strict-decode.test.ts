// Decoding of bodies, compared with answers of a real kube-apiserver (test/data/object-decoding.json).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { LineCounter } from 'yaml'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { MAX_DEPTH } from './json-text.ts'
import { decodeObject, MAX_SMALL_YAML_LENGTH, MAX_YAML_LENGTH, YamlTooLong } from './strict-decode.ts'
import { composeFirstDocument } from './yaml-text.ts'

interface Row {
  readonly type: 'json' | 'yaml'
  readonly text: string
  readonly code: number
  /** Pruned and with defaults; null when the object has none. */
  readonly spec?: Readonly<Record<string, unknown>> | null
  readonly message?: string
  readonly strict?: string
}

const DATA: { readonly texts: readonly Row[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../test/data/object-decoding.json'), 'utf8'),
)

for (const row of DATA.texts) {
  test(`as kube-apiserver: ${row.type} ${JSON.stringify(row.text)}`, () => {
    const outcome = decoded(row)
    if (typeof outcome === 'string') {
      // YAML parsers word their errors differently; the other messages are equal.
      assert.equal(row.code, 400, `${outcome} was fine for kube-apiserver`)
      if (row.type === 'json' || /anchor|unsupported value/.test(outcome)) {
        assert.ok(row.message?.includes(outcome), `${outcome} should be in ${row.message}`)
      }
      return
    }
    if (row.code === 400) assert.match(row.message ?? '', NO_OBJECT, `${row.message}`)
    assert.deepEqual(outcome.strictErrors.length > 0, /duplicate field|already set/.test(row.strict ?? ''))
    for (const error of outcome.strictErrors)
      assert.ok(row.strict?.includes(error), `${error} should be in ${row.strict}`)
    if (row.spec === undefined || row.spec === null) return
    assert.ok(isRecord(outcome.value) && isRecord(outcome.value['spec']))
    assert.deepEqual({ mode: 'A', ...outcome.value['spec'] }, row.spec)
  })
}

/** Syntactically valid text that is not an object of a kind. */
const NO_OBJECT = /cannot unmarshal \w+ into Go value|'Kind' is missing|incompatible YAML document/

function decoded({ text, type }: Row): ReturnType<typeof decodeObject> | string {
  try {
    return decodeObject(text, type)
  } catch (error) {
    assert.ok(error instanceof SyntaxError)
    return error.message
  }
}

test('a key that is there twice is named by its path, once', () => {
  const { value, duplicates } = decodeObject('{"a":1,"b":{"c":[{"x":1,"x":2,"x":3}]},"a":{"y":2}}', 'json')
  assert.deepEqual(value, { a: { y: 2 }, b: { c: [{ x: 3 }] } })
  assert.deepEqual(duplicates, ['b.c[0].x', 'a'])
  const yaml = decodeObject('a: 1\nb:\n  c:\n  - x: 1\n    x: 2\na: 3\n', 'yaml')
  assert.deepEqual(yaml.duplicates, ['b.c[0].x', 'a'])
  assert.deepEqual(yaml.strictErrors, [
    'yaml: unmarshal errors:\n  line 5: key "x" already set in map\n  line 6: key "a" already set in map',
  ])
})

test('__proto__ is a key like any other', () => {
  for (const format of ['json', 'yaml'] as const) {
    const { value, duplicates } = decodeObject('{"__proto__": {"polluted": 1}, "__proto__": {"polluted": 2}}', format)
    assert.equal(JSON.stringify(value), '{"__proto__":{"polluted":2}}')
    assert.deepEqual(duplicates, ['__proto__'])
    assert.equal(({} as Readonly<Record<string, unknown>>)['polluted'], undefined)
  }
})

test('bombs are refused: nesting, aliases, and numbers too large', () => {
  const refuses = (text: string, format: 'json' | 'yaml', message: RegExp): void => {
    assert.throws(() => decodeObject(text, format), { name: 'SyntaxError', message })
  }
  refuses('['.repeat(100_000), 'json', /exceeded max depth/)
  refuses('{"a":'.repeat(501), 'json', /exceeded max depth/)
  refuses(`${'['.repeat(600)}${']'.repeat(600)}`, 'yaml', /exceeded max depth/)
  refuses('['.repeat(50_000), 'yaml', /^yaml: /)
  refuses('{"a":1e999}', 'json', /cannot unmarshal number/)
  refuses(`{"a":${'9'.repeat(400)}}`, 'json', /cannot unmarshal number/)
  let bomb = 'a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n'
  for (let level = 1; level < 9; level++)
    bomb += `a${level}: &a${level} [${Array(10)
      .fill(`*a${level - 1}`)
      .join(',')}]\n`
  refuses(bomb, 'yaml', /excessive aliasing/)
})

test('JSON that JSON.parse takes is read, and nothing else', () => {
  const texts = [
    '{',
    '}',
    '[1,]',
    '[,1]',
    '{"a":1,}',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '+1',
    'tru',
    'nul',
    '"',
    '"\\',
    '"\\u12"',
  ]
  const fine = ['0', '-0', '1.5e-3', '"\\u00e9\\n"', '[]', '{}', ' [ 1 , { "a" : null } ] ', 'true', '"\u2028"', '1E+2']
  for (const text of [...texts, ...fine, '', '\u0001', "'a'", '{"a" 1}', '[1 2]', 'NaN', '\ufeff{}', '{"a":1}{}']) {
    let expected: unknown
    let refused = false
    try {
      expected = JSON.parse(text)
    } catch {
      refused = true
    }
    if (refused) assert.throws(() => decodeObject(text, 'json'), SyntaxError, JSON.stringify(text))
    else assert.deepEqual(decodeObject(text, 'json').value, expected)
  }
})

// Built one by one, the paths would take minutes, during which no other request is served.
test('fields given twice by the thousand, below a long key, take no time to speak of', { timeout: 60_000 }, () => {
  for (const [format, length, count] of [
    ['json', 1_000_000, 39_000],
    ['yaml', 1000, 4_000],
  ] as const) {
    const fields = Array.from({ length: count }, (_, i) => `"f${i % 90}":1`).join(',')
    const { duplicates } = decodeObject(`{"${'k'.repeat(length)}":{${fields}}}`, format)
    assert.ok(duplicates.length > 0)
    assert.ok(duplicates.join('').length < 1_100_000)
  }
})

test('YAML that is not JSON is read up to its limit, JSON beyond it, and the refusal says so', () => {
  const text = (length: number): string => `a: ${'x'.repeat(length - 3)}`
  assert.deepEqual(Object.keys(Object(decodeObject(text(MAX_YAML_LENGTH), 'yaml').value)), ['a'])
  assert.throws(() => decodeObject(text(MAX_YAML_LENGTH + 1), 'yaml'), {
    name: 'SyntaxError',
    message: 'yaml: the text has 32769 characters, the limit of this server is 32768: send JSON, which may be longer',
  })
  const json = JSON.stringify({ a: 'x'.repeat(MAX_YAML_LENGTH) })
  assert.equal(decodeObject(json, 'yaml').duplicates.length, 0)
})

test('a smaller limit of YAML is told apart from text that cannot be read, and holds before anything is read', () => {
  const broken = `}${' '.repeat(MAX_SMALL_YAML_LENGTH)}`
  assert.throws(() => decodeObject(broken, 'yaml', MAX_SMALL_YAML_LENGTH), YamlTooLong)
  const json = `{"a":"${'x'.repeat(MAX_SMALL_YAML_LENGTH)}"}`
  assert.ok(isRecord(decodeObject(json, 'yaml', MAX_SMALL_YAML_LENGTH).value))
  assert.deepEqual(decodeObject(`a: ${'x'.repeat(9)}`, 'yaml', 12).value, { a: 'xxxxxxxxx' })
  assert.throws(() => decodeObject(`a: ${'x'.repeat(10)}`, 'yaml', 12), /has 13 characters, .* is 12: send JSON/)
})

test('YAML is read no deeper than it may be nested', () => {
  for (const level of ['[\n', '{\n', '-\n ', '?\n ']) {
    const lines = new LineCounter()
    const text = Array.from(
      { length: 8000 },
      (_, depth) => level + (level.endsWith(' ') ? ' '.repeat(depth % 600) : ''),
    )
    assert.throws(() => composeFirstDocument(text.join(''), lines), /^SyntaxError: yaml: exceeded max depth$/, level)
    assert.ok(lines.lineStarts.length < 600, `${level}: ${lines.lineStarts.length} lines were read`)
  }
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  assert.ok(Array.isArray(decodeObject(deep(MAX_DEPTH), 'yaml').value))
  assert.throws(() => decodeObject(deep(MAX_DEPTH + 2), 'yaml'), /exceeded max depth/)
})

test('aliases of a long text are as bounded as many aliases', () => {
  const text = `a: &a ${'x'.repeat(30_000)}\nb: [${'*a, '.repeat(40)}*a]\n`
  assert.throws(() => decodeObject(text, 'yaml'), { message: 'yaml: document contains excessive aliasing' })
})
