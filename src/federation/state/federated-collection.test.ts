import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bookmarkPods, changePod, keptPods } from '../../../test/harness/federation/kept-pods.ts'
import type { CollectionChange } from '../../cache/core/changes/collection.ts'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import { HISTORY_BYTES, HISTORY_MS, MADE_BYTES } from '../../cache/state/recent-changes.ts'
import { FederatedCollection, type Versions } from './federated-collection.ts'

let nowMs = 0
const clock = { monotonic: () => nowMs }

const podOf = (name: string, bytes = 0) => ({ namespace: 'a', name, team: '', bytes })

function kept(version: number, ...names: readonly string[]): CachedCollection {
  return keptPods(
    names.map((name) => podOf(name)),
    version,
    nowMs,
  )
}

function change(
  collection: CachedCollection,
  version: number,
  type: CollectionChange['type'] = 'MODIFIED',
  bytes = 0,
): void {
  changePod(collection, podOf('x', bytes), version, type, nowMs)
}

function bookmark(collection: CachedCollection, version: number, afterGap = false): void {
  bookmarkPods(collection, version, afterGap, nowMs)
}

function two(): { all: FederatedCollection; east: CachedCollection; west: CachedCollection } {
  const [east, west] = [kept(100, 'x', 'y'), kept(50, 'x')]
  const all = new FederatedCollection(2, clock)
  all.follow(0, east)
  all.follow(1, west)
  return { all, east, west }
}

/** What a client gets that knows these versions: own version of each change. */
function news(all: FederatedCollection, versions: readonly string[]): readonly string[] | 'expired' {
  const place = all.behind(versions)
  if (place.kind === 'expired') return 'expired'
  const found: string[] = []
  for (let index = place.index, one = all.history.at(index); one !== undefined; one = all.history.at(++index)) {
    if (BigInt(one.change.resourceVersion) > BigInt(versions[one.slot] ?? '0'))
      found.push(`${one.slot}:${one.change.resourceVersion}`)
  }
  return found
}

test('changes are in the order in which they came, and each has the versions of all members at that moment', () => {
  const { all, east, west } = two()
  change(east, 101)
  bookmark(west, 60)
  change(east, 103)
  change(west, 61)
  assert.deepEqual(
    [0, 1, 2].map((index) => all.history.at(all.history.end - 3 + index)?.versions),
    [
      ['101', '50'],
      ['103', '60'],
      ['103', '61'],
    ],
  )
  assert.deepEqual(all.versions, ['103', '61'])
})

test('a member is not watched by those that are told of its changes: the metric counts open watches', () => {
  const { all, east } = two()
  assert.equal(east.watchers.size, 0)
  all.leave()
  const { end } = all.history
  change(east, 101)
  assert.equal(all.history.end, end)
})

test('one who knows any version goes on there, and has each later change once', () => {
  const { all, east, west } = two()
  change(east, 101)
  change(west, 51)
  change(east, 102)
  assert.deepEqual(news(all, ['100', '50']), ['0:101', '1:51', '0:102'])
  assert.deepEqual(news(all, ['101', '50']), ['1:51', '0:102'])
  // As another replica had them, in another order.
  assert.deepEqual(news(all, ['102', '50']), ['1:51'])
  assert.deepEqual(news(all, ['100', '51']), ['0:101', '0:102'])
  assert.deepEqual(news(all, ['102', '51']), [])
  // Another replica is further.
  assert.deepEqual(news(all, ['200', '51']), [])
})

test('one who knows less than what is kept begins again', () => {
  const { all } = two()
  assert.equal(news(all, ['99', '50']), 'expired')
  assert.equal(news(all, ['100', '49']), 'expired')
  // Nothing of it is asked for.
  assert.deepEqual(news(all, ['100', '']), [])
})

test('changes that are older than what is kept of them are gone, and those that know less than them begin again', () => {
  const { all, east, west } = two()
  change(east, 101)
  nowMs += HISTORY_MS + 1
  change(west, 51)
  assert.equal(news(all, ['100', '50']), 'expired')
  assert.deepEqual(news(all, ['101', '50']), ['1:51'])
})

