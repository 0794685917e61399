import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { absoluteFormAuthority, absoluteFormPath, decodePath, decodeQueryPart, originForm } from './request-target.ts'

test('absolute-form: authority and path', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ['http://h/p?q', 'h', '/p?q'],
    ['https://h:8443', 'h:8443', '/'],
    ['http://h?q', 'h', '/?q'],
    ['http://user@h/p', 'h', '/p'],
    ['http://[::1]:1/p', '[::1]:1', '/p'],
    ['coap+tcp://h/p', 'h', '/p'],
    ['/p', '', '/p'],
    ['/p?x=http://h/', '', '/p?x=http://h/'],
    ['*', '', '*'],
    ['://h/p', '', '://h/p'],
    ['1http://h/p', '', '1http://h/p'],
  ]
  for (const [target, authority, origin] of rows) {
    assert.equal(absoluteFormAuthority(target), authority, target)
    assert.equal(originForm(target), origin, target)
    assert.equal(absoluteFormPath(target) < 0, authority === '', target)
  }
})

test('decoding undoes encoding, of paths and of query parts', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      assert.equal(decodePath(encodeURIComponent(text)), text)
      assert.equal(decodeQueryPart(encodeURIComponent(text).replaceAll('%20', '+')), text)
    }),
  )
})

test('plus is a space in a query only', () => {
  assert.equal(decodePath('a+b'), 'a+b')
  assert.equal(decodeQueryPart('a+b'), 'a b')
})
