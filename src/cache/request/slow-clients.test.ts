// What clients cost that take their answers slowly, or not at all, and answers that take long to make.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gunzipSync } from 'node:zlib'
import { waitFor } from '../../../test/harness/wait.ts'
import type { RequestRecord } from '../../gateway/api/request-record.ts'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Decision, Permit } from '../../gateway/request/exchange/decision.ts'
import { Exchange } from '../../gateway/request/exchange/exchange.ts'
import type { Gateway } from '../../gateway/request/exchange/gateway.ts'
import { ThreadShares } from '../../gateway/state/thread-shares.ts'
import { ANSWER_WATER_BYTES, type HeaderList, type Peer, type QueueMeter, type Stream } from '../../kit/api/stream.ts'
import { addressCharge } from '../../kit/core/shares/charge.ts'
import { FactsReader } from '../core/bytes/object-facts.ts'
import type { CollectionReset, CollectionUpdate } from '../core/changes/collection.ts'
import { selectableFields } from '../core/fields/selectable-fields.ts'
import { GZIP_BYTES } from '../io/gzip-source.ts'
import { CachedCollections } from '../state/cached-collections.ts'

import { CachedChange } from '../state/history.ts'
import { HISTORY_MS } from '../state/recent-changes.ts'

import { DELIVERY_MS, deliveryMs } from './delivery-limits.ts'
import { OpenWatches, RECHECK_MS } from './open-watches.ts'
import { PIECE_BYTES } from './pieces.ts'
import { ReadCacheFilter } from './read-cache.ts'
import { STALLED_MS } from './watch-answer.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '', encoding: 'json' as const }
const READER = new FactsReader(selectableFields({ ...ID, namespaced: true }).kept)
const COUNT = 1000
const NOTE = 'n'.repeat(1000)

const LARGE = 'n'.repeat(1024 * 1024)
setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

function pods(note = NOTE): CollectionReset {
  const texts = Array.from({ length: COUNT }, (_, at) => {
    const metadata = {
      name: `p${at}`,
      namespace: 'a',
      uid: `${at}`,
      resourceVersion: String(at + 1),
      annotations: { note },
    }
    return Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata }))
  })
  const memory = new SharedArrayBuffer(texts.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  const objects = texts.map((text) => {
    Buffer.from(memory).set(text, offset)
    offset += text.length
    return { facts: READER.read(text), segment: 1, offset: offset - text.length, length: text.length }
  })
  return {
    type: 'reset',
    collection: ID,
    epoch: 1,
    number: 0,
    list: { kind: 'PodList', apiVersion: 'v1' },
    form: 'declared',
    resourceVersion: String(COUNT),
    bookmark: undefined,
    segments: [{ id: 1, memory }],
    objects,
    followed: true,
    warnings: [],
  }
}

/** One pod is changed. */
function change({ objects }: CollectionReset, note: string): CollectionUpdate {
  const [{ facts } = assert.fail()] = objects
  const { name, namespace, uid } = facts
  const metadata = { name, namespace, uid, resourceVersion: String(COUNT + 1), annotations: { note } }
  const text = Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata }))
  const memory = new SharedArrayBuffer(text.length)
  Buffer.from(memory).set(text)
  return {
    type: 'update',
    collection: ID,
    epoch: 1,
    number: 1,
    resourceVersion: String(COUNT + 1),
    changes: [{ type: 'MODIFIED', object: { facts: READER.read(text), segment: 2, offset: 0, length: text.length } }],
    moved: [],
    segments: [{ id: 2, memory }],
    dropped: [],
    bookmark: undefined,
    followed: true,
    warnings: [],
    afterGap: false,
  }
}

/** A client that takes nothing until it is told. */
class SlowClient implements Stream {
  queued = 0
  meter: QueueMeter | undefined
  text = ''
  readonly chunks: Buffer[] = []
  ended = false
  wasReset = false
  headers(): void {}
  body(chunk: Buffer, end: boolean): void {
    this.queue(this.queued + chunk.length)
    this.text += chunk.toString()
    this.chunks.push(Buffer.from(chunk))
    this.ended ||= end
  }
  trailers(): void {}
  credit(): void {}
  reset(): void {
    this.wasReset = true
    this.queue(0)
  }
  queue(bytes: number): void {
    this.queued = bytes
    this.meter?.onQueued(bytes)
  }
}

