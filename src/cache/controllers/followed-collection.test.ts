import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import type { FollowChoice, FollowEvents } from '../../kube/api/object-client.ts'
import type { CollectionNews, ObjectRecord } from '../core/changes/collection.ts'
import { FollowedCollection, MAX_BOOKMARK_BYTES } from './followed-collection.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '' }
const MUCH = 10 * 1024 * 1024

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
    { maxBytes },
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
      clock: systemClock,
      log: SILENT,
    },
  )
  const keep = (bytes: Buffer): JsonObject => choice.transform?.({}, bytes) ?? assert.fail()
  const page = (list: object, version: number | string): void => {
    const kept = (choice.raw?.itemsOf(Buffer.from(JSON.stringify(list))) ?? []).map(keep)
    events?.onPage?.(kept, true)
    events?.onReplace(kept)
    events?.onVersion?.(String(version))
  }
  return {
    collection,
    news,
    drops,
    page,
    list(version: number | string, ...pods: readonly object[]): void {
      const metadata = { resourceVersion: String(version) }
      page({ kind: 'PodList', apiVersion: 'v1', metadata, items: pods }, version)
    },
    event(type: 'ADDED' | 'MODIFIED' | 'DELETED', one: object): void {
      const object = { kind: 'Pod', apiVersion: 'v1', ...one }
      const kept = keep(choice.raw?.objectOf(Buffer.from(JSON.stringify({ type, object }))) ?? Buffer.of())
      events?.onChange(type, kept)
      events?.onVersion?.(String(Object(Object(one).metadata).resourceVersion))
    },
    rawBookmark: (object: object): void =>
      choice.raw?.onBookmark(Buffer.from(JSON.stringify({ type: 'BOOKMARK', object }))),
    bookmark: (version: number | string): void => events?.onVersion?.(String(version)),
    state: (followed: boolean): void => events?.onState(followed, ''),
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
    'ADDED Pod w@21',
    'MODIFIED Pod x@22',
    'DELETED Pod y@30',
    'until 30',
  ])
  assert.deepEqual([collection.objects, collection.version], [3, '30'])
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
