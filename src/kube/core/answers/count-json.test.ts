import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { OBJECT, SHORT_TEXT_BYTES } from './answer-limits.ts'
import { countJson } from './count-json.ts'

const SEED = 1_234_567
const MIB = 1024 * 1024
const UNLIMITED = { values: 1e9, shapes: 1e9, bare: 1e9 }

interface Counts {
  values: number
  shapes: number
  bare: number
}

/** A simple reference implementation: character by character, with sets of strings. */
function simply(json: string): Counts {
  const shapes = new Set<string>()
  const outer: string[] = []
  let shape = ''
  let values = 1
  let bare = 0
  let string = ''
  for (let at = 0; at < json.length; at++) {
    const c = json.charAt(at)
    bare++
    if (c === '"') {
      const content = /(?:[^"\\]|\\.)*/sy
      content.lastIndex = at + 1
      string = content.exec(json)?.[0] ?? ''
      values += Math.floor(Buffer.byteLength(string) / 128)
      at += string.length + 1
      // Its closing quote.
      bare++
    }
    if (c === ',' || c === '{' || c === '[') values++
    if (c === ':') {
      shape += `"${string}"`
      shapes.add(shape)
    }
    if (c === '{' || c === '[') {
      outer.push(shape)
      shape = ''
    }
    if (c === '}' || c === ']') shape = outer.pop() ?? ''
  }
  return { values, shapes: shapes.size, bare }
}

test('it counts as the simple implementation does, to the last value, key and byte', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '"', '\\', '\u0001', 'é', '木', ',', '{', ':', ']') })
  const long = fc.tuple(text, fc.nat({ max: 60 })).map(([part, times]) => part.repeat(times))
  const key = fc.constantFrom('a', 'b', 'c', '"', '\\', 'a,b', '木')
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.oneof(long, fc.double(), fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 6 }),
      fc.dictionary(key, tie('value'), { maxKeys: 6 }),
    ),
  }))
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 20 }), fc.boolean(), (values, spaced) => {
      // Long enough to be counted, whatever it contains.
      const json = Buffer.from(JSON.stringify([...values, 'x'.repeat(2100)], undefined, spaced ? 1 : 0))
      const counts = simply(json.toString())
      assert.equal(countJson(json, counts.shapes === 0 ? { ...counts, shapes: 1 } : counts, SEED), undefined)
      const refusals = { values: /more than \d+ values/, shapes: /different keys/, bare: /bytes outside of strings/ }
      for (const [limit, refusal] of Object.entries(refusals)) {
        const most = counts[limit as keyof Counts] - 1
        if (most < 0) continue
        assert.match(countJson(json, { ...UNLIMITED, [limit]: most }, SEED) ?? '', refusal)
      }
    }),
    { numRuns: 100 },
  )
})

describe('what takes a turn too long is not parsed', () => {
  for (const [name, json, excess] of [
    ['empty maps', `[${'{},'.repeat(60_000)}0]`, /more than 100000 values/],
    ['long strings', `[${`"${'x'.repeat(1600)}",`.repeat(8_000)}0]`, /more than 100000 values/],
    ['keys of one map', `{${Array.from({ length: 6000 }, (_, i) => `"${i}":1`).join(',')}}`, /different keys/],
    ['keys of many maps', `[${Array.from({ length: 6000 }, (_, i) => `{"${i}":1}`).join(',')}]`, /different keys/],
    ['levels', `${'['.repeat(2000)}${']'.repeat(2000)}`, /more than 1000 levels/],
    ['digits', '1'.repeat(3 * MIB), /more than 2097152 bytes outside of strings/],
    ['white space', ' '.repeat(3 * MIB), /more than 2097152 bytes outside of strings/],
    ['a string without an end', `"${'\\"'.repeat(MIB)}`, undefined],
  ] as const) {
    test(name, () => {
      const refused = countJson(Buffer.from(json), OBJECT, SEED)
      if (excess === undefined) assert.equal(refused, undefined)
      else assert.match(refused ?? '', excess)
    })
  }
})

test('what API servers send is within the limits: an object as large as JSON makes it, and any short text', () => {
  const escaped = JSON.stringify({ kind: 'ConfigMap', data: { a: '\u0001'.repeat(1.5 * MIB) } })
  assert.equal(countJson(Buffer.from(escaped), OBJECT, SEED), undefined)
  assert.equal(countJson(Buffer.alloc(SHORT_TEXT_BYTES, '{},'), OBJECT, SEED), undefined)
})