interface Asked {
  readonly accept?: string
  /** What the review says. */
  readonly right?: string
  readonly form?: 'declared' | 'sorted'
  /** The annotation that each pod has. */
  readonly note?: string
  readonly acceptEncoding?: string
}

/** @param maxBufferedBytes 0 = unlimited */
async function ask(
  target: string,
  maxBufferedBytes = 0,
  last = '',
  { accept = 'application/json', right = 'allowed', form = 'declared', note = NOTE, acceptEncoding = '' }: Asked = {},
) {
  let nowMs = 0
  const wanted: string[] = []
  const clock = { now: () => nowMs, monotonic: () => nowMs }
  const collections = new CachedCollections(
    { ...clock },
    () => Promise.resolve(undefined),
    () => undefined,
    ({ encoding }) => wanted.push(encoding),
    () => undefined,
  )
  const all = pods(note)
  collections.apply({ ...all, form })
  if (last !== '') collections.apply(change(all, last))
  let isBusy = false
  const watches = new OpenWatches(clock.monotonic, () => isBusy)
  const counted: string[] = []
  const filter = new ReadCacheFilter({
    collections,
    watches,
    counted: (_of, result) => counted.push(result),
  })
  let said = right
  const shares = new ThreadShares({ maxRequestsInflight: 0, maxWatches: 0, maxBufferedBytes, threads: 1 })
  const nothing = (): void => undefined
  const ended: RequestRecord[] = []
  const gw = {
    clock,
    shares,
    uuid: () => 'id',
    random: () => 0,
    events: { requestEnded: (record: RequestRecord) => ended.push(record), responseStarted: nothing, limited: nothing },
    budgets: { cancelledRequests: { spend: nothing }, cancelledLongRunning: { spend: nothing } },
    running: { add: nothing, remove: nothing },
    access: { review: async () => ({ kind: said }) },
  } as unknown as Gateway
  const head: HeaderList = [':method', 'GET', ':path', target, ':authority', 'c', ':scheme', 'https', 'accept', accept]
  head.push('accept-encoding', acceptEncoding)
  const peer = { protocol: 'h2', remoteAddress: '192.0.2.1', addressCharge: addressCharge('192.0.2.1') }
  const client = new SlowClient()
  const exchange = new Exchange(gw, peer as unknown as Peer, client, head, true, undefined)
  exchange.target = target
  const info = parseRequestInfo('GET', target)
  assert.ok(!('failure' in info))
  const cluster = {
    name: 'c',
    cache: [{ ...ID, namespaces: [''], encodings: ['json', 'protobuf'], maxBytes: 1e9, maxStalenessMs: 1000 }],
  }
  const decision = {
    exchange,
    info,
    cluster,
    live: { compiled: cluster, identityEpoch: 0 },
    caller: { user: { name: 'alice', uid: '', groups: [], extra: {} } },
    isUpgrade: false,
    userAgent: '',
    isWatch: info.verb === 'watch',
    warnings: [],
    deliver: undefined,
  } as unknown as Decision
  await filter.check(decision)
  return {
    collections,
    wanted,
    exchange,
    client,
    counted,
    ended,
    held: () => shares.buffered.of(exchange.charge).held,
    deliver: async () => void (await decision.deliver?.(decision as unknown as Permit)),
    /** The client takes what waits for it. */
    take(): void {
      client.queue(0)
      exchange.onDrained()
    },
    deny(): void {
      said = 'denied'
    },
    /** @param busy whether the thread was, all the time */
    later(ms: number, busy = false): void {
      nowMs += ms
      isBusy = busy
      watches.tick()
    },
  }
}

const LIST = '/api/v1/pods?resourceVersion=0'
/** Answered with nothing, after all objects were looked at. */
const SELECTIVE = `${LIST}&labelSelector=a%3Db`
const WATCH = '/api/v1/pods?watch=1&resourceVersion=0'
const MUCH = 1024 * 1024
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

test('the time that it takes to find objects is charged to the caller, whatever comes of it', async (t) => {
  const charge = t.mock.method(threadScheduler, 'charge')
  for (const target of [SELECTIVE, `${WATCH}&labelSelector=a%3Db`]) {
    const before = charge.mock.callCount()
    const { exchange } = await ask(target)
    const charged = charge.mock.calls.slice(before).map(({ arguments: [account] }) => account)
    assert.deepEqual(charged, [threadScheduler.accountOf(exchange.charge, performance.now())])
  }
})

