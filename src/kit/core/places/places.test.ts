import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { Places } from './places.ts'

interface Item {
  readonly name: string
  readonly source: string
}

const NEWEST = { newestFirst: true }

function itemOf(name: string): Item {
  return { name, source: name.charAt(0) }
}

/** Adds them in order; returns the one evicted at each step. */
function fill(room: Places<Item>, names: readonly string[], busy: (name: string) => boolean = () => false): string[] {
  const gone: string[] = []
  for (const name of names) {
    const item = itemOf(name)
    room.add(item, item.source)
    if (busy(name)) room.setSpare(item, false)
    for (let out = room.toGiveUp(); out !== undefined; out = room.toGiveUp()) gone.push(out.name)
  }
  return gone
}

describe('when there are more than places', () => {
  test('the oldest of the source with the most goes, not one of a newcomer', () => {
    assert.deepEqual(fill(new Places<Item>(4, NEWEST), ['a1', 'a2', 'a3', 'b1', 'c1', 'd1']), ['a1', 'a2'])
  })

  test('an idle one goes before one that is not, and of those the newest', () => {
    const busy = (name: string): boolean => name !== 'a3'
    assert.deepEqual(fill(new Places<Item>(4, NEWEST), ['a1', 'a2', 'a3', 'a4', 'b1', 'c1'], busy), ['a3', 'a4'])
  })

  test('a source that is alone has all of it, and gives up its own', () => {
    assert.deepEqual(fill(new Places<Item>(3, NEWEST), ['a1', 'a2', 'a3', 'a4']), ['a1'])
    assert.deepEqual(
      fill(new Places<Item>(3, NEWEST), ['a1', 'a2', 'a3', 'a4'], (name) => name !== 'a4'),
      ['a4'],
      'its newcomer, while the others get on',
    )
  })

  test('among sources with equally many, an idle item goes: the newcomer, when all others wait for something', () => {
    assert.deepEqual(
      fill(new Places<Item>(3, NEWEST), ['a1', 'b1', 'c1', 'd1', 'e1'], (name) => name < 'd'),
      ['d1', 'e1'],
    )
    assert.deepEqual(
      fill(new Places<Item>(3, NEWEST), ['a1', 'b1', 'c1', 'd1'], (name) => name !== 'b1'),
      ['b1'],
    )
  })

  test('among sources with equally many, the newcomer goes where the others are to go on, and otherwise as before', () => {
    const room = (capacity: number): Places<Item> =>
      new Places<Item>(capacity, { newestFirst: true, newcomersLeave: true })
    assert.deepEqual(fill(room(3), ['a1', 'b1', 'c1', 'd1', 'e1']), ['d1', 'e1'])
    assert.deepEqual(fill(room(4), ['a1', 'a2', 'b1', 'b2', 'c1', 'd1']), ['a1', 'b1'])
    assert.deepEqual(fill(room(4), ['a1', 'a2', 'b1', 'b2', 'b3']), ['b1'], 'its oldest')
    const left = room(1)
    const [a1, b1] = [itemOf('a1'), itemOf('b1')]
    left.add(a1, 'a')
    left.add(b1, 'b')
    left.delete(b1)
    left.add(itemOf('c1'), 'c')
    assert.equal(left.toGiveUp()?.name, 'c1')
  })

  test('the oldest of those in use goes, where nothing else is said', () => {
    assert.deepEqual(
      fill(new Places<Item>(2), ['a1', 'a2', 'a3', 'b1'], () => true),
      ['a1', 'a2'],
    )
  })

  test('a source with a weight may have that many times as much', () => {
    const places = new Places<Item>(4)
    const [a1, ...others] = ['a1', 'a2', 'a3', 'b1', 'b2'].map(itemOf)
    for (const item of [a1, ...others])
      if (item !== undefined) places.add(item, item.source, item.source === 'a' ? 3 : 1)
    assert.equal(places.toGiveUp()?.name, 'b1')
  })

  test('one that has to go is not named again, counts no longer, and is known until it is deleted', () => {
    const places = new Places<Item>(1)
    const [a1, a2] = [itemOf('a1'), itemOf('a2')]
    for (const item of [a1, a2]) places.add(item, item.source)
    assert.equal(
      places.toGiveUp((source, weight, count) => source === 'a' && weight === 1 && count === 2),
      undefined,
      'it may keep them',
    )
    assert.equal(places.toGiveUp(), a1)
    assert.deepEqual([places.size, places.countOf('a')], [1, 1])
    places.setSpare(a1, false)
    assert.deepEqual([places.toGiveUpSpare('a'), places.toGiveUpSpare('a')], [a2, undefined])
    assert.deepEqual([places.delete(a1), places.delete(a1), places.delete(a2), places.size], ['a', undefined, 'a', 0])
  })

  test('0 is any number', () => {
    assert.deepEqual(fill(new Places<Item>(0, NEWEST), ['a1', 'a2', 'a3']), [])
  })

  test('many changes between idle and busy leave no trace', () => {
    const room = new Places<Item>(2, NEWEST)
    const [a1, a2] = [itemOf('a1'), itemOf('a2')]
    for (const item of [a1, a2]) room.add(item, item.source)
    for (let i = 0; i < 100; i++) for (const item of [a2, a1]) room.setSpare(item, i % 2 === 1)
    for (const item of [a2, a1]) room.setSpare(item, false)
    const b1 = itemOf('b1')
    room.add(b1, 'b')
    assert.equal(room.toGiveUp()?.name, 'a1')
    assert.equal(room.toGiveUp(), undefined)
    assert.equal(room.size, 2)
  })
})

test('as a simple model, whatever happens', () => {
  const step = fc.record({
    source: fc.constantFrom('a', 'b', 'c'),
    what: fc.constantFrom('add', 'add', 'busy', 'idle', 'delete'),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 80 }), (capacity, steps) => {
      const room = new Places<Item>(capacity, NEWEST)
      let model: { item: Item; idle: boolean; since: number }[] = []
      for (const [i, { source, what }] of steps.entries()) {
        const first = model.find(({ item }) => item.source === source)
        if (what === 'add') {
          const item = itemOf(`${source}${i}`)
          room.add(item, source)
          model.push({ item, idle: true, since: i })
        } else if (first !== undefined && what === 'delete') {
          room.delete(first.item)
          model = model.filter((one) => one !== first)
        } else if (first !== undefined) {
          room.setSpare(first.item, what === 'idle')
          if (first.idle !== (what === 'idle')) {
            first.idle = what === 'idle'
            first.since = i
          }
        }
        const gone = room.toGiveUp()
        assert.equal(gone !== undefined, model.length > capacity)
        if (gone !== undefined) {
          const countOf = (of: string): number => model.filter(({ item }) => item.source === of).length
          const own = model.filter(({ item }) => item.source === gone.source)
          assert.ok(model.every(({ item }) => countOf(item.source) <= own.length))
          const idle = own.filter((one) => one.idle).sort((a, b) => a.since - b.since)
          const busy = own.filter((one) => !one.idle).sort((a, b) => b.since - a.since)
          assert.equal(gone, (idle[0] ?? busy[0])?.item)
          model = model.filter(({ item }) => item !== gone)
        }
        assert.equal(room.size, model.length)
      }
    }),
  )
})
