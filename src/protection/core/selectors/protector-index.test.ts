import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import type { LabelSelector, LabelSelectorRequirement } from '../../../kit/api/validation/label-selector-schema.ts'
import { compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import { PodIndex } from './pod-index.ts'
import { ProtectorIndex } from './protector-index.ts'

interface Upstream {
  readonly labelSelectorsIndex: {
    readonly selectors: Record<string, { key: string; op: LabelSelectorRequirement['operator']; values: string[] }[]>
    readonly queries: { labels: Record<string, string>; expect: string[] }[]
  }
  readonly labelSetsIndex: {
    readonly sets: Record<string, Record<string, string>>
    readonly queries: {
      name: string
      requirements: [string, LabelSelectorRequirement['operator'], string[]][]
      expect: string[]
    }[]
  }
  readonly settrie: { readonly words: number[][] }
}

const { labelSelectorsIndex, labelSetsIndex, settrie } = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-index.json', import.meta.url), 'utf8'),
) as Upstream

test("Podseidon's table of selectors", () => {
  const index = new ProtectorIndex()
  for (const [key, requirements] of Object.entries(labelSelectorsIndex.selectors)) {
    const matchExpressions = requirements.map(({ key, op, values }) => ({ key, operator: op, values }))
    // First with one more requirement, which must leave nothing behind.
    index.put(key, 'ns', { matchExpressions: [...matchExpressions, { key: 'k3', operator: 'Exists' }] })
    index.put(key, 'ns', { matchExpressions })
  }
  for (const { labels, expect } of labelSelectorsIndex.queries) {
    assert.deepEqual(index.query('ns', labels), expect, JSON.stringify(labels))
    assert.deepEqual(index.query('other', labels), [])
  }
})

test("Podseidon's table of label sets", () => {
  const index = new PodIndex<string>()
  for (const [name, labels] of Object.entries(labelSetsIndex.sets)) index.put(name, 'ns', labels, name)
  for (const { name, requirements, expect } of labelSetsIndex.queries) {
    const matchExpressions = requirements.map(([key, operator, values]) => ({ key, operator, values }))
    assert.deepEqual([...index.select('ns', { matchExpressions })].sort(), expect, name)
    assert.deepEqual([...index.select('other', { matchExpressions })], [])
  }
})

test("Podseidon's table of words: each set of labels finds the sets within it", () => {
  const index = new ProtectorIndex()
  const selectorOf = (word: readonly number[]): LabelSelector => ({
    matchExpressions: word.map((letter) => ({ key: `l${letter}`, operator: 'Exists' })),
  })
  for (const word of settrie.words) index.put(word.join(), 'ns', selectorOf(word))
  for (let bits = 0; bits < 64; bits++) {
    const letters = [1, 2, 3, 4, 5, 6].filter((letter) => bits & (1 << (letter - 1)))
    const expected = settrie.words.filter((word) => word.every((letter) => letters.includes(letter)))
    const labels = Object.fromEntries(letters.map((letter) => [`l${letter}`, '']))
    assert.deepEqual(index.query('ns', labels), expected.map((word) => word.join()).sort())
  }
})

test('a selector that cannot be read leaves what was there', () => {
  const index = new ProtectorIndex()
  const wrong = { matchExpressions: [{ key: 'a', operator: 'in', values: ['x'] }] } as unknown as LabelSelector
  index.put('ns/a', 'ns', { matchLabels: { a: 'x' } })
  assert.throws(() => index.put('ns/a', 'ns', wrong), SyntaxError)
  assert.throws(() => index.put('ns/b', 'ns', wrong), SyntaxError)
  assert.deepEqual(index.query('ns', { a: 'x' }), ['ns/a'])
  assert.equal(index.size, 1)
})

test('a key moves between namespaces, and namespaces without selectors are gone', () => {
  const index = new ProtectorIndex()
  index.put('k', 'one', {})
  index.put('k', 'two', {})
  assert.deepEqual([...index.namespaces()], ['two'])
  assert.deepEqual([index.query('one', {}), index.query('two', {})], [[], ['k']])
  index.remove('k')
  index.remove('k')
  assert.deepEqual([[...index.namespaces()], index.size], [[], 0])
})