test('Protobuf is followed for those that may read it, and a review has to say so before', async () => {
  const read = async (right: string): Promise<readonly string[][]> => {
    const { wanted, counted } = await ask(LIST, 0, '', { accept: PROTOBUF, right })
    await new Promise((resolve) => setImmediate(resolve))
    return [wanted, counted]
  }
  assert.deepEqual(await read('denied'), [[], ['unavailable']])
  assert.deepEqual(await read('unavailable'), [[], ['unavailable']])
  assert.deepEqual(await read('allowed'), [['protobuf'], ['unavailable']])
})

test('changes that a watch does not select are looked at in slices, and charged to the caller', async (t) => {
  const CHANGES = 1000
  const looks = t.mock.method(CachedChange.prototype, 'eventFor')
  const charge = t.mock.method(threadScheduler, 'chargeAnswer')
  const target = `/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion=${COUNT}&labelSelector=a%3Db`
  const { collections, exchange, client, deliver, later } = await ask(target, MUCH)
  const { changes, ...update } = change(pods(), 'x')
  for (let at = 0; at < CHANGES; at++) {
    const resourceVersion = String(COUNT + 1 + at)
    const changed = changes.map(({ type, object }) => {
      return { type, object: { ...object, facts: { ...object.facts, resourceVersion } } }
    })
    collections.apply({ ...update, number: 1 + at, resourceVersion, changes: changed })
  }
  await deliver()
  assert.ok(looks.mock.callCount() < CHANGES / 10, `${looks.mock.callCount()} in one turn`)
  later(61_000)
  assert.equal(client.text, '', 'a bookmark says that everything before it was sent')
  while (client.text === '') await new Promise((resolve) => setImmediate(resolve))
  assert.equal(looks.mock.callCount(), CHANGES)
  assert.equal(JSON.parse(client.text).object.metadata.resourceVersion, String(COUNT + CHANGES))
  const charged = charge.mock.calls.filter(({ arguments: [to] }) => to === exchange.charge)
  assert.ok(charged.length > 10, `${charged.length} times`)
})

test('a list that its client does not take is reset', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const { exchange, client, deliver, held, ended } = await ask(LIST, MUCH)
    await deliver()
    assert.equal(exchange.phase, 'answering')
    assert.ok(held() - client.queued >= 8 * COUNT, 'the list of its objects is charged')
    mock.timers.tick(DELIVERY_MS)
    assert.equal(exchange.phase, 'answering', 'the larger it is the longer it may take')
    mock.timers.tick(deliveryMs(COUNT * 2000) - DELIVERY_MS)
    assert.deepEqual([exchange.phase, client.wasReset, held()], ['over', true, 0])
    assert.equal(ended[0]?.aborted, 'client')
  } finally {
    mock.timers.reset()
  }
})

test('a compressed list of all objects costs its caller the list of them, and its client what waits for it', async () => {
  const { exchange, client, deliver, take, held } = await ask(LIST, MUCH, '', { acceptEncoding: 'gzip' })
  await deliver()
  client.queue(ANSWER_WATER_BYTES)
  const parts = client.chunks.length
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(held() >= 8 * COUNT && held() <= 8 * COUNT + client.queued, `${held()} bytes`)
  assert.equal(client.chunks.length, parts, 'nothing more while the client takes nothing')
  await waitFor('the end', () => {
    take()
    return exchange.phase === 'over'
  })
  take()
  assert.deepEqual([client.ended, client.wasReset, held()], [true, false, 0])
  assert.equal(JSON.parse(gunzipSync(Buffer.concat(client.chunks)).toString()).items.length, COUNT)
})

test('a selection is compressed for its caller alone, and costs it what that takes', async () => {
  const target = `${LIST}&labelSelector=%21b`
  const { exchange, client, deliver, take, held } = await ask(target, 8 * MUCH, '', { acceptEncoding: 'gzip' })
  await deliver()
  assert.ok(held() >= GZIP_BYTES + 8 * COUNT, `${held()} bytes`)
  await waitFor('the end', () => {
    take()
    return exchange.phase === 'over'
  })
  take()
  assert.equal(held(), 0)
  assert.equal(JSON.parse(gunzipSync(Buffer.concat(client.chunks)).toString()).items.length, COUNT)
})

test('a list that is taken is whole', async () => {
  const { exchange, client, deliver, take, held } = await ask(LIST, MUCH)
  await deliver()
  while (exchange.phase === 'answering') take()
  take()
  assert.deepEqual([client.ended, client.wasReset, held()], [true, false, 0])
  assert.equal(JSON.parse(client.text).items.length, COUNT)
})

