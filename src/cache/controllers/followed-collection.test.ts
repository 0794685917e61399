import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { LEAST_CACHE_BYTES } from '../../gateway/api/upstream-cluster/read-cache/read-cache.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { FollowChoice, FollowEvents } from '../../kube/api/object-client.ts'
import { followedBytes, limitFollowedBytes } from '../../kube/io/followed-bytes.ts'
import type { CollectionNews, ObjectRecord } from '../core/changes/collection.ts'
import { FollowedCollection, MAX_BOOKMARK_BYTES, ROOM_IDLE_MS } from './followed-collection.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '', encoding: 'json' as const }
const MUCH = 10 * 1024 * 1024
const THREADS = 2

function pod(name: string, version: number | string, uid = name, note = ''): object {
  return { metadata: { name, namespace: 'a', uid, resourceVersion: String(version), annotations: { note } } }
}

function scene(maxBytes = MUCH) {
  const news: CollectionNews[] = []
  const drops: string[] = []
  let events: FollowEvents | undefined
  let choice: FollowChoice = {}
  const collection = new FollowedCollection(
    ID,
    { maxBytes, threads: THREADS },
    {
      client: {
        follow: (_kind, _namespace, given, chosen) => {
          events = given
          choice = chosen ?? {}
          return { stop: async () => undefined }
        },
      },
      publish: (one) => news.push(one),
      dropped: (reason) => drops.push(reason),
      resumed: () => undefined,
      clock: systemClock,
      log: SILENT,
    },
  )
  const { raw } = choice
  /** @returns what ends the list */
  const beginList = (list: object, version: number | string): (() => void) => {
    const kept = raw?.page(Buffer.from(JSON.stringify(list))).objects ?? assert.fail()
    events?.onPage?.(kept, true)
    return () => {
      events?.onReplace(kept)
      events?.onVersion?.(String(version))
    }
  }
  const page = (list: object, version: number | string): void => beginList(list, version)()
  const podList = (version: number | string, items: readonly object[]): object => {
    return { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: String(version) }, items }
  }
  return {
    collection,
    news,
    drops,
    page,
    list: (version: number | string, ...pods: readonly object[]): void => page(podList(version, pods), version),
    beginList: (version: number, ...pods: readonly object[]) => beginList(podList(version, pods), version),
    event(type: 'ADDED' | 'MODIFIED' | 'DELETED', one: object): void {
      const object = { kind: 'Pod', apiVersion: 'v1', ...one }
      const kept = raw?.event(Buffer.from(JSON.stringify({ type, object })))
      events?.onChange(type, kept?.object ?? assert.fail())
      events?.onVersion?.(String(Object(Object(one).metadata).resourceVersion))
    },
    rawBookmark: (object: object): void => void raw?.event(Buffer.from(JSON.stringify({ type: 'BOOKMARK', object }))),
    warn: (value: string): void => collection.warned([value]),
    bookmark: (version: number | string): void => events?.onVersion?.(String(version)),
    state: (followed: boolean, code = 0): void => events?.onState(followed, '', code),
    /** As of a custom resource: with its keys in byte order. */
    customList(version: number, ...objects: readonly object[]): void {
      const items = objects.map((one) => ({ apiVersion: 'example.com/v1', kind: 'Thing', ...one }))
      const metadata = { resourceVersion: String(version) }
      page({ apiVersion: 'example.com/v1', items, kind: 'ThingList', metadata }, version)
    },
  }
}

/** What threads have been told so far, with the bytes. */
function told(news: readonly CollectionNews[]): readonly string[] {
  const memory = new Map<number, Buffer>()
  const text = ({ segment, offset, length, facts }: ObjectRecord): string => {
    const json = JSON.parse(String(memory.get(segment)?.subarray(offset, offset + length)))
    assert.equal(json.metadata.resourceVersion, facts.resourceVersion)
    return `${json.kind} ${json.metadata.name}@${json.metadata.resourceVersion}`
  }
  return news.flatMap((one) => {
    if (one.type === 'gone') return [one.type]
    if (one.type === 'room') return [`room ${one.bytes}`]
    for (const { id, memory: shared } of one.segments) memory.set(id, Buffer.from(shared))
    if (one.type === 'reset') return [`reset ${one.objects.map(text).join(', ')} until ${one.resourceVersion}`]
    return [...one.changes.map(({ type, object }) => `${type} ${text(object)}`), `until ${one.resourceVersion}`]
  })
}

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(() => setImmediate(resolve)))

