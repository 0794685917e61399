import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { connectionsToMove, placeConnection, type ThreadLoad } from './thread-load.ts'

const load = (connections: number, requestRate = 0): ThreadLoad => ({ connections, requestRate })

describe('where a connection goes', () => {
  test('to the thread with the fewest; among equals it stays', () => {
    assert.equal(placeConnection([load(3), load(2), load(2)], 0), 1)
    assert.equal(placeConnection([load(2), load(2), load(2)], 1), 1)
    assert.equal(placeConnection([load(2), undefined, load(1)], 0), 2)
    assert.equal(placeConnection([load(9)], 0), 0)
  })

  test('among equals that are not its own, to the one with the fewest requests', () => {
    assert.equal(placeConnection([load(3), load(2, 50), load(2, 10)], 0), 2)
  })

  test('a thread with far more requests than the others gets none until it has a quarter fewer connections', () => {
    assert.equal(placeConnection([load(9, 5_000), load(10, 100)], 0), 1)
    assert.equal(placeConnection([load(7, 5_000), load(10, 100)], 0), 0)
    assert.equal(placeConnection([load(9, 150), load(10, 0)], 0), 0, 'too few to matter')
  })

  test('one after the other, they are spread exactly, whichever thread accepts', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 16 }), fc.array(fc.nat()), (threads, accepting) => {
        const counts = Array<number>(threads).fill(0)
        for (const who of accepting) {
          const to = placeConnection(
            counts.map((n) => load(n)),
            who % threads,
          )
          counts[to] = (counts[to] ?? 0) + 1
        }
        assert.ok(Math.max(...counts) - Math.min(...counts) <= 1)
      }),
    )
  })
})

describe('connections that are asked to go', () => {
  const even = Array.from({ length: 40 }, () => ({ requestRate: 25 }))

  test('none of a thread that is not far above the mean', () => {
    assert.deepEqual(
      connectionsToMove([load(40, 1_000), load(40, 900)], 0, even, () => 0),
      [],
    )
    assert.deepEqual(
      connectionsToMove([load(40, 300), load(40, 0)], 0, even, () => 0),
      [],
      'too few to matter',
    )
  })

  test('a thread with far more requests loses a few, which carry no more than the surplus', () => {
    const moved = connectionsToMove([load(40, 1_000), load(40, 100)], 0, even, () => 0)
    assert.equal(moved.length, 2)
  })

  test('a connection that is the burden by itself stays, and so does the only one', () => {
    const held = [{ requestRate: 5_000 }, { requestRate: 30 }, { requestRate: 0 }]
    assert.deepEqual(
      connectionsToMove([load(3, 5_030), load(3, 10)], 0, held, () => 0),
      [held[1]],
    )
    assert.deepEqual(
      connectionsToMove([load(1, 5_000), load(1, 0)], 0, [{ requestRate: 5_000 }], () => 0),
      [],
    )
  })

  test('when two are equally busy, one goes, however their rates were rounded', () => {
    const held = [{ requestRate: 10_526.2 }, { requestRate: 10_526.2 }]
    assert.equal(connectionsToMove([load(2, 21_052), load(2, 0)], 0, held, () => 0).length, 1)
  })

  test('a thread with far more connections loses a few of them, whichever', () => {
    const held = Array.from({ length: 40 }, () => ({ requestRate: 0 }))
    assert.equal(connectionsToMove([load(40), load(2)], 0, held, () => 0.99).length, 2)
    assert.equal(connectionsToMove([load(9), load(2)], 0, held.slice(0, 9), () => 0).length, 0)
  })

  test('never more than one in twenty, never twice the same, and never many more than the surplus', () => {
    const rates = fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 2, maxLength: 200 })
    fc.assert(
      fc.property(
        rates,
        fc.integer({ min: 0, max: 5_000 }),
        fc.double({ min: 0, max: 0.999 }),
        (own, other, random) => {
          const held = own.map((requestRate) => ({ requestRate }))
          const rate = own.reduce((a, b) => a + b)
          const moved = connectionsToMove([load(held.length, rate), load(held.length, other)], 0, held, () => random)
          assert.ok(moved.length <= Math.max(1, held.length / 20))
          assert.equal(new Set(moved).size, moved.length)
          const gone = moved.reduce((sum, { requestRate }) => sum + requestRate, 0)
          const surplus = rate - (rate + other) / 2
          assert.ok(moved.length === 0 || gone <= 1.1 * surplus + 1e-6)
        },
      ),
    )
  })
})
