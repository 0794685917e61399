import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { mock, test } from 'node:test'
import zlib, { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { waitFor } from '../../../test/harness/wait.ts'
import { type AnswerForm, answerForm } from '../core/bytes/answer-form.ts'
import { FactsReader } from '../core/bytes/object-facts.ts'
import type { CollectionChange, CollectionReset, CollectionUpdate, ObjectRecord } from '../core/changes/collection.ts'
import { selectableFields } from '../core/fields/selectable-fields.ts'
import { GzipSource } from '../io/gzip-source.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import { CachedCollections } from '../state/cached-collections.ts'
import { LIST_IDLE_MS } from '../state/compressed-lists.ts'
import { Pieces } from './pieces.ts'
import { LARGEST_SHARED_BYTES, MOST_MADE, SharedParts, sharedList } from './shared-parts.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '', encoding: 'json' as const }
const READER = new FactsReader(selectableFields({ ...ID, namespaced: true }).kept)
const JSON_FORM = answerForm('declared', { encoding: 'json', partial: false }) ?? assert.fail()
const PARTIAL = answerForm('declared', { encoding: 'json', partial: true }) ?? assert.fail()
const MUCH = 64 * 1024 * 1024
const NAMESPACES = ['a', 'b', 'c']

interface Pod {
  readonly namespace: string
  readonly name: string
  readonly bytes: number
}

let segments = 0

function record({ namespace, name, bytes }: Pod, version: number): [ObjectRecord, CollectionReset['segments'][0]] {
  // Not the same byte all over: what is compressed should have some length.
  const note = Array.from({ length: bytes / 8 }, (_, at) => ((at * 7919 * version) % 1e8).toString(36)).join(' ')
  const metadata = { name, namespace, uid: name, resourceVersion: String(version), annotations: { note } }
  const json = Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata }))
  const memory = new SharedArrayBuffer(json.length)
  Buffer.from(memory).set(json)
  const id = ++segments
  return [
    { facts: READER.read(json), segment: id, offset: 0, length: json.length },
    { id, memory },
  ]
}

/** A collection of so many pods, which may keep so much compressed. */
function world(pods: readonly Pod[], room = MUCH) {
  let nowMs = 0
  let version = 1
  let number = 0
  const asked: number[] = []
  const collections = new CachedCollections(
    { now: () => nowMs, monotonic: () => nowMs },
    () => Promise.resolve(undefined),
    () => assert.fail('a message was missed'),
    () => undefined,
    ({ bytes }) => asked.push(bytes),
  )
  const all = pods.map((pod) => record(pod, ++version))
  const reset: CollectionReset = {
    type: 'reset',
    collection: ID,
    epoch: 1,
    number,
    list: { kind: 'PodList', apiVersion: 'v1' },
    form: 'declared',
    resourceVersion: String(version),
    bookmark: undefined,
    segments: all.map(([, segment]) => segment),
    objects: all.map(([one]) => one),
    followed: true,
    warnings: [],
  }
  collections.apply(reset)
  const allow = (bytes: number): void => collections.apply({ type: 'room', collection: ID, epoch: 1, bytes })
  allow(room)
  const collection = (): CachedCollection => collections.get(ID) ?? assert.fail()
  return {
    collections,
    collection,
    asked,
    allow,
    later: (ms: number) => {
      nowMs += ms
    },
    change(type: CollectionChange['type'], pod: Pod): void {
      const [object, segment] = record(pod, ++version)
      const update: CollectionUpdate = {
        ...{ type: 'update', collection: ID, epoch: 1, number: ++number, resourceVersion: String(version) },
        ...{ changes: [{ type, object }], moved: [], segments: [segment], dropped: [], bookmark: undefined },
        ...{ followed: true, warnings: [], afterGap: false },
      }
      collections.apply(update)
    },
    ask: (form: AnswerForm = JSON_FORM, namespace = '') => new Client(collections, form, namespace, nowMs),
  }
}

