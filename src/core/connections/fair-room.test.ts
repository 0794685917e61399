import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FairRoom } from './fair-room.ts'

interface Item {
  readonly name: string
  readonly source: string
}

function itemOf(name: string): Item {
  return { name, source: name.charAt(0) }
}

/** Adds them in order; who has to go at each. */
function fill(room: FairRoom<Item>, names: readonly string[], busy: (name: string) => boolean = () => false): string[] {
  const gone: string[] = []
  for (const name of names) {
    const item = itemOf(name)
    room.add(item, item.source)
    if (busy(name)) room.setIdle(item, false)
    for (let out = room.toGiveUp(); out !== undefined; out = room.toGiveUp()) gone.push(out.name)
  }
  return gone
}

describe('when there are more than places', () => {
  test('the oldest of the source with the most goes, not one of a newcomer', () => {
    assert.deepEqual(fill(new FairRoom<Item>(4), ['a1', 'a2', 'a3', 'b1', 'c1', 'd1']), ['a1', 'a2'])
  })

  test('an idle one goes before one that is not, and of those the newest', () => {
    const busy = (name: string): boolean => name !== 'a3'
    assert.deepEqual(fill(new FairRoom<Item>(4), ['a1', 'a2', 'a3', 'a4', 'b1', 'c1'], busy), ['a3', 'a4'])
  })

  test('whoever is alone has all of it, and gives up its own', () => {
    assert.deepEqual(fill(new FairRoom<Item>(3), ['a1', 'a2', 'a3', 'a4']), ['a1'])
    assert.deepEqual(
      fill(new FairRoom<Item>(3), ['a1', 'a2', 'a3', 'a4'], (name) => name !== 'a4'),
      ['a4'],
      'its newcomer, while the others get on',
    )
  })

  test('of sources with as many each, one that is idle goes: the newcomer, when all others wait for something', () => {
    assert.deepEqual(
      fill(new FairRoom<Item>(3), ['a1', 'b1', 'c1', 'd1', 'e1'], (name) => name < 'd'),
      ['d1', 'e1'],
    )
    assert.deepEqual(
      fill(new FairRoom<Item>(3), ['a1', 'b1', 'c1', 'd1'], (name) => name !== 'b1'),
      ['b1'],
    )
  })

  test('of sources with as many each, the newcomer goes where the others are to go on, and otherwise as before', () => {
    const room = (capacity: number): FairRoom<Item> => new FairRoom<Item>(capacity, true)
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

  test('0 is any number', () => {
    assert.deepEqual(fill(new FairRoom<Item>(0), ['a1', 'a2', 'a3']), [])
  })

  test('many changes between idle and busy leave no trace', () => {
    const room = new FairRoom<Item>(2)
    const [a1, a2] = [itemOf('a1'), itemOf('a2')]
    for (const item of [a1, a2]) room.add(item, item.source)
    for (let i = 0; i < 100; i++) for (const item of [a2, a1]) room.setIdle(item, i % 2 === 1)
    for (const item of [a2, a1]) room.setIdle(item, false)
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
      const room = new FairRoom<Item>(capacity)
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
          room.setIdle(first.item, what === 'idle')
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
