import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { FileParser } from './parse.ts'

function parse(text: string): ReturnType<FileParser['parse']> {
  return new FileParser().parse('f.yaml', text)
}

test('documents, lists and JSON become objects with their lines', () => {
  const { objects, problems, broken } = parse(
    '# head\n%YAML 1.1\n---\na:\n  - b: yes\n    c: 1\n---\n# nothing\n---\nkind: XList\nitems:\n- a: 1\n-\n  a: 2\n--- {d: 4}\n...\n',
  )
  assert.deepEqual([problems, broken], [[], false])
  assert.deepEqual(
    objects.map(({ line, value }) => [line, value]),
    [
      [4, { a: [{ b: 'yes', c: 1 }] }],
      [12, { a: 1 }],
      [14, { a: 2 }],
      [15, { d: 4 }],
    ],
  )
  const [first, , second] = objects
  assert.deepEqual(
    ['a', 'a[0]', 'a[0].b', 'a[0].c', 'a[0].x.y', 'a[5]', 'z', ''].map((path) => first?.lineOf(path)),
    [4, 5, 5, 6, 5, 4, 4, 4],
  )
  assert.equal(second?.lineOf('a'), 14)
  const [json] = parse('\ufeff{\r\n\t"a": {\r\n\t\t"x/y.z": 1\r\n\t}\r\n}').objects
  assert.deepEqual(json?.value, { a: { 'x/y.z': 1 } })
  assert.equal(json?.lineOf('a[x/y.z]'), 3)
})

const BROKEN: readonly (readonly [string, string, number, RegExp])[] = [
  ['unclosed flow', 'a: 1\nb: [1,\n', 3, /not valid YAML/],
  ['unclosed quote', 'a: "x\n', 1, /not valid YAML/],
  ['duplicate key', 'a:\n  - b: 1\n    b: 2\n', 3, /given twice/],
  ['unknown alias', 'a: *x\n', 1, /alias/],
  ['deep nesting', '['.repeat(50_000), 1, /./],
  ['list as key', '? [a]\n: b\n', 1, /keys must be strings/],
]

for (const [name, text, line, message] of BROKEN) {
  test(`${name}: has the position, and does not affect other documents`, () => {
    const { objects, problems, broken } = parse(`x: 1\n---\n${text.trimEnd()}\n---\ny: 2\n`)
    assert.equal(broken, true)
    assert.deepEqual(
      objects.map(({ value }) => value),
      [{ x: 1 }, { y: 2 }],
    )
    assert.equal(problems.length, 1)
    assert.match(problems[0]?.message ?? '', message)
    // The first line of a document is that of its `---`.
    if (name !== 'unclosed flow' && name !== 'unclosed quote') assert.equal(problems[0]?.line, line + 2)
    assert.ok((problems[0]?.line ?? 0) >= 3 && (problems[0]?.line ?? 0) <= 6)
  })
}

test('an alias bomb is refused, a plain alias is not', () => {
  let bomb = 'a0: &a0 [x, x, x, x, x, x, x, x, x]\n'
  for (let i = 1; i < 10; i++)
    bomb += `a${i}: &a${i} [${Array(9)
      .fill(`*a${i - 1}`)
      .join(', ')}]\n`
  const { problems, objects } = parse(bomb)
  assert.equal(objects.length, 0)
  assert.match(problems[0]?.message ?? '', /alias/)
  assert.deepEqual(parse('a: &x [1]\nb: *x\n').objects[0]?.value, { a: [1], b: [1] })
})

test('tags of one language are text, with a warning', () => {
  const { problems, objects, broken } = parse('a: !!binary aGk=\n')
  assert.equal(broken, false)
  assert.deepEqual(objects[0]?.value, { a: 'aGk=' })
  assert.equal(problems[0]?.severity, 'warning')
})

test('a parser reads an unchanged document once, and its lines move with it', () => {
  const parser = new FileParser()
  const [before] = parser.parse('f', 'a: 1\n---\nb: 2').objects.slice(1)
  parser.endReading()
  const [after] = parser.parse('f', 'a: 1\nmore: 1\n---\nb: 2').objects.slice(1)
  assert.equal(after?.value, before?.value)
  assert.deepEqual([before?.line, after?.line, after?.lineOf('b')], [3, 4, 4])
})

test('any text is read without throwing; what was written as YAML or JSON comes back', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => void parse(text)))
  const pieces = fc.constantFrom(
    'a',
    ':',
    ' ',
    '-',
    '\n',
    '[',
    ']',
    '{',
    '}',
    '"',
    "'",
    '|',
    '>',
    '&a',
    '*a',
    '---',
    '%',
    '#',
    '? ',
    '!',
    '\t',
    ',',
  )
  fc.assert(fc.property(fc.array(pieces, { maxLength: 30 }), (text) => void parse(text.join(''))))
  const object = fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 })
  fc.assert(
    fc.property(object, (value) => {
      const expected: unknown = JSON.parse(JSON.stringify(value))
      fc.pre(!/"kind"/.test(JSON.stringify(value)))
      assert.deepEqual(parse(JSON.stringify(value)).objects[0]?.value, expected)
      assert.deepEqual(parse(stringify(expected)).objects[0]?.value, expected)
    }),
  )
})