/** A client that gets a list. It takes all that there is, unless it is slow. */
class Client {
  readonly plain: Buffer
  readonly #chunks: Buffer[] = []
  readonly #source: GzipSource | undefined
  isSlow = false
  ended = false
  dropped = false

  constructor(collections: CachedCollections, form: AnswerForm, namespace: string, nowMs: number) {
    const collection = collections.get(ID) ?? assert.fail()
    const { objects: sorted, from, to } = collection.range(namespace)
    const objects = sorted.slice(from, to)
    const { length = 0, parts, items } = form.list(collection.list, collection.version, objects) ?? assert.fail()
    const reader = parts()
    const pieces = new Pieces()
    const plain: Buffer[] = []
    for (let next = pieces.next(reader); next !== undefined; next = pieces.next(reader)) plain.push(Buffer.from(next))
    this.plain = Buffer.concat(plain)
    assert.equal(this.plain.length, length)
    const of = { objects, items: items ?? assert.fail(), length }
    const list = sharedList(collections, { collection, form }, namespace, of, nowMs)
    if (list === undefined) return
    this.#source = new GzipSource(new SharedParts(list), () => undefined)
    this.#source.attach({
      proceed: () => this.proceed(),
      drop: () => {
        this.dropped = true
      },
    })
  }

  get isShared(): boolean {
    return this.#source !== undefined
  }

  get taken(): number {
    return this.#chunks.length
  }

  proceed(most = this.isSlow ? 0 : Number.POSITIVE_INFINITY): void {
    for (let taken = 0; taken < most && !this.ended; taken++) {
      const next = this.#source?.next()
      if (next === undefined) return
      if (next === 'end') {
        this.ended = true
        this.leave()
      } else this.#chunks.push(next)
    }
  }

  leave(): void {
    this.#source?.over()
  }

  /** What it gets is what it would get uncompressed. */
  async takeAll(): Promise<void> {
    this.isSlow = false
    this.proceed()
    await waitFor('the end of a list', () => this.ended)
    assert.ok(gunzipSync(Buffer.concat(this.#chunks)).equals(this.plain))
  }
}

function pods(count: number, bytes = 4000): readonly Pod[] {
  return Array.from({ length: count }, (_, at) => ({
    namespace: NAMESPACES[at % NAMESPACES.length] ?? '',
    name: `p${String(at).padStart(4, '0')}`,
    bytes,
  }))
}

const deflateRaw = mock.method(zlib, 'deflateRaw')
syncBuiltinESMExports()

/** How many parts are compressed until this is done. */
async function deflated(during: () => Promise<unknown>): Promise<number> {
  const before = deflateRaw.mock.callCount()
  await during()
  return deflateRaw.mock.callCount() - before
}

test('decompressed, each client gets what it would get as it is, whatever changes while it reads', async () => {
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('ask'),
        namespace: fc.constantFrom('', 'a', 'b'),
        partial: fc.boolean(),
        slow: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('change', 'add', 'add in front', 'delete'),
        at: fc.nat(200),
        bytes: fc.constantFrom(8, 4000, 60_000, 150_000),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('turn') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('take'), at: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave'), at: fc.nat(20) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('room'), bytes: fc.constantFrom(0, 20_000, 200_000, MUCH) }),
    },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const there = [...pods(60)]
      const { change, ask, allow, collection } = world(there)
      const clients: Client[] = []
      let added = 0
      let room = MUCH
      for (const one of steps) {
        if ('namespace' in one) {
          const client = ask(one.partial ? PARTIAL : JSON_FORM, one.namespace)
          client.isSlow = one.slow
          client.proceed()
          clients.push(client)
        } else if (one.kind === 'room' && 'bytes' in one) {
          room = one.bytes
          allow(room)
        } else if (one.kind === 'turn') await new Promise((resolve) => setImmediate(resolve))
        else if ('bytes' in one) {
          const place = 'at' in one ? one.at % Math.max(1, there.length) : 0
          const known = there[place]
          // Digits are in front of letters.
          const name = one.kind === 'add' ? `${known?.name ?? 'p'}-${added++}` : `${1000 - added++}`
          if (one.kind === 'add' || one.kind === 'add in front') {
            const pod = { namespace: known?.namespace ?? 'a', name, bytes: one.bytes }
            there.push(pod)
            change('ADDED', pod)
          } else if (known !== undefined && one.kind === 'delete') {
            there.splice(place, 1)
            change('DELETED', known)
          } else if (known !== undefined) change('MODIFIED', { ...known, bytes: one.bytes })
        } else if ('at' in one) {
          const client = clients[one.at % Math.max(1, clients.length)]
          if (client === undefined) continue
          if (one.kind === 'take') client.proceed(3)
          else {
            client.leave()
            clients.splice(clients.indexOf(client), 1)
          }
        }
      }
      for (const client of clients) await client.takeAll()
      const { bytes } = collection().compressed
      assert.ok(bytes >= 0 && bytes <= room, `${bytes} of ${room} bytes`)
      allow(0)
      assert.equal(collection().compressed.bytes, 0)
    }),
    { numRuns: 40 },
  )
})

