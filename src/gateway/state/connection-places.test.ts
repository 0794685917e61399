import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ConnectionPlaces } from './connection-places.ts'

const ANY = (): boolean => true

function setUp(threads: number): ConnectionPlaces {
  const places = new ConnectionPlaces(ConnectionPlaces.allocate(threads))
  for (let thread = 0; thread < threads; thread++) places.setOpen(thread, true)
  return places
}

describe('places', () => {
  test('are taken one after the other in all threads, and given back', () => {
    const places = setUp(3)
    const taken = Array.from({ length: 6 }, () => places.take(0, ANY))
    assert.deepEqual(taken.map(({ thread }) => thread).toSorted(), [0, 0, 1, 1, 2, 2])
    for (const place of taken) places.release(place)
    assert.deepEqual(
      places.loads().map((load) => load?.connections),
      [0, 0, 0],
    )
  })

  test('only in threads that are open and can be reached, or in the one that asks', () => {
    const places = setUp(3)
    places.setOpen(1, false)
    const taken = Array.from({ length: 4 }, () => places.take(0, (thread) => thread !== 2).thread)
    assert.deepEqual(taken, [0, 0, 0, 0])
  })

  test('that a dead thread held are void: they free nothing of its successor', () => {
    const places = setUp(2)
    places.take(0, ANY)
    const before = places.take(0, ANY)
    assert.equal(before.thread, 1)
    places.died(1)
    assert.equal(places.isOpen(1), false)
    places.setOpen(1, true)
    const after = places.take(0, ANY)
    assert.equal(after.thread, 1)
    places.release(before)
    assert.equal(places.load(1).connections, 1)
    places.release(after)
    places.release(after)
    assert.equal(places.load(1).connections, 0)
  })

  test('survive any number of deaths', () => {
    const places = setUp(1)
    for (let i = 0; i < 5_000; i++) places.died(0)
    places.setOpen(0, true)
    places.release(places.take(0, ANY))
    assert.deepEqual(places.load(0), { connections: 0, requestRate: 0 })
  })
})