test('a watch whose client takes a little of the state now and then ends', async () => {
  const { exchange, client, deliver, take, later } = await ask(WATCH, MUCH)
  await deliver()
  for (let takes = 0; takes < 4; takes++) {
    later(DELIVERY_MS / 4)
    take()
  }
  assert.equal(exchange.phase, 'answering')
  later(deliveryMs(COUNT * 2000) - DELIVERY_MS)
  assert.deepEqual([exchange.phase, client.ended, client.wasReset], ['over', true, false])
  assert.ok(client.text.endsWith('}\n'), 'between two events')
})

test('a client whose state waits for a busy thread has ten times as long', async () => {
  const most = deliveryMs(COUNT * 2000)
  const { exchange, client, deliver, take, later } = await ask(WATCH, MUCH)
  await deliver()
  for (let takes = 0; takes < 40; takes++) {
    later(most / 5, true)
    take()
  }
  assert.equal(exchange.phase, 'answering')
  const stalled = await ask(WATCH, MUCH)
  await stalled.deliver()
  stalled.later(STALLED_MS * 9, true)
  assert.equal(stalled.exchange.phase, 'answering')
  stalled.later(STALLED_MS * 2, true)
  assert.deepEqual([stalled.exchange.phase, stalled.client.ended, client.ended], ['over', true, false])
})

test('the list of objects is charged to the caller until all are sent', async () => {
  const { exchange, client, deliver, take, held } = await ask(WATCH, MUCH)
  await deliver()
  assert.ok(held() - client.queued >= 8 * COUNT)
  for (let takes = 0; takes < 100; takes++) take()
  assert.deepEqual([exchange.phase, client.text.split('\n').length, held()], ['answering', COUNT + 1, 0])
})

test('without room for that it is forwarded', async () => {
  for (const target of [LIST, WATCH]) {
    const { exchange, counted, held } = await ask(target, 1024)
    assert.deepEqual([exchange.phase, counted, held()], ['deciding', ['memory'], 0])
  }
})

test('the answer to a GET is charged until it is sent, and without room for it the request is forwarded', async () => {
  const target = '/api/v1/namespaces/a/pods/p0?resourceVersion=0'
  const { exchange, client, deliver, take, held } = await ask(target, 8 * MUCH, LARGE)
  await deliver()
  assert.ok(held() - client.queued >= LARGE.length, `${held()} bytes`)
  for (let takes = 0; takes < 100; takes++) take()
  assert.deepEqual([exchange.phase, held()], ['over', 0])
  assert.deepEqual((await ask(target, MUCH / 2, LARGE)).counted, ['memory'])
})

test('the metadata of custom resources is written in Protobuf in slices, charged to the caller', async (t) => {
  const charge = t.mock.method(threadScheduler, 'charge')
  const slices = t.mock.method(threadScheduler, 'resumeSlice')
  const accept = `${PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`
  const asked: Asked = { accept, form: 'sorted', note: 'n'.repeat(800) }
  const { exchange, counted, client, deliver, take, held } = await ask(LIST, 8 * MUCH, '', asked)
  assert.deepEqual(counted, [])
  await deliver()
  for (let takes = 0; takes < 100; takes++) take()
  assert.deepEqual([exchange.phase, client.ended, held()], ['over', true, 0])
  const charged = charge.mock.calls.filter(({ arguments: [account] }) => account.source === exchange.charge.source)
  assert.ok(charged.length > 0)
  assert.ok(slices.mock.callCount() > 0)
})

test('what is not written after all is not charged for', async () => {
  const accept = `${PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`
  const { counted, held } = await ask(LIST, MUCH, '', { accept, form: 'sorted' })
  assert.deepEqual([counted, held()], [['encoding'], 0])
})

test('of a large object little waits, for each client', async () => {
  for (const target of [LIST, WATCH, `/api/v1/pods?watch=1&resourceVersion=${COUNT}`]) {
    const { exchange, client, deliver, take } = await ask(target, 8 * MUCH, LARGE)
    await deliver()
    let most = 0
    for (let takes = 0; takes < 300; takes++) {
      most = Math.max(most, client.queued)
      take()
    }
    assert.ok(most < ANSWER_WATER_BYTES + 2 * PIECE_BYTES, `${most} bytes of ${target}`)
    assert.equal(exchange.phase, target === LIST ? 'over' : 'answering')
    for (const line of client.text.trimEnd().split('\n')) assert.doesNotThrow(() => JSON.parse(line))
  }
})