test('a list, then changes, in messages with numbers', async () => {
  const { list, event, bookmark, news } = scene()
  list(10, pod('x', 5), pod('y', 6))
  event('MODIFIED', pod('x', 11))
  event('ADDED', pod('z', 12))
  event('DELETED', pod('y', 13))
  bookmark(20)
  await settled()
  assert.deepEqual(told(news), [
    'reset Pod x@5, Pod y@6 until 10',
    'MODIFIED Pod x@11',
    'ADDED Pod z@12',
    'DELETED Pod y@13',
    'until 20',
  ])
  assert.deepEqual(
    news.map((one) => ('number' in one ? one.number : -1)),
    [0, 1],
  )
})

test('a list after a gap becomes changes, in the order of versions; what is the same is kept where it is', async () => {
  const { list, news, collection } = scene()
  list(10, pod('x', 5), pod('y', 6), pod('z', 7))
  list(30, pod('z', 7), pod('x', 22), pod('w', 21))
  await settled()
  assert.deepEqual(told(news), [
    'reset Pod x@5, Pod y@6, Pod z@7 until 10',
    'DELETED Pod y@11',
    'ADDED Pod w@21',
    'MODIFIED Pod x@22',
    'until 30',
  ])
  assert.equal((news.at(-1) as { afterGap?: boolean }).afterGap, true)
  assert.deepEqual([collection.objects, collection.version], [3, '30'])
})

test('an object in other words at the same version begins everything again', async () => {
  const { list, event, news, collection, drops } = scene()
  list(10, pod('x', 5), pod('y', 6))
  event('MODIFIED', pod('y', 11))
  list(30, pod('x', 5, 'x', 'a default that was added'), pod('y', 11))
  event('MODIFIED', pod('x', 31))
  await settled()
  assert.deepEqual(told(news), [
    'reset Pod x@5, Pod y@6 until 10',
    'reset Pod x@5, Pod y@11 until 30',
    'MODIFIED Pod x@31',
    'until 31',
  ])
  const [first, second] = news
  assert.ok(first?.type === 'reset' && second?.type === 'reset' && first.epoch !== second.epoch)
  const [x] = second.objects
  const memory = second.segments.find(({ id }) => id === x?.segment)?.memory ?? assert.fail()
  assert.match(Buffer.from(memory, x?.offset, x?.length).toString(), /a default that was added/)
  assert.deepEqual([drops, collection.objects], [[], 2])
  // Once.
  list(40, pod('x', 31), pod('y', 11))
  await settled()
  assert.deepEqual(told(news).slice(4), ['until 40'])
})

test('what is moved in memory while a list is read is found where it is when everything begins again', async () => {
  const { list, beginList, event, warn, news, drops, collection } = scene()
  const note = 'n'.repeat(3_000)
  const pods = Array.from({ length: 40 }, (_, at) => pod(`p${at}`, at + 1, `p${at}`, note))
  list(100, ...pods)
  // The first segment is sparse as soon as the threads know that most of it is gone.
  for (let at = 0; at < 15; at++) event('DELETED', pod(`p${at}`, 101 + at, `p${at}`, note))
  await settled()
  const before = collection.bytes
  const endList = beginList(200, ...pods.slice(15, -1), pod('p39', 40, 'p39', 'a default that was added'))
  warn('299 - "deprecated"')
  await settled()
  assert.ok(
    news.some((one) => one.type === 'update' && one.moved.length > 0),
    'something was moved',
  )
  endList()
  const reset = news.at(-1)
  assert.ok(reset?.type === 'reset')
  const segments = new Map(reset.segments.map(({ id, memory }) => [id, memory]))
  for (const { facts, segment, offset, length } of reset.objects) {
    const shared = segments.get(segment) ?? assert.fail(`${facts.name} is nowhere`)
    assert.equal(JSON.parse(Buffer.from(shared, offset, length).toString()).metadata.name, facts.name)
  }
  assert.deepEqual([reset.objects.length, drops], [25, []])
  assert.ok(collection.bytes <= before, `${collection.bytes} bytes, ${before} before`)
})

