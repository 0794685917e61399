// Field selectors select what a real kube-apiserver selected, and refuse what it refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FactsReader } from '../../src/cache/core/bytes/object-facts.ts'
import { compileFieldSelector, selectableFields } from '../../src/cache/core/fields/selectable-fields.ts'
import { compareKeys, objectKey } from '../../src/cache/core/keys/object-key.ts'
import { readAnswers } from './read-answers.ts'
import { objectsOf, resourceOf } from './recorded-objects.ts'

const { lists, selectors } = readAnswers()

test('what a selector names is what kube-apiserver knows', () => {
  assert.ok(selectors.length > 600)
  for (const { path, selector, status } of selectors) {
    const matches = compileFieldSelector(selector, selectableFields(resourceOf(path)))
    assert.equal(matches === undefined ? 400 : 200, status, `${path} ${selector}`)
  }
})

test('a selector selects the objects that kube-apiserver selects, in its order', () => {
  let compared = 0
  for (const { path, selector, keys } of selectors) {
    const list = lists.find((answer) => answer.path === path && answer.accept === 'application/json')
    const fields = selectableFields(resourceOf(path))
    const matches = compileFieldSelector(selector, fields)
    if (list === undefined || keys === undefined || matches === undefined) continue
    const reader = new FactsReader(fields.kept)
    const selected = objectsOf(list)
      .map((json) => reader.read(json))
      .filter(matches)
      .map(({ namespace, name }) => objectKey(namespace, name))
    assert.deepEqual(selected.sort(compareKeys), keys, `${path} ${selector}`)
    compared++
  }
  assert.ok(compared > 90, String(compared))
})

test('keys are in the order of their bytes', () => {
  const keys = ['a', 'a-b/x', 'a/x', 'a/x-y', 'a/x.y', 'a/xy', 'a0/x', 'b', 'é', '\uffff', '😀', '😁']
  const shuffled = keys.toReversed()
  assert.deepEqual(shuffled.sort(compareKeys), keys)
  assert.deepEqual(
    keys.toSorted((a, b) => Buffer.from(a).compare(Buffer.from(b))),
    keys,
  )
  assert.equal(compareKeys('a', 'a'), 0)
  // A lone surrogate is not in any JSON that was read.
  const key = fc.string({
    unit: fc.oneof(fc.constantFrom('a', '-', '.', '/', '0'), fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })),
  })
  fc.assert(
    fc.property(key, key, (a, b) => {
      assert.equal(Math.sign(compareKeys(a, b)), Buffer.from(a).compare(Buffer.from(b)))
    }),
  )
})
