import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { Shares } from './shares.ts'

function takeAll(shares: Shares, source: string, weight = 1): number {
  let taken = 0
  while (shares.take(source, weight, 1) === 'taken') taken++
  return taken
}

describe('a share', () => {
  test('who is alone may use all of it, and is refused above', () => {
    const shares = new Shares(80)
    assert.equal(takeAll(shares, 'hog'), 80)
    assert.equal(shares.take('hog', 1, 1), 'over-share')
    assert.equal(shares.reserveInUse, false)
  })

  test('a newcomer is served although a hog holds everything, up to the reserve', () => {
    const shares = new Shares(80)
    takeAll(shares, 'hog')
    assert.equal(takeAll(shares, 'newcomer'), 5)
    assert.equal(shares.take('newcomer', 1, 1), 'full')
    assert.equal(shares.reserveInUse, true)
  })

  test('who holds nothing is served although many below their share have used all that there is for them', () => {
    const shares = new Shares(800)
    for (let round = 0; round < 800; round++) for (let i = 0; i < 10; i++) shares.take(`hog-${i}`, 1, 1)
    takeAll(shares, 'late')
    assert.equal(shares.take('late', 1, 1), 'full')
    assert.equal(takeAll(shares, 'light'), 8, 'an eighth of a share')
    assert.equal(shares.take('lighter', 1, 1), 'taken')
    assert.ok(shares.held <= 900)
  })

  test('what the hog gives back goes to the newcomer, until both have a share', () => {
    const shares = new Shares(80)
    takeAll(shares, 'hog')
    for (let i = 0; i < 200; i++) {
      shares.give('hog', 1)
      // As fast as it can, and before the others.
      if (shares.take('hog', 1, 1) !== 'taken') shares.take('newcomer', 1, 1)
      takeAll(shares, 'newcomer')
    }
    assert.ok(Math.abs(shares.heldBy('newcomer') - 40) <= 10, `${shares.heldBy('newcomer')}`)
  })

  test('0: unlimited', () => {
    const shares = new Shares(0)
    for (let i = 0; i < 1000; i++) assert.equal(shares.take('a', 1, 1e9), 'taken')
    shares.give('a', 1e9)
  })

  test('what is not held cannot be given back', () => {
    const shares = new Shares(8)
    shares.take('a', 1, 2)
    assert.throws(() => shares.give('a', 3), RangeError)
    assert.throws(() => shares.give('b', 1), RangeError)
  })

  test('those who hold most', () => {
    const shares = new Shares(100)
    for (const [source, amount] of [
      ['a', 3],
      ['b', 9],
      ['c', 1],
      ['d', 5],
    ] as const)
      shares.take(source, 1, amount)
    shares.give('a', 3)
    assert.deepEqual(
      shares.largest(2).map(({ source, held }) => [source, held]),
      [
        ['b', 9],
        ['d', 5],
      ],
    )
  })
})

test('two busy sources converge to shares by weight', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 80, max: 800 }),
      fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
      (heavy, light, capacity, random) => {
        const shares = new Shares(capacity)
        takeAll(shares, 'a', heavy)
        const next = (): number => random.next().value ?? 0
        // Releases come in no particular order; both constantly ask for more than there is.
        for (let i = 0; i < 20 * capacity; i++) {
          const source = next() * shares.held < shares.heldBy('a') ? 'a' : 'b'
          shares.give(source, 1)
          for (const one of next() < 0.5 ? (['a', 'b'] as const) : (['b', 'a'] as const)) {
            shares.take(one, one === 'a' ? heavy : light, 1)
          }
        }
        const share = (capacity * light) / (heavy + light)
        assert.ok(shares.heldBy('b') >= share - 1, `${shares.heldBy('b')} of ${share}`)
        assert.ok(shares.heldBy('a') >= capacity - share - 1)
      },
    ),
    { numRuns: 30 },
  )
})

test('sums are right, nothing is above capacity and reserve, and who has less than a share is refused only by a full reserve, or a half of it', () => {
  const step = fc.record({
    source: fc.integer({ min: 0, max: 7 }),
    weight: fc.integer({ min: 1, max: 5 }),
    amount: fc.integer({ min: 1, max: 12 }),
    gives: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.array(step, { maxLength: 200 }), (capacity, steps) => {
      const shares = new Shares(capacity)
      // A simple reference implementation: everything is summed up each time.
      const held = new Map<string, { held: number; weight: number }>()
      const total = (): number => [...held.values()].reduce((sum, one) => sum + one.held, 0)
      const most = capacity + Math.floor(capacity / 8)
      for (const { source, weight, amount, gives } of steps) {
        const name = `s${source}`
        const own = held.get(name)
        if (gives) {
          if (own === undefined) continue
          const back = Math.min(amount, own.held)
          shares.give(name, back)
          own.held -= back
          if (own.held === 0) held.delete(name)
          continue
        }
        const weights = [...held].reduce((sum, [other, one]) => (other === name ? sum : sum + one.weight), weight)
        const isBelow = (own?.held ?? 0) < (capacity * weight) / weights
        const free = total() + amount <= capacity
        const after = (own?.held ?? 0) + amount
        const isLittle = own === undefined || after * 8 * weights <= capacity * weight
        const reserve = isLittle ? most - capacity : Math.ceil((most - capacity) / 2)
        const expected =
          free || (isBelow && total() + amount <= capacity + reserve) ? 'taken' : isBelow ? 'full' : 'over-share'
        assert.equal(shares.take(name, weight, amount), expected)
        if (expected === 'taken') held.set(name, { held: (own?.held ?? 0) + amount, weight })
        assert.equal(shares.held, total())
        assert.equal(shares.holders, held.size)
        assert.equal(shares.heldBy(name), held.get(name)?.held ?? 0)
      }
      for (const [name, one] of held) shares.give(name, one.held)
      assert.deepEqual([shares.held, shares.holders, shares.largest(5)], [0, 0, []])
      assert.equal(shares.shareOf('new', 3), capacity, 'no weight is left behind')
    }),
  )
})

test('who holds nothing is forgotten: the table stays as small as the number of holders', () => {
  const shares = new Shares(1000)
  for (let i = 0; i < 100_000; i++) {
    shares.take(`s${i}`, 1, 1)
    if (i >= 20) shares.give(`s${i - 20}`, 1)
  }
  assert.ok(shares.remembered <= 4 * 21, `${shares.remembered}`)
})