test('what takes the place of custom objects, with none of them left, has nothing to do with them', async () => {
  const thing = (name: string, uid: string, version: number, namespace?: string): object => {
    return { metadata: { name, namespace, resourceVersion: String(version), uid } }
  }
  for (const listed of [[], [thing('x', 'another', 25)], [thing('x', 'another', 25, 'a')]]) {
    const { customList, news, drops } = scene()
    customList(10, thing('x', 'x', 5, 'a'))
    customList(30, ...listed)
    await settled()
    assert.deepEqual([news.map(({ type }) => type), drops], [['reset', 'reset'], []])
  }
  const { customList, news } = scene()
  customList(10, thing('x', 'x', 5, 'a'), thing('y', 'y', 6, 'a'))
  customList(30, thing('y', 'y', 6, 'a'))
  await settled()
  assert.deepEqual(
    news.map(({ type }) => type),
    ['reset', 'update'],
  )
})

test('a resource that is gone is forgotten at once, and read again when it is back', async () => {
  const { list, state, bookmark, news, collection, drops } = scene()
  state(false, 404)
  list(10, pod('x', 5))
  state(true)
  state(false, 403)
  assert.equal(collection.version, '10')
  state(false, 404)
  assert.deepEqual([collection.version, collection.objects], ['', 0])
  bookmark(20)
  await settled()
  list(15, pod('x', 14))
  state(true)
  await settled()
  assert.deepEqual(told(news), ['reset Pod x@5 until 10', 'gone', 'reset Pod x@14 until 15'])
  assert.deepEqual(drops, [])
})

test('what goes back in time is forgotten', () => {
  for (const run of [
    ({ list }: ReturnType<typeof scene>) => list(9, pod('x', 5)),
    ({ event }: ReturnType<typeof scene>) => event('MODIFIED', pod('x', 8)),
    ({ collection }: ReturnType<typeof scene>) => collection.wentBack(),
    // Lists whose objects contradict what was told before, and their own version.
    ({ list }: ReturnType<typeof scene>) => list(20, pod('x', 5), pod('y', 9)),
    ({ list }: ReturnType<typeof scene>) => list(20, pod('x', 4)),
    ({ list }: ReturnType<typeof scene>) => list(10),
  ]) {
    const one = scene()
    one.list(10, pod('x', 5))
    run(one)
    assert.deepEqual([one.drops, told(one.news).at(-1), one.collection.objects], [['went-back'], 'gone', 0])
  }
})

test('objects that cannot be read, or take too much, end it; nothing is told after that', async () => {
  const unreadable = scene()
  unreadable.list(10, pod('x', 5))
  unreadable.event('ADDED', { metadata: { name: 'y', resourceVersion: 'eleven' } })
  unreadable.event('ADDED', pod('z', 12))
  await settled()
  assert.deepEqual([unreadable.drops, told(unreadable.news).slice(1)], [['unreadable'], ['gone']])
  const foreign = scene()
  foreign.list(10, { note: 'first', ...pod('x', 5) })
  assert.deepEqual([foreign.drops, told(foreign.news)], [['unreadable'], ['gone']])
  const large = scene(64 * 1024)
  large.list(10, pod('x', 5, 'x', 'n'.repeat(70_000)))
  await settled()
  assert.deepEqual([large.drops, told(large.news)], [['over-budget'], ['gone']])
})

