import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Queued, TurnQueue } from './turn-queue.ts'

class Item extends Queued {
  readonly name: string

  constructor(name: string) {
    super()
    this.name = name
  }
}

/** The first letter of an item is its source. */
function add(queue: TurnQueue<Item>, ...names: string[]): Item[] {
  return names.map((name) => {
    const item = new Item(name)
    queue.add(item, name.charAt(0))
    return item
  })
}

function takeAll(queue: TurnQueue<Item>): string[] {
  const taken: string[] = []
  for (let item = queue.next(); item !== undefined; item = queue.next()) taken.push(item.name)
  return taken
}

describe('turns', () => {
  test('sources take turns, each with its oldest', () => {
    const queue = new TurnQueue<Item>()
    add(queue, 'a1', 'a2', 'a3', 'b1', 'c1', 'b2')
    assert.equal(queue.count, 6)
    assert.deepEqual(takeAll(queue), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
    assert.equal(queue.count, 0)
  })

  test('who comes while another has a thousand is the next but one', () => {
    const queue = new TurnQueue<Item>()
    for (let i = 0; i < 1000; i++) add(queue, `a${i}`)
    queue.next()
    add(queue, 'b1')
    assert.deepEqual([queue.next()?.name, queue.next()?.name, queue.next()?.name], ['a1', 'b1', 'a2'])
  })

  test('what is removed is not taken; removing it again, or from another queue, does nothing', () => {
    const queue = new TurnQueue<Item>()
    const other = new TurnQueue<Item>()
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
    const queue = new TurnQueue<Item>()
    const [a1] = add(queue, 'a1', 'a2')
    assert.ok(a1)
    queue.add(a1, 'a')
    assert.equal(queue.count, 2)
    assert.deepEqual(takeAll(queue), ['a1', 'a2'])
  })

  test('whoever waits is taken after at most as many others as there are sources, for each of its own before it', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 }), (sources) => {
        const queue = new TurnQueue<Item>()
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
