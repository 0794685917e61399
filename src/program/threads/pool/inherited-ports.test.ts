import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectionPlaces } from '../../../gateway/state/connection-places.ts'
import { HandedThreads } from './inherited-ports.ts'

function setUp(threads: number) {
  const places = new ConnectionPlaces(ConnectionPlaces.allocate(threads))
  const listening = Array.from({ length: threads }, (_, thread) => thread)
  for (const thread of listening) places.setOpen(thread, true)
  return { places, listening, handed: new HandedThreads(places) }
}

test('connections that come at once are spread exactly', () => {
  const { places, listening, handed } = setUp(3)
  for (let i = 0; i < 30; i++) handed.next(listening, 0)
  assert.deepEqual(
    places.loads().map((load) => load?.connections),
    [10, 10, 10],
  )
})

test('a thread that hangs gets no more, until it gets something done', () => {
  const { places, listening, handed } = setUp(2)
  assert.deepEqual([handed.next(listening, 0), handed.next(listening, 0)].toSorted(), [0, 1])
  places.beat(0)
  const later = Array.from({ length: 5 }, () => handed.next(listening, 251))
  assert.deepEqual(new Set(later), new Set([0]))
  places.beat(1)
  assert.equal(handed.next(listening, 252), 1)
})

test('a thread that was idle for long does not hang', () => {
  const { places, listening, handed } = setUp(2)
  for (let nowMs = 0; nowMs < 1e6; nowMs += 1e5) {
    const thread = handed.next(listening, nowMs)
    assert.notEqual(thread, undefined)
    places.beat(thread ?? 0)
  }
  assert.deepEqual(
    places.loads().map((load) => load?.connections),
    [5, 5],
  )
})

test('the successor of a thread that hung and died is handed connections', () => {
  const { places, listening, handed } = setUp(2)
  for (let i = 0; i < 2; i++) handed.next(listening, 0)
  places.beat(0)
  places.died(1)
  places.setOpen(1, true)
  assert.equal(handed.next(listening, 1_000), 1)
})

test('all hang: one gets it all the same; no thread listens: none', () => {
  const { listening, handed } = setUp(2)
  for (let i = 0; i < 2; i++) handed.next(listening, 0)
  assert.notEqual(handed.next(listening, 1_000), undefined)
  assert.equal(handed.next([], 1_000), undefined)
})