test('labels of which each thread keeps more than their JSON count as that', async () => {
  const labels = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`l${at}`, '']))
  const labelled = (name: string, version: number): object => {
    return { metadata: { name, namespace: 'a', uid: name, resourceVersion: String(version), labels } }
  }
  const few = scene(4 * 1024 * 1024)
  few.list(10, labelled('x', 1))
  for (let version = 11; version < 200; version++) {
    few.event('MODIFIED', labelled('x', version))
    await settled()
  }
  assert.deepEqual(few.drops, [])
  const many = scene(4 * 1024 * 1024)
  many.list(100, ...Array.from({ length: 70 }, (_, at) => labelled(`x${at}`, at + 1)))
  assert.deepEqual(many.drops, ['over-budget'])
})

test('the first bookmark is the template of all, unless it is large', () => {
  const { list, rawBookmark, news, collection } = scene()
  list(10, pod('x', 5))
  const metadata = { resourceVersion: '11' }
  rawBookmark({ kind: 'Pod', apiVersion: 'v1', metadata, spec: { note: 'n'.repeat(MAX_BOOKMARK_BYTES) } })
  rawBookmark({ kind: 'Pod', apiVersion: 'v1', metadata, spec: {} })
  rawBookmark({ kind: 'Pod', apiVersion: 'v1', metadata })
  collection.tellAll()
  const reset = news.at(-1)
  assert.ok(reset?.type === 'reset')
  assert.equal(
    String(Buffer.from(reset.bookmark ?? [])),
    '{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"11"},"spec":{}}',
  )
})

test('versions that are not numbers, or have more digits than any that Kubernetes allows, are not kept', async () => {
  const long = '9'.repeat(40)
  for (const run of [
    ({ list }: ReturnType<typeof scene>) => list(long, pod('x', 5)),
    ({ list }: ReturnType<typeof scene>) => list(20, pod('x', long)),
    ({ event }: ReturnType<typeof scene>) => event('MODIFIED', pod('x', long)),
    ({ bookmark }: ReturnType<typeof scene>) => bookmark(long),
    ({ bookmark }: ReturnType<typeof scene>) => bookmark('abc'),
  ]) {
    const one = scene()
    one.list(10, pod('x', 5))
    run(one)
    await settled()
    assert.deepEqual([one.drops, told(one.news).slice(1)], [['unreadable'], ['gone']])
  }
})

test('a list of another kind, version or form than the one before begins it again', () => {
  const items = [{ kind: 'Pod', apiVersion: 'v1', ...pod('x', 5) }]
  const metadata = { resourceVersion: '20' }
  for (const changed of [
    { apiVersion: 'v1', items, kind: 'PodList', metadata },
    { kind: 'PodList', apiVersion: 'v2', metadata, items },
    { kind: 'List', apiVersion: 'v1', metadata, items },
  ]) {
    const { list, page, drops, news, collection } = scene()
    list(10, pod('x', 5))
    page(changed, 20)
    collection.tellAll()
    assert.deepEqual([drops, told(news).at(-1)], [['unreadable'], 'gone'])
  }
})

test('threads that begin later are told all, and where they are', async () => {
  const { list, event, news, collection } = scene()
  collection.tellAll()
  assert.equal(news.length, 0)
  list(10, pod('x', 5))
  event('ADDED', pod('y', 11))
  collection.tellAll()
  const [, update, reset] = news
  assert.deepEqual([update?.type, reset?.type], ['update', 'reset'])
  assert.deepEqual(told(news.slice(2)), ['reset Pod x@5, Pod y@11 until 11'])
  await settled()
})

test('memory of what is replaced comes back, and threads are told where the rest went', async () => {
  const { list, event, news, collection } = scene()
  const note = 'n'.repeat(10_000)
  const names = Array.from({ length: 200 }, (_, at) => `p${at}`)
  list(1000, ...names.map((name, at) => pod(name, at + 1, name, note)))
  let version = 1000
  for (let round = 0; round < 20; round++) {
    for (const name of names.slice(0, 150)) event('MODIFIED', pod(name, ++version, name, note))
    await settled()
  }
  assert.ok(collection.bytes < 3 * 200 * 11_000, `${collection.bytes} bytes`)
  assert.ok(news.some((one) => one.type === 'update' && one.moved.length > 0))
  assert.ok(news.some((one) => one.type === 'update' && one.dropped.length > 0))
})

