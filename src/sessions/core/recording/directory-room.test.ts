import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { Shares } from '../../../kit/core/shares/shares.ts'
import { allocateRoom, DirectoryRoom, emptySlots, OTHER_SLOT } from './directory-room.ts'

const MAX = 8_000
const [ALICE, BOB, CAROL] = [1, 2, 3]

function found(...files: readonly (readonly [slot: number, bytes: number])[]): Float64Array {
  const slots = emptySlots()
  for (const [slot, bytes] of files) slots[slot] = bytes
  return slots
}

/** Takes until it gets no more. */
function fill(room: DirectoryRoom, slot: number, weight = 1): number {
  let bytes = 0
  while (room.take(slot, weight, 10) === 'taken') bytes += 10
  return bytes
}

test('one user alone has all but the reserve, and others then still get something, whichever thread records them', () => {
  const memory = allocateRoom()
  const [one, two] = [new DirectoryRoom(memory, MAX), new DirectoryRoom(memory, MAX)]
  assert.equal(fill(one, ALICE) + fill(two, ALICE), 7000)
  assert.equal(two.wouldTake(ALICE, 1, 10), 'over-share')
  assert.ok(fill(two, BOB) > 400)
  assert.ok(fill(one, CAROL) > 100)
  assert.ok(one.held <= MAX)
})

test('what is left of files in the directory is counted after a restart, and what was removed no more', () => {
  const room = new DirectoryRoom(allocateRoom(), MAX)
  room.measured(room.beforeMeasuring(), found([ALICE, 6000], [OTHER_SLOT, 500]))
  assert.equal(fill(room, ALICE), 500)
  assert.equal(room.wouldTake(ALICE, 1, 10), 'over-share')
  assert.equal(room.wouldTake(BOB, 1, 10), 'taken')
  room.measured(room.beforeMeasuring(), found([OTHER_SLOT, 500]))
  assert.equal(room.held, 500)
  assert.ok(fill(room, ALICE) > 6000)
})

test('a user with a weight has so many times as much', () => {
  const room = new DirectoryRoom(allocateRoom(), MAX)
  assert.equal(room.take(ALICE, 3, 4900), 'taken')
  assert.equal(room.take(BOB, 1, 2090), 'taken')
  assert.equal(room.wouldTake(ALICE, 3, 100), 'taken')
  assert.equal(room.wouldTake(BOB, 1, 100), 'over-share')
})

test('it divides as any other shares do', () => {
  const takes = fc.array(
    fc.record({ slot: fc.nat(4), weight: fc.integer({ min: 1, max: 9 }), bytes: fc.integer({ min: 1, max: 3000 }) }),
  )
  fc.assert(
    fc.property(takes, (all) => {
      const room = new DirectoryRoom(allocateRoom(), MAX)
      const shares = new Shares(MAX - MAX / 8)
      for (const { slot, weight, bytes } of all) {
        assert.equal(room.take(slot, weight, bytes), shares.take(String(slot), weight, bytes))
      }
      assert.equal(room.held, shares.held)
    }),
  )
})
