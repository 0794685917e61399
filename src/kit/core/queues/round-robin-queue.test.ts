import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Queued, RoundRobinQueue } from './round-robin-queue.ts'

class Item extends Queued {
  readonly name: string
  readonly weight: number

  constructor(name: string, weight = 1) {
    super()
    this.name = name
    this.weight = weight
  }
}

const ROOM = { count: 8, bytes: 1000 }

/** The first letter of an item is its source. */
function add(queue: RoundRobinQueue<Item>, ...names: string[]): Item[] {
  return names.map((name) => {
    const item = new Item(name)
    queue.add(item, name.charAt(0))
    return item
  })
}

function addMany(queue: RoundRobinQueue<Item>, source: string, count = 1, weight = 1): Item[] {
  return Array.from({ length: count }, () => {
    const item = new Item(source, weight)
    queue.add(item, source, weight)
    return item
  })
}

/** Takes the next items and holds them. */
function grant(queue: RoundRobinQueue<Item>, count: number): string {
  let sources = ''
  for (let i = 0; i < count; i++) {
    const item = queue.next()
    if (item === undefined) break
    queue.hold(item.name, item.weight)
    sources += item.name
  }
  return sources
}

function takeAll(queue: RoundRobinQueue<Item>): string[] {
  const taken: string[] = []
  for (let item = queue.next(); item !== undefined; item = queue.next()) taken.push(item.name)
  return taken
}

describe('turns', () => {
  test('sources take turns, each with its oldest', () => {
    const queue = new RoundRobinQueue<Item>()
    add(queue, 'a1', 'a2', 'a3', 'b1', 'c1', 'b2')
    assert.equal(queue.count, 6)
    assert.deepEqual(takeAll(queue), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
    assert.equal(queue.count, 0)
  })

  test('who comes while another has a thousand is the next but one', () => {
    const queue = new RoundRobinQueue<Item>()
    for (let i = 0; i < 1000; i++) add(queue, `a${i}`)
    queue.next()
    add(queue, 'b1')
    assert.deepEqual([queue.next()?.name, queue.next()?.name, queue.next()?.name], ['a1', 'b1', 'a2'])
  })

  test('what is removed is not taken; removing it again, or from another queue, does nothing', () => {
    const queue = new RoundRobinQueue<Item>()
    const other = new RoundRobinQueue<Item>()
    const [a1, , b1] = add(queue, 'a1', 'a2', 'b1')
    assert.ok(a1 && b1)
    assert.equal(other.remove(a1), false)
    assert.equal(queue.remove(a1), true)
    assert.equal(queue.remove(a1), false)
    queue.remove(b1)
    assert.equal(queue.count, 1)
    assert.deepEqual(takeAll(queue), ['a2'])
  })

  test('what is added twice waits once, at its first place', () => {
    const queue = new RoundRobinQueue<Item>()
    const [a1] = add(queue, 'a1', 'a2')
    assert.ok(a1)
    queue.add(a1, 'a')
    assert.equal(queue.count, 2)
    assert.deepEqual(takeAll(queue), ['a1', 'a2'])
  })

  test('an item is taken after at most as many others as there are sources, for each item of its own source before it', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 }), (sources) => {
        const queue = new RoundRobinQueue<Item>()
        sources.forEach((source, i) => void add(queue, `${source}${i}`))
        const taken = takeAll(queue)
        assert.equal(taken.length, sources.length)
        for (const source of new Set(sources)) {
          const places = taken.flatMap((name, place) => (name.startsWith(source) ? [place] : []))
          places.forEach((place, nth) => void assert.ok(place < (nth + 1) * new Set(sources).size))
        }
      }),
    )
  })
})

