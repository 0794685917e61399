import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { compareSlots, encodeVector, MAX_SLOTS, MAX_VECTOR_DIGITS, parseVector, type VersionVector } from './vectors.ts'

const VERSION = fc.oneof(
  fc.constant(''),
  fc.integer({ min: 1, max: 20_000 }).map(String),
  fc.bigInt({ min: 1n, max: 2n ** 128n - 1n }).map(String),
)
const VECTOR: fc.Arbitrary<VersionVector> = fc
  .tuple(fc.nat(9999), fc.array(VERSION, { maxLength: MAX_SLOTS }))
  .map(([epoch, versions]) => ({ epoch, versions }))

test('a vector is a decimal number with the version of each slot', () => {
  assert.equal(encodeVector({ epoch: 1, versions: ['734', '', '12'] }), '1000103734000212')
  assert.deepEqual(parseVector('1000103734000212'), { epoch: 1, versions: ['734', '', '12'] })
  assert.deepEqual(parseVector('10001'), { epoch: 1, versions: [] })
})

test('a JavaScript number holds the version of one member, and not of several that have existed for a while', () => {
  const version = (...versions: readonly string[]): string => encodeVector({ epoch: 9999, versions })
  assert.ok(Number(version('10000000')) < Number(version('10000001')))
  assert.ok(Number(version('300', '300')) < Number(version('300', '301')))
  // A page that compares them as numbers takes these for one.
  assert.equal(Number(version('10000000', '10000000')), Number(version('10000000', '10000001')))
})

test('what is written is read', () => {
  fc.assert(
    fc.property(VECTOR, (vector) => {
      const text = encodeVector(vector)
      assert.match(text, /^[1-9][0-9]*$/)
      assert.ok(text.length <= MAX_VECTOR_DIGITS)
      assert.deepEqual(parseVector(text), vector)
    }),
  )
})

test('what is not a vector is not read', () => {
  const wrong = {
    'no number': ['', 'abc', '-1', '1e9', '0x1', ' 10001', '10001 ', '10001\n', '１０００１'],
    'no epoch': ['1', '1000', '0', '20001', '00001'],
    'a slot that ends early': ['100010', '1000103', '100010373', '1000199'],
    'a version with a leading zero': ['10001010', '100010207', '10001030001'],
    'a version that is too long': [`1000140${'9'.repeat(40)}`],
    'too many slots': [`10001${'0'.repeat(2 * (MAX_SLOTS + 1))}`],
    'too long to be looked at': [`1${'0'.repeat(4000)}`, '9'.repeat(1_000_000)],
  }
  for (const [what, texts] of Object.entries(wrong))
    for (const text of texts) assert.equal(parseVector(text), undefined, `${what}: ${text.slice(0, 60)}`)
})

test('any text is read as what writes it, or not at all', () => {
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^1[0-9]{4,60}$/),
    fc.tuple(VECTOR, fc.nat(), fc.constantFrom('0', '9', 'x', '')).map(([vector, at, change]) => {
      const whole = encodeVector(vector)
      const place = at % whole.length
      return whole.slice(0, place) + change + whole.slice(place + 1)
    }),
  )
  fc.assert(
    fc.property(text, (given) => {
      const vector = parseVector(given)
      if (vector !== undefined) assert.equal(encodeVector(vector), given)
    }),
  )
})

test('the numbers grow along any stream of events of members, and with each member of which something becomes known', () => {
  const step = fc.record({ slot: fc.nat(5), more: fc.bigInt({ min: 1n, max: 10n ** 12n }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const versions = Array.from({ length: 6 }, () => '')
      let before = encodeVector({ epoch: 7, versions })
      for (const { slot, more } of steps) {
        versions[slot] = String(BigInt(versions[slot] || '0') + more)
        const after = encodeVector({ epoch: 7, versions })
        assert.equal(Math.sign(compareResourceVersions(before, after) ?? 0), -1)
        assert.equal(BigInt(before) < BigInt(after), true)
        before = after
      }
    }),
  )
})

test('a vector that has the later version in each slot is not lower', () => {
  fc.assert(
    fc.property(VECTOR, VECTOR, ({ epoch, versions }, other) => {
      const length = Math.max(versions.length, other.versions.length)
      const later = Array.from({ length }, (_, slot) => {
        const [a = '', b = ''] = [versions[slot], other.versions[slot]]
        return compareSlots(a, b) >= 0 ? a : b
      })
      const texts = [later, versions, other.versions].map((all) => encodeVector({ epoch, versions: all }))
      for (const text of texts) assert.ok((compareResourceVersions(texts[0] ?? '', text) ?? -1) >= 0)
    }),
  )
})

test('an empty slot is older than any version', () => {
  assert.ok(compareSlots('', '1') < 0)
  assert.ok(compareSlots('9', '10') < 0)
  assert.ok(compareSlots('10', '9') > 0)
  assert.equal(compareSlots('', ''), 0)
})

test('what is written can be read, also of a server that writes zeros in front', () => {
  const text = encodeVector({ epoch: 1, versions: ['007', '0', '10'] })
  assert.deepEqual(parseVector(text), { epoch: 1, versions: ['7', '', '10'] })
})
