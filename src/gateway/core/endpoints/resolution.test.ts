import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addressesIn,
  addressesInForce,
  FIXED_TTL_MS,
  type LookedUp,
  MAX_ADDRESSES,
  MAX_TTL_MS,
  MIN_TTL_MS,
  nextLookUpMs,
  resolution,
} from './resolution.ts'

const FOUND: LookedUp = { v4: ['10.0.0.2', '10.0.0.1'], v6: [], ttlSeconds: 30, message: '' }
const KNOWN = { v4: ['10.0.0.1'], v6: ['fd00::1'] }

test('addresses come in an order of their own, each once', () => {
  const known = resolution(undefined, { ...FOUND, v4: ['10.0.0.2', '10.0.0.1', '10.0.0.2'], v6: ['fd00::1'] })
  assert.ok(known !== undefined)
  assert.deepEqual(addressesIn(known), ['10.0.0.1', '10.0.0.2', 'fd00::1'])
  const many = { v4: Array.from({ length: 100 }, (_, i) => `10.0.0.${i}`), v6: [] }
  assert.equal(addressesIn(many).length, MAX_ADDRESSES)
})

test('what cannot be found out changes nothing, each family by itself', () => {
  const nothing = { ttlSeconds: 0, message: 'SERVFAIL' }
  assert.deepEqual(resolution(KNOWN, { v4: undefined, v6: undefined, ...nothing }), KNOWN)
  assert.deepEqual(resolution(KNOWN, { v4: ['10.0.0.9'], v6: undefined, ...nothing }), {
    v4: ['10.0.0.9'],
    v6: ['fd00::1'],
  })
  assert.deepEqual(resolution(KNOWN, { v4: ['10.0.0.1'], v6: [], ttlSeconds: 1, message: '' }), {
    v4: ['10.0.0.1'],
    v6: [],
  })
  // No address at all.
  assert.equal(resolution(KNOWN, { v4: [], v6: [], ttlSeconds: 0, message: '' }), KNOWN)
  assert.equal(resolution(undefined, { v4: undefined, v6: [], ...nothing }), undefined)
})

test('a TTL has bounds; failures wait longer and longer', () => {
  const after = (ttlSeconds: number, failures = 0): number => nextLookUpMs({ ttlSeconds }, failures)
  assert.deepEqual([after(1), after(30), after(86_400), after(0)], [MIN_TTL_MS, 30_000, MAX_TTL_MS, FIXED_TTL_MS])
  assert.deepEqual(
    [1, 2, 3, 4, 5, 100].map((failures) => after(30, failures)),
    [5, 10, 20, 40, 60, 60].map((s) => s * 1000),
  )
})

test('addresses that have gone serve until one of those that stay or come can', () => {
  const inForce = (before: string[], after: string[], ...healthy: string[]) =>
    addressesInForce(before, after, (address) => healthy.includes(address))
  assert.deepEqual(inForce(['a', 'b'], ['a'], 'a', 'b'), ['a'])
  assert.deepEqual(inForce(['a', 'b'], ['b', 'c'], 'a', 'b'), ['b', 'c'])
  assert.deepEqual(inForce(['a'], ['b'], 'a'), ['b', 'a'])
  assert.deepEqual(inForce(['b', 'a'], ['b'], 'a', 'b'), ['b'])
  assert.deepEqual(inForce(['a'], ['a', 'b']), ['a', 'b'])
})
