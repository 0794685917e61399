import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { callPattern, Pattern, patternCost } from './patterns.ts'
import { Cost, ExpressionFault } from './values.ts'

const UNLIMITED = Number.MAX_SAFE_INTEGER

function call(name: string, ...args: readonly unknown[]): unknown {
  return callAt(new Cost(), name, args)
}

function callAt(cost: Cost, name: string, args: readonly unknown[]): unknown {
  try {
    return callPattern(name, args, new Map(), cost)
  } catch (error) {
    if (error instanceof ExpressionFault) return `fault: ${error.message}`
    throw error
  }
}

// Go's regexp says the same.
const FOUND: readonly (readonly [text: string, pattern: string, all: readonly string[] | string])[] = [
  ['abc 123', '[0-9]*', ['', '', '', '', '123']],
  ['', '', ['']],
  ['a😀b', '', ['', '', '', '']],
  ['a😀b', '.', ['a', '😀', 'b']],
  ['aab', 'a|ab', ['a', 'a']],
  ['aab', '^a', ['a']],
  ['a\nb', '(?m)^.$', ['a', 'b']],
  ['Kk\u212a', '(?i)k', ['K', 'k', '\u212a']],
  ['aaa', 'a*?', ['', '', '', '']],
  ['abcabc', '(?:bc|b)', ['bc', 'bc']],
  ['(a', '\\Q(a\\E', ['(a']],
  ['a', '(', 'fault: the pattern is not valid: missing closing )'],
  ['a', '(?=a)', 'fault: the pattern is not valid: invalid or unsupported Perl syntax'],
  ['a', '(?<!a)', 'fault: the pattern is not valid: invalid named capture'],
  ['a', '(a)\\1', 'fault: the pattern is not valid: invalid escape sequence'],
  ['a', 'a{1001}', 'fault: the pattern is not valid: invalid repeat count'],
  ['a', '(?:a{100}){11}', 'fault: the pattern is not valid: invalid repeat count'],
]
for (const [text, pattern, all] of FOUND) {
  test(`${JSON.stringify(text)}: ${pattern}`, () => {
    assert.deepEqual(callAt(new Cost(UNLIMITED), 'findAll', [text, pattern]), all)
    if (typeof all === 'string') return
    assert.equal(call('find', text, pattern), all[0])
    assert.equal(call('matches', text, pattern), true)
    assert.deepEqual(call('findAll', text, pattern, 1n), all.slice(0, 1))
    assert.deepEqual(call('findAll', text, pattern, 0n), [])
    assert.deepEqual(call('findAll', text, pattern, -1n), all)
    assert.deepEqual(call('findAll', text, pattern, 2n ** 63n - 1n), all)
  })
}

test('what is not found, and what is not a text', () => {
  assert.equal(call('matches', 'abc', '^b'), false)
  assert.equal(call('find', 'abc', 'x'), '')
  assert.deepEqual(call('findAll', 'abc', 'x'), [])
  assert.equal(call('matches', 1, 'x'), 'fault: no such overload: matches(double, string)')
  assert.equal(call('find', 'x', 1n), 'fault: no such overload: find(string, int)')
  assert.equal(call('findAll', 'x', 'x', 1), 'fault: no such overload: findAll(string, string, double)')
})

test('half a character is the one for what is unknown, as in a token that Go reads', () => {
  assert.deepEqual(call('findAll', 'a\ud800b', '.'), ['a', '\ufffd', 'b'])
  assert.equal(call('matches', '\udc00', '\ufffd'), true)
})

test('a pattern or a search that would take long costs too much, before it begins', () => {
  const patterns = ['a{1000}{2}', '(?:[ab]{500}){2}', '\\pL'.repeat(50), '(?i)[\u0100-\u2fff]', 'a'.repeat(20_000)]
  for (const pattern of patterns) assert.match(String(call('matches', 'a', pattern)), /^fault/, pattern.slice(0, 20))
  const text = `${'a'.repeat(60_000)}b`
  for (const pattern of [
    '(?:a?){50}a{50}$',
    '(.*)(.*)(.*)(.*)[xy]',
    '(?:[ab]|[bc]|ab)*(?:[ab]|[bc]|ab)*(?:[ab]|[bc]|ab)*[cd]',
  ]) {
    assert.equal(call('matches', text, pattern), 'fault: the expression costs too much', pattern)
  }
  // With JavaScript's own, this would take longer than the world is old.
  assert.equal(call('matches', text, '(a+)+$'), false)
  assert.equal(call('findAll', 'a'.repeat(10_000), 'a'), 'fault: the expression costs too much')
  assert.equal(call('findAll', 'a'.repeat(4_000), 'a.*b|a'), 'fault: the expression costs too much')
  assert.deepEqual(call('findAll', 'a'.repeat(10_000), 'a', 1n), ['a'])
  // What is common stays far from it.
  const cost = new Cost()
  const pattern = new Pattern('^[a-z0-9]([-a-z0-9]*[a-z0-9])?@example\\.com$', cost)
  for (let n = 0; n < 100; n++) assert.equal(pattern.find(`user-${n}@example.com`, 1, cost).length, 1)
})

const PIECES = [
  'a',
  '[a-c]',
  '[]a]',
  '[^]]',
  '[[:alpha:]-]',
  '[\\]a]',
  '\\pL',
  '\\p{Greek}',
  '[\\pL\\d]',
  '\\x{61}',
  '\\Q{2}',
]
const MORE = [
  '\\E',
  '(',
  '(?:',
  '(?i)',
  '(?P<n>',
  ')',
  '|',
  '*',
  '+',
  '??',
  '{3}',
  '{2,}',
  '{1,7}',
  '{0}',
  '{,2}',
  '{',
  '}',
]

test('no program is larger than its pattern was taken for', () => {
  const one = fc.constantFrom(...PIECES, ...MORE)
  fc.assert(
    fc.property(fc.array(one, { maxLength: 12 }), (pieces) => {
      const pattern = pieces.join('')
      let size = 0
      try {
        size = RE2JS.compile(pattern).programSize()
      } catch {
        return
      }
      assert.ok(patternCost(pattern) >= size * 50, `${pattern}: ${size} instructions`)
    }),
    { numRuns: 2_000 },
  )
})

test('a cost that is not spent twice', () => {
  const pattern = new Pattern('a', new Cost(UNLIMITED))
  assert.equal(callPattern('matches', ['a', 'a'], new Map([['a', pattern]]), new Cost(200)), true)
  assert.throws(() => callPattern('matches', ['a', 'a'], new Map(), new Cost(200)), ExpressionFault)
})
