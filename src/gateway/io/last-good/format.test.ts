// Sealed data opens again unchanged, and nothing else opens: flipped bits, pieces cut off, added, moved or taken from another file, other keys, other
// sources, newer formats.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { FORMAT_VERSION, lastGoodKey, openFile, sealFile, sealRecord } from './format.ts'

const KEY = lastGoodKey(Buffer.alloc(32, 7))
const SOURCE = 'https://kube.example:6443/'

function sealed(values: readonly unknown[], { key = KEY, source = SOURCE, timeMs = 1_700_000_000_000 } = {}): Buffer {
  const records = values.map((value) => sealRecord(value, key, source))
  const { head, seal } = sealFile({ source, timeMs }, records, key)
  return Buffer.concat([head, ...records, seal])
}

function refusalOf(bytes: Buffer, key: Buffer = KEY, source: string = SOURCE): string {
  const opened = openFile(bytes, key, source)
  return 'refused' in opened ? opened.refused : ''
}

test('what JSON can hold comes back as it was', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.integer({ min: 0 }), fc.string(), (values, timeMs, source) => {
      const wanted = JSON.parse(JSON.stringify(values)) as unknown
      assert.deepEqual(openFile(sealed(values, { timeMs, source }), KEY, source), {
        state: { source, timeMs, records: wanted },
      })
    }),
  )
})

test('no bit can flip unseen, wherever it is', () => {
  const bytes = sealed([{ name: 'a', token: 'secret' }, 'b', { name: 'c' }])
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Buffer.from(bytes)
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8))
    assert.notEqual(refusalOf(flipped), '', `byte ${at}`)
  }
})

test('nothing can be cut off, added, moved or put in its place unseen', () => {
  const values = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  const bytes = sealed(values)
  for (let length = 0; length < bytes.length; length++) assert.notEqual(refusalOf(bytes.subarray(0, length)), '')
  assert.notEqual(refusalOf(Buffer.concat([bytes, Buffer.from('x')])), '')
  assert.notEqual(refusalOf(Buffer.concat([bytes, bytes])), '')
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.uint8Array({ minLength: 1, maxLength: 80 }), (at, other) => {
      const changed = Buffer.from(bytes)
      changed.set(other.subarray(0, bytes.length - at), at)
      assert.equal(refusalOf(changed) === '', changed.equals(bytes))
    }),
  )
  // Whole records from another file of the same gateway, and its own in another order.
  const records = values.map((value) => sealRecord(value, KEY, SOURCE))
  const { head, seal } = sealFile({ source: SOURCE, timeMs: 1 }, records, KEY)
  const other = sealRecord({ name: 'b' }, KEY, SOURCE)
  const [a = other, b = other, c = other] = records
  assert.equal(refusalOf(Buffer.concat([head, a, b, c, seal])), '')
  for (const wrong of [
    [b, a, c],
    [a, other, c],
    [a, b],
    [a, b, c, c],
    [a, a, c],
  ]) {
    assert.notEqual(refusalOf(Buffer.concat([head, ...wrong, seal])), '')
  }
})

test('another key, another source and another format are refused, each in one line', () => {
  const bytes = sealed([{ name: 'a' }])
  const table: [Buffer, Buffer, string, RegExp][] = [
    [bytes, lastGoodKey(randomBytes(32)), SOURCE, /^it is damaged, or was written with another key$/],
    [bytes, Buffer.alloc(32, 7), SOURCE, /another key/],
    [bytes, KEY, 'https://other.example/', /^it belongs to another source: https:\/\/kube\.example:6443\/$/],
    [Buffer.alloc(0), KEY, SOURCE, /only its beginning/],
    [Buffer.from('{"kind":"List"}'), KEY, SOURCE, /not such a file/],
    [bytes.subarray(0, 40), KEY, SOURCE, /half there/],
    [bytes.subarray(0, bytes.length - 60), KEY, SOURCE, /half there/],
  ]
  const newer = Buffer.from(bytes)
  newer.writeUInt16BE(FORMAT_VERSION + 1, 4)
  table.push([newer, KEY, SOURCE, /version 2, and this program reads version 1/])
  for (const [file, key, source, why] of table) {
    const refused = refusalOf(file, key, source)
    assert.match(refused, why)
    assert.ok(!refused.includes('\n'))
  }
})

test('nothing of a record can be read in the file', () => {
  const planted = 'a-very-secret-token'
  const text = sealed([{ object: { spec: { token: planted, encoded: Buffer.from(planted).toString('base64') } } }])
  assert.ok(!text.includes(planted))
  assert.ok(!text.includes(Buffer.from(planted).toString('base64').slice(0, 12)))
})

test('a wrong length makes the reader neither read far nor allocate much', () => {
  const bytes = sealed([{ name: 'a' }])
  const headerEnd = 10 + bytes.readUInt32BE(6)
  for (const at of [6, headerEnd]) {
    const lying = Buffer.from(bytes)
    lying.writeUInt32BE(0xffffffff, at)
    assert.match(refusalOf(lying), /half there/)
  }
})
