// MetricValueLists: both versions, and whatever an adapter may answer instead.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { MAX_METRIC_AGE_MS, podMetric } from './metric-values.ts'

const NOW = Date.parse('2026-06-01T12:00:00Z')

// biome-ignore lint/suspicious/noExplicitAny: as an adapter writes it
function item(name: string, value: unknown, more: any = {}): any {
  const describedObject = { kind: 'Pod', namespace: 'shop', name, apiVersion: '/v1' }
  return { describedObject, metric: { name: 'busy' }, timestamp: '2026-06-01T11:59:50Z', value, ...more }
}

function read(items: unknown): Record<string, number> {
  return Object.fromEntries(podMetric({ items } as never, 'shop', NOW))
}

test('a number for each pod, of v1beta2 and of v1beta1', () => {
  const old = item('b', '2k', { metric: undefined, metricName: 'busy', windowSeconds: 60 })
  assert.deepEqual(read([item('a', '1500m'), old, item('c', '-3'), item('d', 7)]), { a: 1.5, b: 2000, c: -3, d: 7 })
})

test('what was measured more than five minutes ago, or then from now, does not count', () => {
  const at = (ms: number): object => ({ timestamp: new Date(NOW + ms).toISOString() })
  const items = [
    item('old', '0', at(-MAX_METRIC_AGE_MS - 1)),
    item('just', '1', at(-MAX_METRIC_AGE_MS)),
    item('ahead', '2', at(MAX_METRIC_AGE_MS)),
    item('future', '3', at(MAX_METRIC_AGE_MS + 1)),
  ]
  assert.deepEqual(read(items), { just: 1, ahead: 2 })
})

test('of several values the highest counts, fresh ones only', () => {
  const stale = item('a', '99', { timestamp: '2026-06-01T10:00:00Z' })
  assert.deepEqual(read([item('a', '1'), item('a', '5'), stale, item('a', '3')]), { a: 5 })
})

describe('no value', () => {
  const pod = { kind: 'Pod', name: 'a', namespace: 'shop' }
  const cases: readonly [string, unknown][] = [
    ['no quantity', item('a', 'many')],
    ['no value', item('a', undefined)],
    ['null', item('a', null)],
    ['an object as value', item('a', { toString: '1' })],
    ['NaN', item('a', Number.NaN)],
    ['Infinity', item('a', Number.POSITIVE_INFINITY)],
    ['no timestamp', item('a', '1', { timestamp: undefined })],
    ['null as timestamp', item('a', '1', { timestamp: null })],
    ['a number as timestamp', item('a', '1', { timestamp: NOW })],
    ['nonsense as timestamp', item('a', '1', { timestamp: 'now' })],
    ['another namespace', item('a', '1', { describedObject: { ...pod, namespace: 'other' } })],
    ['another kind', item('a', '1', { describedObject: { ...pod, kind: 'Service' } })],
    ['no name', item('a', '1', { describedObject: { ...pod, name: '' } })],
    ['a number as name', item('a', '1', { describedObject: { ...pod, name: 7 } })],
    ['no object', item('a', '1', { describedObject: null })],
    ['null', null],
    ['a list', []],
    ['text', 'a'],
  ]
  for (const [what, one] of cases) test(what, () => assert.deepEqual(read([one]), {}))
  for (const items of [undefined, null, {}, 'a', 7]) {
    test(`items: ${JSON.stringify(items)}`, () => assert.deepEqual(read(items), {}))
  }
})

test('a namespace may be left out, and names are only names', () => {
  assert.deepEqual(read([item('a', '1', { describedObject: { kind: 'Pod', name: 'a' } })]), { a: 1 })
  const named = podMetric({ items: [item('__proto__', '1')] } as never, 'shop', NOW)
  assert.deepEqual([...named], [['__proto__', 1]])
})

test('it never throws, and values are numbers', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.jsonValue(), fc.record({ value: fc.jsonValue() }))), (items) => {
      for (const value of podMetric({ items } as never, 'shop', NOW).values()) assert.ok(Number.isFinite(value))
    }),
  )
})