test('of large changes less are kept, and so much at once that none is left ends all watches', () => {
  const { all, east } = two()
  for (let version = 101; version < 112; version++) change(east, version, 'MODIFIED', 1024 * 1024)
  const { end } = all.history
  assert.ok(!all.history.has(0))
  assert.ok(all.history.has(end))
  assert.ok(all.history.bytesFrom(0, HISTORY_BYTES * 2) <= HISTORY_BYTES)
  let ended = 0
  all.watchers.add({ changed: () => undefined, ended: () => ended++ })
  change(east, 120, 'MODIFIED', HISTORY_BYTES + 1)
  assert.equal(ended, 1)
  assert.equal(news(all, ['111', '50']), 'expired')
  assert.deepEqual(news(all, ['120', '50']), [])
})

test('an object keeps the versions that it was given; one that has not changed since has the first of other members', () => {
  const { all, east, west } = two()
  change(west, 51)
  change(east, 101)
  bookmark(west, 70)
  const [x, y] = [east.get('a', 'x'), east.get('a', 'y')]
  assert.deepEqual(x && all.stampOf(0, x), ['101', '51'])
  assert.deepEqual(y && all.stampOf(0, y), ['100', '50'])
})

test('no object has an older version in a process that begins later, nor once its member is read again', () => {
  const { all, east, west } = two()
  change(west, 51)
  change(east, 101)
  change(west, 52)
  const restarted = new FederatedCollection(2, clock)
  restarted.follow(1, west)
  restarted.follow(0, east)
  const notOlder = (slot: number, before: Versions, after: Versions): void =>
    assert.ok(
      before.every((version, at) => Number(version) <= Number(after[at])),
      `${slot}: ${before} then ${after}`,
    )
  for (const [slot, member] of [east, west].entries()) {
    for (const object of member.range('').objects)
      notOlder(slot, all.stampOf(slot, object), restarted.stampOf(slot, object))
  }
  const before = all.stampOf(1, west.get('a', 'x') ?? assert.fail())
  const again = kept(52, 'x')
  all.follow(1, again)
  notOlder(1, before, all.stampOf(1, again.get('a', 'x') ?? assert.fail()))
})

test('an object that changes before another member is known has the first version of that member, as soon as that is known', () => {
  const all = new FederatedCollection(2, clock)
  const [east, west] = [kept(100, 'x', 'y'), kept(50, 'x')]
  all.follow(0, east)
  change(east, 101)
  const x = east.get('a', 'x')
  assert.deepEqual(x && all.stampOf(0, x), ['101', ''])
  all.follow(1, west)
  bookmark(west, 60)
  assert.deepEqual(x && all.stampOf(0, x), ['101', '50'])
})

test('a member that is read again ends the watches; who knows an older version of it begins again, others go on', () => {
  const { all, east } = two()
  let ended = 0
  all.watchers.add({ changed: () => undefined, ended: () => ended++ })
  change(east, 101)
  const before = all.history.end
  all.follow(1, kept(90, 'x'))
  assert.equal(ended, 1)
  assert.ok(!all.history.has(before))
  assert.equal(news(all, ['100', '50']), 'expired')
  assert.deepEqual(news(all, ['100', '90']), ['0:101'])
  all.follow(1, undefined)
  assert.equal(all.member(1), undefined)
  assert.deepEqual(all.versions, ['101', '90'])
})

test('who knows a version in a gap of a member begins again', () => {
  const { all, west } = two()
  bookmark(west, 60, true)
  assert.equal(news(all, ['100', '55']), 'expired')
  assert.deepEqual(news(all, ['100', '60']), [])
  assert.equal(all.isInGap(['100', '55']), true)
})

test('events are kept for several watches up to an amount, and no longer than their changes', () => {
  const { all, east } = two()
  const size = MADE_BYTES / 4
  for (let version = 101; version < 106; version++) {
    change(east, version)
    const merged = all.history.at(all.history.end - 1) ?? assert.fail()
    const event = all.history.made(merged, () => merged.event('json', () => Buffer.alloc(size)))
    assert.equal(
      merged.event('json', () => assert.fail('it is there')),
      event,
    )
  }
  assert.equal(all.history.madeBytes, MADE_BYTES)
  assert.equal(all.history.at(all.history.end - 5)?.madeBytes, 0)
  nowMs += HISTORY_MS + 1
  change(east, 110)
  assert.equal(all.history.madeBytes, 0)
})