test('requirements of many values are not multiplied', () => {
  const index = new ProtectorIndex()
  const values = (label: string, from: number): string[] => Array.from({ length: 60 }, (_, i) => `${label}${from + i}`)
  for (let at = 0; at < 50; at++) {
    const matchExpressions = ['a', 'b', 'c', 'd'].map((key) => ({
      key,
      operator: 'In' as const,
      values: [...values(key, at), ...values(key, at)],
    }))
    index.put(`k${at}`, 'ns', { matchExpressions })
  }
  // k20 to k49 have the value 79 of each label.
  assert.equal(index.query('ns', { a: 'a79', b: 'b79', c: 'c79', d: 'd79' }).length, 30)
  assert.deepEqual(index.query('ns', { a: 'a0', b: 'b59', c: 'c0', d: 'd30' }), ['k0'])
  assert.deepEqual(index.query('ns', { a: 'a0', b: 'b60', c: 'c0', d: 'd30' }), [])
  for (let at = 0; at < 50; at++) index.remove(`k${at}`)
  assert.deepEqual(index.query('ns', { a: 'a0', b: 'b0', c: 'c0', d: 'd0' }), [])
})

// === compared with the naive way: every selector is checked ===

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}

function keysOf(entries: readonly (readonly [string, unknown])[]): string[] {
  return entries.map(([key]) => key).sort(byText)
}

const LABELS = ['a', 'b', 'c', 'constructor']
const VALUES = ['', 'x', 'y', 'z']
const labelsOf = fc.dictionary(fc.constantFrom(...LABELS), fc.constantFrom(...VALUES))
const requirement: fc.Arbitrary<LabelSelectorRequirement> = fc.oneof(
  fc.record({
    key: fc.constantFrom(...LABELS),
    operator: fc.constantFrom('In' as const, 'NotIn' as const),
    // With duplicates.
    values: fc.array(fc.constantFrom(...VALUES), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    key: fc.constantFrom(...LABELS),
    operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const),
  }),
)
const selectorOf: fc.Arbitrary<LabelSelector> = fc.record(
  { matchLabels: labelsOf, matchExpressions: fc.array(requirement, { maxLength: 4 }) },
  { requiredKeys: [] },
)
/** Few keys and namespaces, so that keys are put again; mostly similar selectors, so that places fill up. */
const stepOf = fc.record({
  key: fc.nat(60).map((key) => `k${key}`),
  namespace: fc.constantFrom('one', 'two'),
  selector: fc.oneof(selectorOf, fc.constantFrom({ matchLabels: { a: 'x' } }, { matchLabels: { a: 'x', b: 'y' } })),
  remove: fc.nat(4).map((chance) => chance === 0),
})

test('property: finds exactly what asking every selector finds', () => {
  fc.assert(
    fc.property(fc.array(stepOf, { maxLength: 120 }), fc.array(labelsOf, { maxLength: 8 }), (steps, queries) => {
      const index = new ProtectorIndex()
      const plain = new Map<string, { namespace: string; selector: LabelSelector }>()
      for (const { key, namespace, selector, remove } of steps) {
        if (remove) {
          index.remove(key)
          plain.delete(key)
        } else {
          index.put(key, namespace, selector)
          plain.set(key, { namespace, selector })
        }
      }
      assert.equal(index.size, plain.size)
      assert.deepEqual([...index.namespaces()].sort(), [...new Set([...plain.values()].map((p) => p.namespace))].sort())
      for (const labels of queries) {
        for (const namespace of ['one', 'two']) {
          const expected = [...plain].filter(
            ([, one]) => one.namespace === namespace && compileSelector(one.selector).matches(labels),
          )
          assert.deepEqual(index.query(namespace, labels), keysOf(expected))
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('property: pods are selected as one by one', () => {
  const podStep = fc.record({
    uid: fc.nat(40).map(String),
    namespace: fc.constantFrom('one', 'two'),
    labels: labelsOf,
    remove: fc.nat(4).map((chance) => chance === 0),
  })
  fc.assert(
    fc.property(fc.array(podStep, { maxLength: 100 }), fc.array(selectorOf, { maxLength: 8 }), (steps, selectors) => {
      const index = new PodIndex<string>()
      const plain = new Map<string, { namespace: string; labels: Record<string, string> }>()
      for (const { uid, namespace, labels, remove } of steps) {
        if (remove) {
          index.remove(uid)
          plain.delete(uid)
        } else {
          index.put(uid, namespace, labels, uid)
          plain.set(uid, { namespace, labels })
        }
      }
      assert.equal(index.size, plain.size)
      for (const selector of selectors) {
        const compiled = compileSelector(selector)
        const expected = [...plain].filter(([, pod]) => pod.namespace === 'one' && compiled.matches(pod.labels))
        assert.deepEqual([...index.select('one', selector)].sort(byText), keysOf(expected))
      }
    }),
    { numRuns: 300 },
  )
})
