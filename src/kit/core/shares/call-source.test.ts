import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressSource, userSource } from './call-source.ts'

const CASES: readonly (readonly [string, string])[] = [
  ['192.0.2.7', 'address 192.0.2.7'],
  ['::ffff:192.0.2.7', 'address 192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', 'network 2001:db8:1:2::/64'],
  ['2001:db8:1:2::ffff', 'network 2001:db8:1:2::/64'],
  ['2001:db8::1', 'network 2001:db8:0:0::/64'],
  ['2001:db8::', 'network 2001:db8:0:0::/64'],
  ['2001:0db8:0001:0002::1', 'network 2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'network fe80:0:0:0::/64'],
  ['::1', 'network 0:0:0:0::/64'],
  ['::', 'network 0:0:0:0::/64'],
]

for (const [address, source] of CASES)
  test(`${address}: ${source}`, () => {
    assert.equal(addressSource(address), source)
  })

test('a user, whatever the name', () => {
  assert.equal(
    userSource('prod', 'system:serviceaccount:ns:sa'),
    'user "system:serviceaccount:ns:sa" of cluster "prod"',
  )
  assert.notEqual(userSource('prod', 'a'), addressSource('a'))
})

test('the same name in another cluster is another source, and cannot be forged', () => {
  assert.notEqual(userSource('a', 'alice'), userSource('b', 'alice'))
  assert.notEqual(userSource('b', 'alice" of cluster "a'), userSource('a', 'alice'))
})