test('a watch that has to end in an event ends behind it, or is reset if that is not taken', async () => {
  for (const takes of [0, 100]) {
    const { exchange, client, deliver, take, later } = await ask(
      `/api/v1/pods?watch=1&resourceVersion=${COUNT}&timeoutSeconds=10`,
      8 * MUCH,
      LARGE,
    )
    await deliver()
    later(11_000)
    assert.deepEqual([exchange.phase, client.ended], ['answering', false])
    for (let taken = 0; taken < takes; taken++) take()
    later(STALLED_MS + 1)
    assert.deepEqual([exchange.phase, client.ended, client.wasReset], ['over', takes > 0, takes === 0])
    if (takes > 0) assert.equal(JSON.parse(client.text).type, 'MODIFIED')
  }
})

test('a watch in an event that is not taken ends, if what it is of is not kept any more', async () => {
  for (const takes of [0, 100]) {
    const target = `/api/v1/pods?watch=1&resourceVersion=${COUNT}`
    const { collections, exchange, client, deliver, take, later } = await ask(target, 8 * MUCH, LARGE)
    await deliver()
    collections.apply({ type: 'gone', collection: ID })
    assert.deepEqual([exchange.phase, client.ended], ['answering', false])
    for (let taken = 0; taken < takes; taken++) take()
    later(1000)
    later(STALLED_MS + 1)
    assert.deepEqual([exchange.phase, client.ended, client.wasReset], ['over', takes > 0, takes === 0])
  }
})

test('a watch in an event that is not taken ends, if its caller may not watch any more', async () => {
  const target = `/api/v1/pods?watch=1&resourceVersion=${COUNT}`
  const { exchange, client, deliver, deny, later } = await ask(target, 8 * MUCH, LARGE)
  await deliver()
  deny()
  later(RECHECK_MS)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([exchange.phase, client.ended], ['answering', false])
  later(1000)
  later(STALLED_MS + 1)
  assert.deepEqual([exchange.phase, client.ended, client.wasReset], ['over', false, true])
})

test('what a watch began with is not kept for it any more once that is sent', async () => {
  const { collections, exchange, deliver, take, later } = await ask(WATCH, MUCH)
  await deliver()
  for (let takes = 0; takes < 100; takes++) take()
  const first = new WeakRef(collections.get(ID)?.get('a', 'p0') ?? assert.fail())
  const { changes, ...update } = change(pods(), 'x')
  collections.apply({ ...update, changes })
  await new Promise((resolve) => setImmediate(resolve))
  take()
  // The history forgets what it was before.
  later(HISTORY_MS + 1)
  collections.apply({ ...update, changes: [], segments: [], number: 2 })
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(typeof collect === 'function')
  collect()
  assert.deepEqual([exchange.phase, first.deref()], ['answering', undefined])
})

test('a client that knows a version of a gap is not told of the difference behind it: what came and went in it is not known', async () => {
  const later = String(COUNT + 10)
  for (const [version, isTold] of [
    [COUNT, true],
    [COUNT + 5, false],
    [COUNT + 10, true],
  ] as const) {
    const target = `/api/v1/pods?watch=1&resourceVersion=${version}`
    const { collections, exchange, client, deliver } = await ask(target, MUCH)
    await deliver()
    collections.apply({ ...change(pods(), 'x'), resourceVersion: later, afterGap: true })
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([exchange.phase, client.ended], isTold ? ['answering', false] : ['over', true], `from ${version}`)
    assert.equal(client.text !== '', version === COUNT)
    const { history } = collections.get(ID) ?? assert.fail()
    assert.equal(history.behind(String(version)) !== undefined, isTold)
  }
})

test('a watch that is to be drained in an event ends behind it', async () => {
  const { exchange, client, deliver, take } = await ask(
    `/api/v1/pods?watch=1&resourceVersion=${COUNT}`,
    8 * MUCH,
    LARGE,
  )
  await deliver()
  exchange.finish()
  assert.equal(exchange.phase, 'answering')
  for (let takes = 0; takes < 100; takes++) take()
  assert.deepEqual([exchange.phase, client.ended], ['over', true])
  assert.equal(JSON.parse(client.text).type, 'MODIFIED')
})
