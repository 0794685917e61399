import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCidr } from './cidr.ts'

test('parseCidr', () => {
  const rows: readonly (readonly [string, readonly number[] | undefined, number])[] = [
    ['10.1.2.3/8', [10, 0, 0, 0], 8],
    ['10.1.2.3', [10, 1, 2, 3], 32],
    ['10.1.2.255/25', [10, 1, 2, 128], 25],
    ['0.0.0.0/0', [0, 0, 0, 0], 0],
    ['::ffff:10.1.2.3/104', [10, 0, 0, 0], 8],
    ['::ffff:10.1.2.3', [10, 1, 2, 3], 32],
    ['ff00::1/8', [255, ...Array<number>(15).fill(0)], 8],
    ['::ffff:10.1.2.3/90', undefined, 0],
    ['10.0.0.0/33', undefined, 0],
    ['10.0.0.0/-1', undefined, 0],
    ['10.0.0.0/', undefined, 0],
    ['10.0.0.0/1e1', undefined, 0],
    ['10.0.0/8', undefined, 0],
    ['fe80::1%eth0/64', undefined, 0],
    ['', undefined, 0],
  ]
  for (const [text, bytes, bits] of rows) {
    const expected = bytes === undefined ? undefined : { bytes: Uint8Array.from(bytes), bits }
    assert.deepEqual(parseCidr(text), expected, text)
  }
})
