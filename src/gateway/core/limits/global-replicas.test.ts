// Replicas that share a limit: their parts add up to it, and none takes more than its part until the others are known to be back.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ReplicaView, wholePart } from './global-replicas.ts'

const at = (heardMs: number, ...ids: string[]): { id: string; heardMs: number }[] => ids.map((id) => ({ id, heardMs }))

test('whole parts sum up to the limit, and differ by one at most', () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.integer({ min: 1, max: 50 }), (total, replicas) => {
      const parts = Array.from({ length: replicas }, (_, rank) => wholePart(total, { replicas, rank }))
      assert.equal(
        parts.reduce((sum, part) => sum + part, 0),
        total,
      )
      assert.ok(Math.max(...parts) - Math.min(...parts) <= 1)
    }),
  )
})

test('no other replica is known yet: as many as were expected', () => {
  const view = new ReplicaView('a', 3)
  assert.deepEqual([view.mode, view.part], ['parted', { replicas: 3, rank: 0 }])
  view.onMembers(at(1, 'b', 'a'), 1, 100)
  assert.deepEqual([view.mode, view.part], ['shared', { replicas: 2, rank: 0 }])
})

test('started while Redis is away: the part of the process before, and no more than that of the expected replicas', () => {
  const view = new ReplicaView('new', 1, { replicas: 3, rank: 2 })
  assert.deepEqual([view.mode, view.part], ['parted', { replicas: 3, rank: 2 }])
  assert.deepEqual(new ReplicaView('new', 5, { replicas: 3, rank: 2 }).part, { replicas: 5, rank: 2 })
  // A rank out of range is clamped to the last one.
  assert.deepEqual(new ReplicaView('new', 2, { replicas: 1, rank: 7 }).part, { replicas: 2, rank: 1 })
  view.onMembers(at(1, 'a', 'new'), 1, 100)
  assert.deepEqual([view.mode, view.part], ['shared', { replicas: 2, rank: 1 }])
  // All replicas restart without Redis: together they take the whole limit, and no more.
  const total = 10
  const parts = [0, 1, 2].map((rank) => wholePart(total, new ReplicaView('x', 1, { replicas: 3, rank }).part))
  assert.deepEqual(parts, [4, 3, 3])
})

test('Redis lost: the parts are those of the last that was heard', () => {
  const view = new ReplicaView('b', 1)
  view.onMembers(at(1, 'c', 'b', 'a'), 1, 100)
  view.onDisconnect()
  assert.deepEqual([view.mode, view.part], ['parted', { replicas: 3, rank: 1 }])
})

test('back, it keeps to its part until all have spoken since, or are given up', () => {
  const view = new ReplicaView('a', 1)
  view.onMembers(at(1, 'a', 'b', 'c'), 1, 100)
  view.onDisconnect()
  // What b and c reported before the reconnect proves nothing.
  view.onMembers([...at(1000, 'a'), ...at(900, 'b', 'c')], 1000, 1100)
  assert.deepEqual([view.mode, view.part.replicas], ['returning', 3])
  view.onMembers([...at(1250, 'a', 'b'), ...at(900, 'c')], 1250, 1350)
  assert.equal(view.mode, 'returning')
  view.onMembers(at(1500, 'a', 'b', 'c'), 1500, 1600)
  assert.equal(view.mode, 'shared')
  view.onDisconnect()
  view.onMembers(at(9000, 'a'), 9000, 9100)
  assert.equal(view.mode, 'returning')
  view.onMembers(at(13_000, 'a'), 13_000, 13_100)
  assert.deepEqual([view.mode, view.members], ['shared', ['a']])
})
