import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sourceOf } from './source-address.ts'

test('an IPv4 address is a source, and so is each IPv6 network of 64 bits', () => {
  const rows: [string, string][] = [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
    ['2001:DB8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64'],
    ['2001:db8:0:2::1', '2001:db8:0:2::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['::1', '::/64'],
    ['', ''],
  ]
  for (const [address, source] of rows) assert.equal(sourceOf(address), source, address)
})