describe('shares of what is held, and a bounded queue', () => {
  test('sources take turns, however many one of them sends and holds', () => {
    const queue = new RoundRobinQueue<Item>({ count: 1000, bytes: 0 })
    addMany(queue, 'a', 100)
    addMany(queue, 'b', 2)
    addMany(queue, 'c', 1)
    const first = grant(queue, 6)
    assert.equal([...first].filter((source) => source === 'b').length, 2, first)
    assert.equal([...first].filter((source) => source === 'c').length, 1, first)
  })

  test('within a source it is first come, first served', () => {
    const queue = new RoundRobinQueue<Item>(ROOM)
    const [one, two] = addMany(queue, 'a', 2)
    assert.equal(queue.next(), one)
    assert.equal(queue.next(), two)
    assert.equal(queue.next(), undefined)
  })

  test('who holds less gets what becomes free, until it holds its share', () => {
    const queue = new RoundRobinQueue<Item>({ count: 1000, bytes: 0 })
    for (let i = 0; i < 100; i++) queue.hold('a')
    addMany(queue, 'a', 200)
    addMany(queue, 'b', 200)
    for (let i = 0; i < 49; i++) {
      queue.release('a')
      assert.equal(grant(queue, 1), 'b', `${i}`)
    }
    assert.equal(queue.heldBy('b'), 49)
  })

  test('who is alone gets everything', () => {
    const queue = new RoundRobinQueue<Item>({ count: 1000, bytes: 0 })
    addMany(queue, 'a', 50)
    assert.equal(grant(queue, 60), 'a'.repeat(50))
  })

  test('twice the weight is twice the turns, and twice the share', () => {
    const queue = new RoundRobinQueue<Item>({ count: 1000, bytes: 0 })
    addMany(queue, 'a', 100, 2)
    addMany(queue, 'b', 100)
    const got = grant(queue, 30)
    assert.equal([...got].filter((source) => source === 'a').length, 20, got)
  })

  test('the longest queue loses its last when it is full, never who has less', () => {
    const queue = new RoundRobinQueue<Item>(ROOM)
    const many = addMany(queue, 'a', 7)
    const [few] = addMany(queue, 'b')
    assert.ok(few)
    assert.equal(queue.overflow(few), undefined)
    const [third] = addMany(queue, 'c')
    assert.ok(third)
    assert.equal(queue.overflow(third), many.at(-1))
    assert.equal(queue.overflow(third), undefined)
    const [another] = addMany(queue, 'a')
    assert.ok(another)
    assert.equal(queue.overflow(another), another, 'its own last')
  })

  test('bytes are bounded in the same way', () => {
    const queue = new RoundRobinQueue<Item>(ROOM)
    const [large] = addMany(queue, 'a')
    const [small] = addMany(queue, 'b')
    assert.ok(large && small)
    queue.grow(large, 900)
    queue.grow(small, 100)
    assert.equal(queue.overflow(small), undefined)
    queue.grow(small, 1)
    assert.equal(queue.overflow(small), large)
    assert.equal(queue.bytes, 101)
  })

  test('what was removed is not granted, and nothing is left of it', () => {
    const queue = new RoundRobinQueue<Item>(ROOM)
    const [one, two, three] = addMany(queue, 'a', 3)
    assert.ok(one && two && three)
    queue.grow(two, 10)
    assert.equal(queue.remove(two), true)
    assert.equal(queue.remove(two), false)
    assert.equal(queue.bytes, 0)
    assert.deepEqual([queue.next(), queue.next(), queue.next()], [one, three, undefined])
    assert.equal(queue.count, 0)
    assert.equal(queue.waitingOf('a'), 0)
  })

  test('a source has the weight of what comes of it, from the next time on that nothing of it waits', () => {
    const queue = new RoundRobinQueue<Item>()
    queue.hold('a', 1)
    queue.hold('b', 1)
    addMany(queue, 'a', 3, 3)
    addMany(queue, 'b', 3, 1)
    assert.equal(queue.holdsItsShare('a'), false)
    assert.equal(queue.holdsItsShare('b'), true)
    assert.equal(grant(queue, 2), 'aa')
  })

  test('when nothing counts as held any more, those who were behind for what they held are so no longer', () => {
    const queue = new RoundRobinQueue<Item>()
    queue.hold('a')
    addMany(queue, 'a', 2)
    addMany(queue, 'b', 1)
    assert.equal(queue.next()?.name, 'b')
    queue.forgetHeld()
    addMany(queue, 'b', 2)
    assert.deepEqual(takeAll(queue), ['a', 'b', 'a', 'b'])
  })

  test('a source that does not hold its share is asked whether it may have something else, in the order of turns', () => {
    const queue = new RoundRobinQueue<Item>()
    addMany(queue, 'a', 2)
    addMany(queue, 'b', 2)
    queue.hold('a')
    const light = queue.first((source, item) => !queue.isAtShare(source) && item.name === 'b')
    assert.equal(light?.name, 'b')
    assert.ok(light)
    assert.equal(queue.grant(light)?.name, 'b')
    assert.equal(
      queue.first(({ held }) => held > 1),
      undefined,
    )
    assert.equal(queue.count, 3)
  })
})
