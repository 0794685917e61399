import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerForm } from '../core/bytes/answer-form.ts'
import { FactsReader } from '../core/bytes/object-facts.ts'
import type {
  CollectionChange,
  CollectionReset,
  CollectionUpdate,
  CurrentState,
  ObjectRecord,
} from '../core/changes/collection.ts'
import { selectableFields } from '../core/fields/selectable-fields.ts'
import { CachedCollection } from './cached-collection.ts'
import { CachedCollections } from './cached-collections.ts'
import type { CachedObject } from './cached-object.ts'
import { HISTORY_BYTES, HISTORY_MS, MADE_BYTES } from './recent-changes.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '', encoding: 'json' as const }
const READER = new FactsReader(selectableFields({ ...ID, namespaced: true }).kept)
const FORM = answerForm('declared', { encoding: 'json', partial: false }) ?? assert.fail()
let segments = 0

function record(
  name: string,
  version: number,
  labels: object = {},
  namespace = 'a',
  more = '',
): [ObjectRecord, CollectionReset['segments'][0]] {
  const json = Buffer.from(
    JSON.stringify({
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { name, namespace, uid: name, resourceVersion: String(version), labels },
      spec: { nodeName: more },
    }),
  )
  const memory = new SharedArrayBuffer(json.length)
  Buffer.from(memory).set(json)
  const id = ++segments
  return [
    { facts: READER.read(json), segment: id, offset: 0, length: json.length },
    { id, memory },
  ]
}

function reset(...objects: readonly ReturnType<typeof record>[]): CollectionReset {
  return {
    type: 'reset',
    collection: ID,
    epoch: 1,
    number: 0,
    list: { kind: 'PodList', apiVersion: 'v1' },
    form: 'declared',
    resourceVersion: '10',
    bookmark: undefined,
    segments: objects.map(([, segment]) => segment),
    objects: objects.map(([one]) => one),
    followed: true,
    warnings: [],
  }
}

function update(
  number: number,
  version: number,
  ...changes: readonly (readonly [CollectionChange['type'], ReturnType<typeof record>])[]
): CollectionUpdate {
  return {
    type: 'update',
    collection: ID,
    epoch: 1,
    number,
    resourceVersion: String(version),
    changes: changes.map(([type, [object]]) => ({ type, object })),
    moved: [],
    segments: changes.map(([, [, segment]]) => segment),
    dropped: [],
    bookmark: undefined,
    followed: true,
    warnings: [],
    afterGap: false,
  }
}

function all(collection: CachedCollection, namespace = ''): readonly CachedObject[] {
  const { objects, from, to } = collection.range(namespace)
  return objects.slice(from, to)
}

const names = (objects: readonly CachedObject[]): readonly string[] => objects.map(({ key }) => key)

test('when the main thread is told again that a collection is wanted is forgotten as soon as that is over', () => {
  let nowMs = 0
  const told: string[] = []
  const clock = { now: () => nowMs, monotonic: () => nowMs }
  const collections = new CachedCollections(
    clock,
    async () => undefined,
    () => undefined,
    ({ resource }) => told.push(resource),
    () => undefined,
  )
  for (let at = 0; at < 100; at++) {
    collections.wanted({ ...ID, resource: `r${at}` })
    collections.wanted({ ...ID, resource: `r${at}` })
    nowMs += 500
    assert.ok(collections.wantedLately <= 3, `${collections.wantedLately} after ${at}`)
  }
  assert.equal(told.length, 100)
})

test('objects are in the order of the bytes of their keys, also after changes', () => {
  const collection = new CachedCollection(reset(record('b', 5), record('a', 6), record('x', 7, {}, 'a-b')), 0)
  assert.deepEqual(names(all(collection)), ['a-b/x', 'a/a', 'a/b'])
  collection.update(update(1, 12, ['ADDED', record('aa', 11)], ['DELETED', record('b', 12)]), 0)
  assert.deepEqual(names(all(collection)), ['a-b/x', 'a/a', 'a/aa'])
  assert.deepEqual(names(all(collection, 'a')), ['a/a', 'a/aa'])
  assert.deepEqual(names(all(collection, 'a-b')), ['a-b/x'])
  assert.equal(collection.get('a', 'b'), undefined)
  assert.equal(collection.get('a', 'aa')?.facts.resourceVersion, '11')
})

