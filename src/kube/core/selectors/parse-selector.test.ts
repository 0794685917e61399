import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isInt64 } from '../../../kit/core/text/int64.ts'
import { isLabelSelector } from './parse-selector.ts'

// Each verdict comes from k8s.io/apimachinery v0.36 itself.
const PARSE = [
  '',
  'a',
  'a=b',
  'a==b',
  'a!=b',
  'a in (b,c)',
  'a notin (b)',
  '!a',
  'a,!b',
  'a>1',
  'a=',
  'a=,b',
  'a in ()',
  'a in (,)',
  'in',
  'in in (in)',
  'notin=in',
  'x.io/a',
  'a=\0',
  'a,!b,c=d,e in (f,,g),h notin (),i>1,j<-2'.replace('-2', '2'),
]

const DO_NOT_PARSE = [
  'a<x',
  'a>',
  'a in (b',
  'a in b',
  '(a)',
  'a b',
  'a,',
  '!a=b',
  '!!a',
  'X.io/a',
  '/a',
  'a/b/c',
  '-a',
  'a===b',
  'a=b;c',
  'a\0b',
]

test('selectors that Kubernetes parses', () => {
  for (const selector of PARSE) assert.equal(isLabelSelector(selector), true, JSON.stringify(selector))
})

test('selectors that Kubernetes refuses', () => {
  for (const selector of DO_NOT_PARSE) assert.equal(isLabelSelector(selector), false, JSON.stringify(selector))
})

test('names have 63 characters at most, prefixes 253', () => {
  assert.equal(isLabelSelector('a'.repeat(63)), true)
  assert.equal(isLabelSelector('a'.repeat(64)), false)
  assert.equal(isLabelSelector(`a=${'b'.repeat(63)}`), true)
  assert.equal(isLabelSelector(`a=${'b'.repeat(64)}`), false)
  assert.equal(isLabelSelector(`${'a'.repeat(253)}/b`), true)
  assert.equal(isLabelSelector(`${'a'.repeat(254)}/b`), false)
})

test('a selector built by the grammar parses, and does not when a requirement follows without comma', () => {
  const name = fc
    .stringMatching(/^[a-z]([-a-z0-9_.]{0,8}[a-z0-9])?$/)
    .filter((word) => word !== 'in' && word !== 'notin')
  const key = fc.oneof(
    name,
    name.map((word) => `example.com/${word}`),
  )
  const requirement = fc.oneof(
    key,
    key.map((word) => `!${word}`),
    fc.tuple(key, fc.constantFrom('=', '==', '!=', ' = '), fc.option(name, { nil: '' })).map((parts) => parts.join('')),
    fc
      .tuple(key, fc.constantFrom(' in ', ' notin '), fc.array(name))
      .map(([k, op, values]) => `${k}${op}(${values.join(',')})`),
    fc.tuple(key, fc.constantFrom('>', '<'), fc.nat()).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(fc.array(requirement), name, (requirements, extra) => {
      const selector = requirements.join(', ')
      assert.equal(isLabelSelector(selector), true, selector)
      assert.equal(isLabelSelector(`${selector}(${extra}`), false)
      assert.equal(isLabelSelector(`${selector},`), false)
    }),
  )
})

test('isInt64 is strconv.ParseInt', () => {
  for (const text of [
    '0',
    '-1',
    '+7',
    '007',
    '9223372036854775807',
    '-9223372036854775808',
    '+000000000000000000001',
  ]) {
    assert.equal(isInt64(text), true, text)
  }
  for (const text of ['', '-', '1.5', ' 1', '1_000', '0x1', '1e3', '9223372036854775808', '-9223372036854775809']) {
    assert.equal(isInt64(text), false, text)
  }
})
