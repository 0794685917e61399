import assert from 'node:assert/strict'
import test from 'node:test'
import { fastUuid } from './uuid.ts'

test('a UUID is of version 4 and of the variant of RFC 9562, in lower case', () => {
  for (let i = 0; i < 2_000; i++) {
    assert.match(fastUuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  }
})

test('no two are the same, also across refills, and every digit that is random takes every value', () => {
  const all = Array.from({ length: 5_000 }, fastUuid)
  assert.equal(new Set(all).size, all.length)
  for (let place = 0; place < 36; place++) {
    const values = new Set(all.map((uuid) => uuid[place]))
    const expected = [8, 13, 18, 23, 14].includes(place) ? 1 : place === 19 ? 4 : 16
    assert.equal(values.size, expected, `place ${place}`)
  }
})