test('names that begin alike are found without looking at others', () => {
  const names = ['a', 'ab', 'abc', 'abc-d', 'abd', 'b']
  const namespaced = new CachedCollection(
    reset(...names.flatMap((name) => [record('x', 5, {}, name), record('y', 6, {}, name)])),
    0,
  )
  const inNone = new CachedCollection(reset(...names.map((name) => record(name, 5, {}, ''))), 0)
  assert.deepEqual([...namespaced.names('ab')], ['ab', 'abc-d', 'abc', 'abd'])
  assert.deepEqual([...namespaced.names('abc')], ['abc-d', 'abc'])
  assert.deepEqual([...namespaced.names('ac')], [])
  assert.deepEqual([...namespaced.names('')], ['a', 'ab', 'abc-d', 'abc', 'abd', 'b'])
  assert.deepEqual([...inNone.names('abc')], ['abc', 'abc-d'])
})

test('what was lent stays as it was', () => {
  const collection = new CachedCollection(reset(record('a', 5), record('b', 6)), 0)
  const { objects } = collection.range('')
  const before = [...objects]
  collection.lend()
  collection.update(
    update(1, 14, ['ADDED', record('aa', 12)], ['MODIFIED', record('b', 13)], ['DELETED', record('a', 14)]),
    0,
  )
  assert.deepEqual(objects, before)
  assert.deepEqual(names(all(collection)), ['a/aa', 'a/b'])
  assert.deepEqual(names(all(collection, 'b')), [])
})

test('many changes at once leave what the same changes do one by one', () => {
  const start = reset(...Array.from({ length: 500 }, (_, at) => record(`a${at}`, at + 1)))
  const changes = Array.from({ length: 1500 }, (_, at) => {
    const name = `a${(at * 7919) % 1000}`
    const type: CollectionChange['type'] = at % 3 === 0 ? 'DELETED' : 'MODIFIED'
    return [type, record(name, 1000 + at)] as const
  })
  const together = new CachedCollection(start, 0)
  together.update(update(1, 3000, ...changes), 0)
  const apart = new CachedCollection(start, 0)
  for (const [at, change] of changes.entries()) apart.update(update(at + 1, 1000 + at, change), 0)
  const shown = (collection: CachedCollection) => [
    collection.bytes,
    collection.size,
    all(collection).map(({ key, facts }) => `${key}@${facts.resourceVersion}`),
  ]
  assert.deepEqual(shown(together), shown(apart))
  assert.equal(together.get('a', 'a1'), all(together)[1])
})

test('a selection that is left deletes the previous object, at the version of the change', () => {
  const collection = new CachedCollection(reset(record('a', 5, { app: 'one' })), 0)
  collection.update(
    update(1, 13, ['MODIFIED', record('a', 12, { app: 'two' })], ['MODIFIED', record('a', 13, { app: 'one' })]),
    0,
  )
  const selects = ({ facts }: CachedObject): boolean => facts.labels['app'] === 'one'
  const from = collection.history.behind('10') ?? assert.fail()
  const lines = [0, 1].map((at) => String(collection.history.at(from + at)?.eventFor(selects, FORM)))
  const [left, back] = lines.map((line) => JSON.parse(line))
  assert.deepEqual(
    [left.type, left.object.metadata.resourceVersion, left.object.metadata.labels],
    ['DELETED', '12', { app: 'one' }],
  )
  assert.deepEqual([back.type, back.object.metadata.resourceVersion], ['ADDED', '13'])
  // One line for all that get it.
  const change = collection.history.at(from)
  assert.equal(change?.eventFor(selects, FORM), change?.eventFor(selects, FORM))
  assert.equal(
    change?.eventFor(() => false, FORM),
    undefined,
  )
})

test('the history goes back to its first version, and forgets what is old or too much', () => {
  const collection = new CachedCollection(reset(), 0)
  const { history } = collection
  collection.update(update(1, 12, ['ADDED', record('a', 11)], ['ADDED', record('b', 12)]), 0)
  assert.deepEqual(
    [history.behind('9'), history.behind('10'), history.behind('11'), history.behind('12'), history.behind('99')],
    [undefined, 0, 1, 2, 2],
  )
  collection.update(update(2, 13, ['ADDED', record('c', 13)]), HISTORY_MS + 1)
  assert.deepEqual(
    [history.behind('11'), history.behind('12'), history.has(1), history.at(2)?.resourceVersion],
    [undefined, 2, false, '13'],
  )
  const large = 'x'.repeat(HISTORY_BYTES / 4)
  for (let i = 0; i < 6; i++)
    collection.update(update(3 + i, 20 + i, ['ADDED', record(`l${i}`, 20 + i, {}, 'a', large)]), HISTORY_MS + 2)
  assert.equal(history.behind('13'), undefined)
  assert.ok(history.bytesFrom(0, Number.POSITIVE_INFINITY) <= HISTORY_BYTES)
})