test('a version is reached, also by word of another watch', async () => {
  const { list, event, collection } = scene()
  list(10, pod('x', 5))
  assert.equal(await collection.reaches('10', 0), true)
  assert.equal(await collection.reaches('11', 0), false)
  const reached = collection.reaches('12', 10_000)
  event('MODIFIED', pod('x', 12))
  assert.equal(await reached, true)
  collection.advance('40')
  assert.equal(collection.version, '40')
  await waitFor('it is reached', () => collection.reaches('40', 0))
})

test('whether a list has the objects that are known; threads know of them then', () => {
  const { collection, list, event, news } = scene()
  const listed = (name: string, version: number, uid = name) => ({
    namespace: 'a',
    name,
    uid,
    resourceVersion: String(version),
  })
  assert.equal(collection.holds([]), false, 'nothing is known')
  list(10, pod('x', 5), pod('y', 6))
  assert.equal(collection.holds([listed('y', 6), listed('x', 5)]), true)
  for (const other of [
    [listed('x', 5)],
    [listed('x', 5), listed('y', 7)],
    [listed('x', 5), listed('y', 6, 'z')],
    [listed('x', 5), listed('x', 5)],
    [listed('x', 5), listed('y', 6), listed('z', 7)],
  ])
    assert.equal(collection.holds(other), false)
  assert.equal(news.length, 1)
  event('MODIFIED', pod('x', 12))
  assert.equal(collection.holds([listed('x', 12), listed('y', 6)]), true)
  assert.deepEqual(told(news), ['reset Pod x@5, Pod y@6 until 10', 'MODIFIED Pod x@12', 'until 12'])
})

test('threads are told of warnings, once until they change', async () => {
  const { collection, list, news } = scene()
  const warnings = (): unknown[] => news.map((one) => ('warnings' in one ? one.warnings : one.type))
  collection.warned(['299 - "old"'])
  list(10, pod('x', 5))
  assert.deepEqual(warnings(), [['299 - "old"']])
  collection.warned(['299 - "old"'])
  collection.warned([])
  await waitFor('the news', () => news.length > 1)
  assert.deepEqual(warnings().at(-1), [])
})

test('the least maxBytes keeps a MiB of objects, however often they change', async () => {
  const { collection, list, event, drops } = scene(LEAST_CACHE_BYTES)
  const note = 'n'.repeat(2 * 1024)
  const names = Array.from({ length: 480 }, (_, i) => `p${i}`)
  list(1_000, ...names.map((name, i) => pod(name, i + 1, name, note)))
  for (let i = 0; i < 5_000; i++) {
    event('MODIFIED', pod(names[(i * 7) % names.length] ?? '', 1_001 + i, names[(i * 7) % names.length], note))
    if (i % 50 === 0) await settled()
  }
  assert.deepEqual([drops, collection.objects], [[], names.length])
})

test('shared memory and the index of each thread are of the memory for followed objects: beyond it nothing is kept', (t) => {
  const MOST = 4 * 1024 * 1024
  limitFollowedBytes(MOST)
  t.after(() => limitFollowedBytes(0))
  const held = (): number => followedBytes().known.held
  const { collection, list, event, drops } = scene()
  list(10, pod('p0', 1, 'p0', 'x'.repeat(2000)))
  const first = held()
  assert.ok(first >= collection.bytes + THREADS * 500)
  let count = 1
  for (; drops.length === 0; count++) {
    event('ADDED', pod(`p${count}`, 10 + count, `p${count}`, 'x'.repeat(2000)))
    assert.ok(drops.length > 0 || held() >= collection.bytes + THREADS * 500 * count, `${count} objects`)
    assert.ok(held() <= MOST + MOST / 8, `${held()} bytes`)
  }
  assert.ok(count > 500, `${count} objects`)
  assert.deepEqual(drops, ['no-room'])
  assert.equal(held(), 0)
})

