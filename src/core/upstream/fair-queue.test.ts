import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Charge } from '../../api/ports/stream.ts'
import { FairQueue, Queued } from './fair-queue.ts'

class Item extends Queued {}

const ROOM = { count: 8, bytes: 1000 }

function charge(source: string, weight = 1): Charge {
  return { source, weight, known: true }
}

function add(queue: FairQueue<Item>, who: Charge, count = 1): Item[] {
  return Array.from({ length: count }, () => {
    const item = new Item(who)
    queue.add(item)
    return item
  })
}

/** Takes what is next, and holds it. */
function grant(queue: FairQueue<Item>, count: number): string {
  let sources = ''
  for (let i = 0; i < count; i++) {
    const item = queue.next()
    if (item === undefined) break
    queue.hold(item.charge)
    sources += item.charge.source
  }
  return sources
}

test('sources take turns, however many one of them sends', () => {
  const queue = new FairQueue<Item>({ count: 1000, bytes: 0 })
  add(queue, charge('a'), 100)
  add(queue, charge('b'), 2)
  add(queue, charge('c'), 1)
  const first = grant(queue, 6)
  assert.equal([...first].filter((source) => source === 'b').length, 2, first)
  assert.equal([...first].filter((source) => source === 'c').length, 1, first)
})

test('within a source it is first come, first served', () => {
  const queue = new FairQueue<Item>(ROOM)
  const [one, two] = add(queue, charge('a'), 2)
  assert.equal(queue.next(), one)
  assert.equal(queue.next(), two)
  assert.equal(queue.next(), undefined)
})

test('who holds less gets what becomes free, until it holds its share', () => {
  const queue = new FairQueue<Item>({ count: 1000, bytes: 0 })
  for (let i = 0; i < 100; i++) queue.hold(charge('a'))
  add(queue, charge('a'), 200)
  add(queue, charge('b'), 200)
  for (let i = 0; i < 49; i++) {
    queue.release(charge('a'))
    assert.equal(grant(queue, 1), 'b', `${i}`)
  }
  assert.equal(queue.heldBy(charge('b')), 49)
})

test('who is alone gets everything', () => {
  const queue = new FairQueue<Item>({ count: 1000, bytes: 0 })
  add(queue, charge('a'), 50)
  assert.equal(grant(queue, 60), 'a'.repeat(50))
})

test('twice the weight is twice the turns, and twice the share', () => {
  const queue = new FairQueue<Item>({ count: 1000, bytes: 0 })
  add(queue, charge('a', 2), 100)
  add(queue, charge('b'), 100)
  const got = grant(queue, 30)
  assert.equal([...got].filter((source) => source === 'a').length, 20, got)
})

test('the longest queue loses its last when it is full, never who has less', () => {
  const queue = new FairQueue<Item>(ROOM)
  const many = add(queue, charge('a'), 7)
  const [few] = add(queue, charge('b'))
  assert.ok(few)
  assert.equal(queue.overflow(few), undefined)
  const [third] = add(queue, charge('c'))
  assert.ok(third)
  assert.equal(queue.overflow(third), many.at(-1))
  assert.equal(queue.overflow(third), undefined)
  const [another] = add(queue, charge('a'))
  assert.ok(another)
  assert.equal(queue.overflow(another), another, 'its own last')
})

test('bytes are bounded in the same way', () => {
  const queue = new FairQueue<Item>(ROOM)
  const [large] = add(queue, charge('a'))
  const [small] = add(queue, charge('b'))
  assert.ok(large && small)
  queue.grow(large, 900)
  queue.grow(small, 100)
  assert.equal(queue.overflow(small), undefined)
  queue.grow(small, 1)
  assert.equal(queue.overflow(small), large)
  assert.equal(queue.bytes, 101)
})

test('what was removed is not granted, and nothing is left of it', () => {
  const queue = new FairQueue<Item>(ROOM)
  const [one, two, three] = add(queue, charge('a'), 3)
  assert.ok(one && two && three)
  queue.grow(two, 10)
  assert.equal(queue.remove(two), true)
  assert.equal(queue.remove(two), false)
  assert.equal(queue.bytes, 0)
  assert.deepEqual([queue.next(), queue.next(), queue.next()], [one, three, undefined])
  assert.equal(queue.count, 0)
  assert.equal(queue.waitingOf(charge('a')), 0)
})