test('events of changes are kept up to a bound, in all forms together; older ones are made again', () => {
  const collection = new CachedCollection(reset(), 0)
  const { history } = collection
  const large = 'x'.repeat(MADE_BYTES / 16)
  for (let i = 0; i < 40; i++)
    collection.update(update(1 + i, 20 + i, ['ADDED', record(`l${i}`, 20 + i, {}, 'a', large)]), 0)
  const partial = answerForm('declared', { encoding: 'json', partial: true }) ?? assert.fail()
  const eventOf = (at: number, form = FORM): Buffer =>
    history.eventOf(history.at(at) ?? assert.fail(), () => true, form) ?? assert.fail()
  const first = eventOf(0)
  assert.equal(eventOf(0), first)
  for (let at = history.end - 30; at < history.end; at++) {
    eventOf(at)
    eventOf(at, partial)
    assert.ok(history.madeBytes <= MADE_BYTES)
  }
  assert.ok(history.madeBytes > MADE_BYTES / 2)
  assert.notEqual(eventOf(0), first)
  assert.deepEqual(eventOf(0), first)
  // Nothing is kept of removed events.
  history.trim(HISTORY_MS + 1)
  assert.equal(history.madeBytes, 0)
})

test('a version is waited for, until the collection ends', async () => {
  const collection = new CachedCollection(reset(), 0)
  assert.equal(await collection.reaches('9', 0), true)
  const reached = collection.reaches('15', 10_000)
  collection.update(update(1, 15), 0)
  assert.equal(await reached, true)
  const never = collection.reaches('99', 10_000)
  collection.end()
  assert.equal(await never, false)
  assert.equal(await collection.reaches('9', 0), false)
})

test('a message that is missing ends the collection and asks for all; one that is known changes nothing', () => {
  let unknown = 0
  const collections = new CachedCollections(
    { now: () => 0, monotonic: () => 5_000 },
    () => Promise.resolve(undefined),
    () => unknown++,
    () => undefined,
    () => undefined,
  )
  collections.apply(reset(record('a', 5)))
  const first = collections.get(ID)
  collections.apply(reset(record('a', 5)))
  assert.equal(collections.get(ID), first)
  collections.apply(update(2, 12))
  assert.deepEqual([collections.get(ID), first?.isGone, unknown], [undefined, true, 1])
  collections.apply(update(3, 13))
  assert.equal(unknown, 1)
})

test('what clients were told of is waited for until it is known, and once at most if it never comes', async () => {
  const collections = new CachedCollections(
    { now: () => 0, monotonic: () => 0 },
    () => Promise.resolve(undefined),
    () => undefined,
    () => undefined,
    () => undefined,
  )
  collections.apply(reset())
  const collection = collections.get(ID) ?? assert.fail()
  await collections.reachTold(collection, 60_000)
  collections.told(collection, '11')
  const reached = collections.reachTold(collection, 60_000)
  collections.apply(update(1, 11))
  await reached
  collections.told(collection, '99')
  await collections.reachTold(collection, 1)
  await collections.reachTold(collection, 60_000)
  assert.equal(collection.version, '11')
})

test('a collection is current if it has reached the version that was proved', async () => {
  let proved: CurrentState | undefined
  const collections = new CachedCollections(
    { now: () => 0, monotonic: () => 0 },
    () => Promise.resolve(proved),
    () => undefined,
    () => undefined,
    () => undefined,
  )
  collections.apply(reset())
  const collection = collections.get(ID) ?? assert.fail()
  const versionOf = (): Promise<string | undefined> =>
    collections.currentVersion(collection, 10_000, { atOnce: false, whole: false })
  for (const [known, current, version] of [
    ['10', '10', '10'],
    ['11', '11', undefined],
    // Nothing has changed from the version that is known to a later one, if it is the one that is known here.
    ['10', '12', '12'],
    ['9', '12', undefined],
    ['9', '10', '10'],
  ] as const) {
    proved = { known, current }
    assert.equal(await versionOf(), version, `${known}, ${current}`)
  }
  proved = undefined
  assert.equal(await versionOf(), undefined)
  proved = { known: '10', current: '12' }
  collections.apply(update(1, 11))
  assert.equal(await versionOf(), undefined)
  collections.apply({ type: 'gone', collection: ID })
  proved = { known: '11', current: '11' }
  assert.equal(await versionOf(), undefined)
})