test('clients of the same list share what is compressed, one after the other and at the same time', async () => {
  const { ask } = world(pods(300))
  const first = await deflated(() => ask().takeAll())
  assert.ok(first > 8, `${first} parts`)
  const later = async (): Promise<void> => void (await Promise.all(Array.from({ length: 50 }, () => ask().takeAll())))
  assert.equal(await deflated(later), 0)
  const other = world(pods(300))
  const together = async (): Promise<void> =>
    void (await Promise.all(Array.from({ length: 50 }, () => other.ask().takeAll())))
  assert.equal(await deflated(together), first)
})

test('a change makes one part void', async () => {
  const there = pods(300)
  const { ask, change } = world(there)
  const whole = await deflated(() => ask().takeAll())
  for (const [type, pod] of [
    ['MODIFIED', there[150]],
    ['DELETED', there[151]],
    ['ADDED', { namespace: 'b', name: 'p0152-new', bytes: 4000 }],
  ] as const) {
    change(type, pod ?? assert.fail())
    assert.equal(await deflated(() => ask().takeAll()), 1, type)
  }
  assert.ok(whole > 8)
})

test('the first object of a list becomes the second, and another one the first', async () => {
  const there = pods(100).map((pod) => ({ ...pod, namespace: 'a' }))
  const { ask, change } = world(there)
  await ask().takeAll()
  // It is a part by itself.
  const first = { namespace: 'a', name: '0', bytes: 150_000 }
  change('ADDED', first)
  await ask().takeAll()
  change('DELETED', first)
  await ask().takeAll()
  for (const pod of there.splice(0, 70)) {
    change('DELETED', pod)
    await ask().takeAll()
  }
})

test('parts stay about as long as they were, however much changes', async () => {
  const there = pods(300)
  const { ask, change } = world(there)
  const whole = await deflated(() => ask().takeAll())
  let parts = 0
  for (let at = 0; at < 300; at += 7) {
    change('MODIFIED', there[(at * 31) % 300] ?? assert.fail())
    change('ADDED', { namespace: 'b', name: `p${at}-new`, bytes: 100 })
    const client = ask()
    await client.takeAll()
    parts = client.taken
  }
  assert.ok(parts < 2 * whole, `${parts} for ${whole}`)
})

test('without room each client has its own, and all get their list', async () => {
  const { ask, collection, allow } = world(pods(100), 0)
  const one = await deflated(() => ask().takeAll())
  assert.equal(await deflated(() => ask().takeAll()), one)
  assert.equal(collection().compressed.bytes, 0)
  allow(MUCH)
  assert.equal(await deflated(() => ask().takeAll()), one)
  assert.equal(await deflated(() => ask().takeAll()), 0)
})

