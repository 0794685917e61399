import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fitWidth, printable, safeJson, textWidth } from './printable.ts'

test('what a terminal would obey is written as an escape', () => {
  assert.equal(printable('kubectl/v1.36 (linux)'), 'kubectl/v1.36 (linux)')
  assert.equal(printable('\u001b]0;title\u0007'), '\\x1b]0;title\\x07')
  assert.equal(printable('\u009b2J a\r\n\tb\u007f'), '\\x9b2J a\\x0d\\n\\tb\\x7f')
  assert.equal(printable('\u202egnp.\u200bexe\u2028\ud800'), '\\u202egnp.\\u200bexe\\u2028\\ud800')
  assert.equal(printable('jörg 日本 \u{e0041}'), 'jörg 日本 \\u{e0041}')
  // Input can't imitate an escape.
  assert.equal(printable('\\x1b'), '\\\\x1b')
})

test('printable text has nothing that a terminal would obey, and different texts stay different', () => {
  const text = fc.string({ unit: 'binary' })
  fc.assert(fc.property(text, (one) => !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(printable(one))))
  fc.assert(fc.property(text, text, (one, other) => (printable(one) === printable(other)) === (one === other)))
})

test('safe JSON reads the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const json = safeJson({ text })
      assert.deepEqual(JSON.parse(json), { text })
      assert.ok(!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(json))
    }),
  )
})

test('text is measured and cut as a terminal shows it', () => {
  assert.deepEqual([textWidth('abc'), textWidth('日本'), textWidth('e\u0301')], [3, 4, 1])
  assert.deepEqual(
    [fitWidth('abcdef', 4), fitWidth('abcd', 4), fitWidth('日本語', 4), fitWidth('ab', 0)],
    ['abc…', 'abcd', '日…', ''],
  )
})
