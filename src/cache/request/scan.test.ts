import assert from 'node:assert/strict'
import { test } from 'node:test'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import { userCharge } from '../../kit/core/shares/charge.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedObject } from '../state/cached-object.ts'
import { scan, scanParts } from './scan.ts'

const objectsOf = (count: number): CachedObject[] =>
  Array.from({ length: count }, (_, at) => ({ key: `n/${at}` }) as unknown as CachedObject)

function collectionOf(objects: readonly CachedObject[]) {
  let lent = 0
  const range = (namespace: string) => ({
    objects,
    from: namespace === '' ? 0 : 1,
    to: namespace === '' ? objects.length : 3,
  })
  const collection = { range, lend: () => lent++ } as unknown as CachedCollection
  return { collection, lent: () => lent }
}

const charge = userCharge('c', 'alice', 1)

/** Takes as long as a slice every few objects. */
function slowly(selects: (object: CachedObject) => boolean): (object: CachedObject) => boolean {
  let count = 0
  return (object) => {
    if (++count % 64 === 0) for (const endMs = performance.now() + 5; performance.now() < endMs; );
    return selects(object)
  }
}

test('few objects are looked at in the same turn', async (t) => {
  const charged = t.mock.method(threadScheduler, 'charge')
  const objects = objectsOf(10)
  const { collection, lent } = collectionOf(objects)
  assert.deepEqual(await scan({ charge, gone: false }, collection, '', () => true), objects)
  assert.deepEqual(await scan({ charge, gone: false }, collection, 'n', () => true), objects.slice(1, 3))
  assert.equal(lent(), 0)
  assert.equal(charged.mock.callCount(), 2)
})

test('many are looked at in several, all of which are charged, while the thread does other things', async (t) => {
  const objects = objectsOf(2000)
  const { collection, lent } = collectionOf(objects)
  const works = t.mock.method(threadScheduler, 'resumeSlice')
  let turns = 0
  const count = (): void => {
    turns++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  const found = await scan(
    { charge, gone: false },
    collection,
    '',
    slowly(({ key }) => key.endsWith('7')),
  )
  clearImmediate(next)
  assert.deepEqual(
    found,
    objects.filter(({ key }) => key.endsWith('7')),
  )
  assert.equal(lent(), 1)
  assert.ok(works.mock.callCount() > 3, `${works.mock.callCount()} slices`)
  assert.ok(turns > 3, `${turns} turns of the event loop`)
})

test('of several parts the first that are selected are found, and no object behind them is looked at', async () => {
  const objects = objectsOf(1000)
  let looked = 0
  const even = ({ key }: CachedObject): boolean => {
    looked++
    return Number(key.slice(2)) % 2 === 0
  }
  const part = (from: number, to: number) => ({ range: { objects, from, to }, selects: even })
  const parts = [part(0, 0), part(10, 14), part(20, 20), part(100, 1000)]
  const scanned = async (most: number) => {
    looked = 0
    let lent = 0
    const { found, left } = await scanParts({ charge, gone: false }, parts, most, () => lent++)
    return { found: found.map((some) => some.map(({ key }) => key)), left, looked }
  }
  assert.deepEqual(await scanned(1), { found: [[], ['n/10'], [], []], left: 903, looked: 1 })
  assert.deepEqual(await scanned(2), { found: [[], ['n/10', 'n/12'], [], []], left: 901, looked: 3 })
  assert.deepEqual(await scanned(3), { found: [[], ['n/10', 'n/12'], [], ['n/100']], left: 899, looked: 5 })
  const { found, left } = await scanned(452)
  assert.deepEqual([found[3]?.length, found[3]?.at(-1), left], [450, 'n/998', 1])
  assert.equal((await scanned(453)).left, 0)
  assert.deepEqual((await scanParts({ charge, gone: false }, [], 5, () => undefined)).found, [])
})

test('without its client a scan ends', async () => {
  const { collection } = collectionOf(objectsOf(100_000))
  const scanner = { charge, gone: false }
  let looked = 0
  const all = slowly(() => {
    scanner.gone = true
    looked++
    return false
  })
  await scan(scanner, collection, '', all)
  assert.ok(looked < 10_000, `${looked} objects`)
})