test('less room drops the list that was used longest ago', async () => {
  const { ask, collection, allow, later } = world(pods(300))
  await ask(JSON_FORM, 'a').takeAll()
  const one = collection().compressed.bytes
  later(1000)
  await ask(JSON_FORM, 'b').takeAll()
  const room = collection().compressed.bytes - 1
  allow(room)
  assert.ok(collection().compressed.bytes <= room)
  assert.ok(collection().compressed.bytes > one / 2)
  assert.equal(await deflated(() => ask(JSON_FORM, 'b').takeAll()), 0)
  assert.notEqual(await deflated(() => ask(JSON_FORM, 'a').takeAll()), 0)
})

test('a list that no client has asked for in a while gives way to another one', async () => {
  const { ask, collection, allow, later } = world(pods(300))
  await ask(JSON_FORM, 'a').takeAll()
  allow(collection().compressed.bytes + 1)
  await ask(JSON_FORM, 'b').takeAll()
  assert.equal(await deflated(() => ask(JSON_FORM, 'a').takeAll()), 0)
  assert.notEqual(await deflated(() => ask(JSON_FORM, 'b').takeAll()), 0)
  later(LIST_IDLE_MS)
  await ask(JSON_FORM, 'b').takeAll()
  assert.equal(await deflated(() => ask(JSON_FORM, 'b').takeAll()), 0)
})

test('the main thread is asked for room, for more when there is more, and once a minute', async () => {
  const { ask, asked, change, later } = world(pods(300), 0)
  // The second time it is known what it is compressed to.
  for (let at = 0; at < 2; at++) await ask().takeAll()
  const first = asked.length
  await ask().takeAll()
  assert.equal(asked.length, first)
  later(60_000)
  await ask().takeAll()
  assert.equal(asked.length, first + 1)
  for (let at = 0; at < 20; at++) change('ADDED', { namespace: 'a', name: `large-${at}`, bytes: 200_000 })
  await ask().takeAll()
  assert.equal(asked.length, first + 2)
  assert.ok((asked[first + 1] ?? 0) > (asked[first] ?? 0))
})

test('a list with a very large object is not shared', () => {
  const { ask, change } = world(pods(10))
  assert.ok(ask().isShared)
  change('ADDED', { namespace: 'a', name: 'large', bytes: 2 * LARGEST_SHARED_BYTES })
  assert.deepEqual([ask().isShared, ask(JSON_FORM, 'b').isShared], [false, true])
})

test('so many parts are made at once, and no more; a client that goes holds up no other', async () => {
  const { ask, change } = world(pods(100), 0)
  const clients = Array.from({ length: 2 * MOST_MADE }, (_, at) => {
    // Each has another version of the first object: nothing is the same for two of them.
    change('MODIFIED', { namespace: 'a', name: 'p0000', bytes: 100 + at })
    return ask()
  })
  const before = deflateRaw.mock.callCount()
  for (const client of clients) client.proceed()
  assert.equal(deflateRaw.mock.callCount() - before, MOST_MADE)
  for (const client of clients.slice(0, MOST_MADE + 1)) client.leave()
  for (const client of clients.slice(MOST_MADE + 1)) await client.takeAll()
})

test('a client that reads when the collection is dropped gets the rest of its list', async () => {
  const { ask, collections, collection } = world(pods(100))
  const [slow, fast] = [ask(), ask()]
  slow.isSlow = true
  slow.proceed(3)
  fast.proceed()
  const kept = collection().compressed
  collections.apply({ type: 'gone', collection: ID })
  await fast.takeAll()
  await slow.takeAll()
  assert.equal(kept.bytes, 0)
})

test('what is made of objects that have changed meanwhile is not kept', async () => {
  const there = pods(100)
  const { ask, change, collection } = world(there)
  const old = ask()
  old.proceed()
  for (const pod of there) change('MODIFIED', pod)
  await old.takeAll()
  assert.equal(collection().compressed.bytes, 0)
  assert.notEqual(await deflated(() => ask().takeAll()), 0)
})
