import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { LongHeld } from './shared-resource.ts'

interface Watch {
  readonly source: string
  readonly n: number
}

function fill(held: LongHeld<Watch>, source: string, count: number, preferred = true): Watch[] {
  return Array.from({ length: count }, (_, n) => ({ source, n })).filter(
    (watch) => held.take(watch, source, 1, preferred) === 'taken',
  )
}

test('nothing is given up while the capacity is enough', () => {
  const held = new LongHeld<Watch>(16)
  fill(held, 'hog', 16)
  assert.equal(held.toGiveUp(), undefined)
})

test('who is most above a share gives up the oldest, one for each that is above the capacity', () => {
  const held = new LongHeld<Watch>(32)
  fill(held, 'hog', 24)
  fill(held, 'other', 8)
  fill(held, 'newcomer', 2)
  assert.deepEqual(held.toGiveUp(), { source: 'hog', n: 0 })
  const second = held.toGiveUp()
  assert.deepEqual(second, { source: 'hog', n: 1 })
  assert.equal(held.toGiveUp(), undefined, 'two are on their way out')
  if (second !== undefined) held.give(second)
  assert.equal(held.toGiveUp(), undefined)
})

test('those that are preferred go first', () => {
  const held = new LongHeld<Watch>(8)
  const execs = fill(held, 'hog', 7, false)
  fill(held, 'hog', 1)
  const [first] = execs
  if (first !== undefined) held.prefer(first, true)
  fill(held, 'newcomer', 1)
  assert.equal(held.toGiveUp()?.n, 0)
})

test('whatever happens, sums are right, and a share is never taken from who has no more than that', () => {
  const step = fc.record({
    source: fc.integer({ min: 0, max: 5 }),
    weight: fc.integer({ min: 1, max: 4 }),
    action: fc.constantFrom('take', 'take', 'take', 'give', 'ask', 'prefer'),
    preferred: fc.boolean(),
    which: fc.nat(),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(step, { maxLength: 150 }), (capacity, steps) => {
      const held = new LongHeld<Watch>(capacity)
      const all = new Map<Watch, boolean>()
      const weights = new Map<string, number>()
      let n = 0
      for (const { source, weight, action, preferred, which } of steps) {
        const name = `s${source}`
        const one = [...all.keys()][all.size === 0 ? 0 : which % all.size]
        if (action === 'take') {
          const watch = { source: name, n: n++ }
          if (held.take(watch, name, weight, preferred) === 'taken') {
            all.set(watch, false)
            weights.set(name, weight)
          }
        } else if (action === 'ask') {
          const chosen = held.toGiveUp()
          if (chosen === undefined) continue
          assert.equal(all.get(chosen), false, 'once')
          const staying = [...all].filter(([{ source: whose }, leaves]) => whose === chosen.source && !leaves).length
          assert.ok(staying > held.shares.shareOf(chosen.source, weights.get(chosen.source) ?? 1))
          all.set(chosen, true)
        } else if (one === undefined) continue
        else if (action === 'give') {
          held.give(one)
          held.give(one)
          all.delete(one)
        } else held.prefer(one, preferred)
        assert.equal(held.shares.held, all.size)
      }
      for (const watch of all.keys()) held.give(watch)
      assert.equal(held.shares.held, 0)
      assert.equal(held.toGiveUp(), undefined)
    }),
  )
})
