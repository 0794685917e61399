import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalIp, parseIp } from './ip-address.ts'

test('one text for one address', () => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:a00:1', '10.0.0.1'],
    ['::1', '::1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['::', '::'],
    ['FD00:0:0:1::', 'fd00:0:0:1::'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['', undefined],
    ['10.0.0', undefined],
    ['10.0.0.256', undefined],
    ['10.0.0.01', undefined],
    ['10.0.0.1.', undefined],
    ['1:2:3:4:5:6:7:8::', undefined],
    ['1::2::3', undefined],
    [':::', undefined],
    ['12345::', undefined],
    ['g::', undefined],
    ['::10.0.0.1:1', undefined],
    ['10.0.0.1::', undefined],
    ['1:2', undefined],
    // inet_aton accepts these, Go does not.
    ['0x7f.1', undefined],
    ['127.1', undefined],
    ['2130706433', undefined],
    ['::ffff:010.0.0.1', undefined],
    ['::ffff:0x1.2.3.4', undefined],
    ['example.com', undefined],
  ]
  for (const [text, expected] of rows) assert.equal(canonicalIp(text), expected, text)
})

test('agrees with the operating system about what is an address', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), fc.stringMatching(/^[0-9a-f:.]{0,20}$/)), (text) => {
      assert.equal(parseIp(text) !== undefined, isIP(text) !== 0, text)
    }),
    { numRuns: 1000 },
  )
})

test('the canonical text is the address, and is its own canonical text', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      const canonical = canonicalIp(text) ?? ''
      assert.deepEqual(parseIp(canonical), parseIp(text))
      assert.equal(canonicalIp(canonical), canonical)
      assert.equal(canonical, canonical.includes(':') ? new URL(`http://[${text}]/`).hostname.slice(1, -1) : canonical)
    }),
  )
})