test('what is deleted is given back, and a list that is stopped, too', async (t) => {
  limitFollowedBytes(64 * 1024 * 1024)
  t.after(() => limitFollowedBytes(0))
  const held = (): number => followedBytes().known.held
  const { collection, list, event } = scene()
  const names = Array.from({ length: 1000 }, (_, at) => `p${at}`)
  list(10, ...names.map((name, at) => pod(name, at + 1, name, 'x'.repeat(2000))))
  const all = held()
  for (const [at, name] of names.entries()) event('DELETED', pod(name, 2000 + at))
  await waitFor('the threads to be told', () => held() < all)
  assert.ok(held() < all / 2, `${held()} of ${all} bytes`)
  await collection.stop()
  list(5000, pod('late', 4999))
  assert.equal(held(), 0)
})

const rooms = (news: readonly CollectionNews[]): readonly number[] =>
  news.flatMap((one) => (one.type === 'room' ? [one.bytes] : []))

test('threads get room for compressed lists, which counts as memory of the collection, and lose it when it is not wanted', async (t) => {
  limitFollowedBytes(64 * 1024 * 1024)
  t.after(() => limitFollowedBytes(0))
  const held = (): number => followedBytes().known.held
  const { collection, list, news, event } = scene()
  const ROOM = 1024 * 1024
  collection.wantRoom(ROOM)
  assert.deepEqual(rooms(news), [], 'there is nothing yet that could be compressed')
  list(10, pod('x', 5))
  const before = [collection.bytes, held()] as const
  collection.wantRoom(ROOM)
  assert.deepEqual(rooms(news), [ROOM])
  assert.equal(collection.bytes, before[0] + THREADS * ROOM)
  assert.ok(held() >= before[1] + THREADS * ROOM - 64 * 1024)
  collection.tellAll()
  assert.deepEqual(rooms(news), [ROOM, ROOM], 'a thread that begins knows of it')
  collection.wantRoom(ROOM / 2)
  event('MODIFIED', pod('x', 11))
  await settled()
  assert.deepEqual(rooms(news), [ROOM, ROOM], 'another thread wants more')
  collection.tick(systemClock.monotonic() + ROOM_IDLE_MS)
  assert.deepEqual(rooms(news), [ROOM, ROOM, 0])
  assert.ok(collection.bytes === before[0] && held() <= before[1] + 2 * 64 * 1024)
  collection.wantRoom(ROOM)
  await collection.stop()
  assert.equal(held(), 0)
})

test('objects take the room of compressed lists before they are too many', async (t) => {
  limitFollowedBytes(16 * 1024 * 1024)
  t.after(() => limitFollowedBytes(0))
  for (const maxBytes of [LEAST_CACHE_BYTES, MUCH]) {
    const { collection, list, event, news, drops } = scene(maxBytes)
    list(10, pod('x', 5))
    collection.wantRoom(MUCH)
    const [first = 0] = rooms(news)
    assert.ok(first > 0 && first < maxBytes, `${first} bytes`)
    for (let at = 0; drops.length === 0; at++) {
      event('ADDED', pod(`p${at}`, 11 + at, `p${at}`, 'x'.repeat(2000)))
      const room = rooms(news).at(-1) ?? 0
      assert.ok(drops.length > 0 || collection.bytes - THREADS * room + room <= maxBytes, `at ${at}: ${room} bytes`)
    }
    // A segment is begun as a whole.
    assert.ok((rooms(news).at(-1) ?? first) < Math.min(first, 1024 * 1024))
    await collection.stop()
  }
})

test('objects of one collection take the room of another one', async (t) => {
  limitFollowedBytes(8 * 1024 * 1024)
  t.after(() => limitFollowedBytes(0))
  const [one, other] = [scene(), scene()]
  one.list(10, pod('x', 5))
  one.collection.wantRoom(MUCH)
  assert.ok((rooms(one.news)[0] ?? 0) > 1024 * 1024)
  other.list(10, pod('x', 5))
  for (let at = 0; rooms(one.news).at(-1) !== 0; at++) {
    other.event('ADDED', pod(`p${at}`, 11 + at, `p${at}`, 'x'.repeat(2000)))
    assert.deepEqual(other.drops, [])
  }
  await Promise.all([one, other].map(({ collection }) => collection.stop()))
})
