import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type HashSeed, NameHash } from './name-hash.ts'

const SEED: HashSeed = [0x03020100, 0x07060504]

function hashed(name: string, seed: HashSeed = SEED): string {
  const hash = new NameHash(seed)
  hash.hash(name)
  return `${hash.low} ${hash.high}`
}

test('depends on the name and on nothing before it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (before, name) => {
      const used = new NameHash(SEED)
      used.hash(before)
      used.hash(name)
      assert.equal(`${used.low} ${used.high}`, hashed(name))
      if (before !== name) assert.notEqual(hashed(before), hashed(name))
    }),
  )
})

test('is another one for another seed', () => {
  assert.notEqual(hashed('alice'), hashed('alice', [1, 2]))
  assert.notEqual(hashed('alice', [0, 1]), hashed('alice', [1, 0]))
})

test('keeps apart what is alike: ends of odd length, zeros, single bits', () => {
  const names = ['', '\0', '\0\0', '\0\0\0', 'a', 'a\0', 'aa', 'aaa', 'aab', '\ud83d\ude00', '\ude00\ud83d']
  assert.equal(new Set(names.map((name) => hashed(name))).size, names.length)
})

test('spreads names that count up evenly, by either half', () => {
  const buckets = 64
  const counts = [new Uint32Array(buckets), new Uint32Array(buckets)]
  const hash = new NameHash(SEED)
  for (let i = 0; i < 64_000; i++) {
    hash.hash(`system:serviceaccount:default:sa-${i}`)
    for (const [half, value] of [hash.low, hash.high].entries()) {
      const bucket = (value >>> 0) % buckets
      const count = counts[half]
      if (count !== undefined) count[bucket] = (count[bucket] ?? 0) + 1
    }
  }
  // 1000 each, within 6 standard deviations.
  for (const count of counts) for (const each of count) assert.ok(each > 810 && each < 1190, `${each}`)
})
