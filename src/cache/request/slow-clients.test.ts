// What clients cost that take their answers slowly, or not at all.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
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
import { CachedCollections } from '../state/cached-collections.ts'
import { DELIVERY_MS, deliveryMs } from './delivery-limits.ts'
import { OpenWatches } from './open-watches.ts'
import { PIECE_BYTES } from './pieces.ts'
import { ReadCacheFilter } from './read-cache.ts'
import { STALLED_MS } from './watch-answer.ts'

const ID = { cluster: 'c', group: '', version: 'v1', resource: 'pods', namespace: '' }
const READER = new FactsReader(selectableFields({ ...ID, namespaced: true }).kept)
const COUNT = 1000
const NOTE = 'n'.repeat(1000)

const LARGE = 'n'.repeat(1024 * 1024)

function pods(): CollectionReset {
  const texts = Array.from({ length: COUNT }, (_, at) => {
    const metadata = {
      name: `p${at}`,
      namespace: 'a',
      uid: `${at}`,
      resourceVersion: String(at + 1),
      annotations: { NOTE },
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
  }
}

/** A client that takes nothing until it is told. */
class SlowClient implements Stream {
  queued = 0
  meter: QueueMeter | undefined
  text = ''
  ended = false
  wasReset = false
  headers(): void {}
  body(chunk: Buffer, end: boolean): void {
    this.queue(this.queued + chunk.length)
    this.text += chunk.toString()
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

/** @param maxBufferedBytes 0 = unlimited */
async function ask(target: string, maxBufferedBytes = 0, last = '') {
  let nowMs = 0
  const clock = { now: () => nowMs, monotonic: () => nowMs }
  const collections = new CachedCollections(
    { ...clock },
    () => Promise.resolve(undefined),
    () => undefined,
  )
  const all = pods()
  collections.apply(all)
  if (last !== '') collections.apply(change(all, last))
  const watches = new OpenWatches(clock.monotonic)
  const counted: string[] = []
  const filter = new ReadCacheFilter({
    collections,
    watches,
    counted: (_cluster, _resource, result) => counted.push(result),
  })
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
    access: { review: async () => ({ kind: 'allowed' }) },
  } as unknown as Gateway
  const head: HeaderList = [':method', 'GET', ':path', target, ':authority', 'c', ':scheme', 'https']
  const peer = { protocol: 'h2', remoteAddress: '192.0.2.1', addressCharge: addressCharge('192.0.2.1') }
  const client = new SlowClient()
  const exchange = new Exchange(gw, peer as unknown as Peer, client, head, true, undefined)
  exchange.target = target
  const info = parseRequestInfo('GET', target)
  assert.ok(!('failure' in info))
  const cluster = { name: 'c', cache: [{ ...ID, namespaces: [''], maxBytes: 1e9, maxStalenessMs: 1000 }] }
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
    later(ms: number): void {
      nowMs += ms
      watches.tick()
    },
  }
}

const LIST = '/api/v1/pods?resourceVersion=0'
/** Answered with nothing, after all objects were looked at. */
const SELECTIVE = `${LIST}&labelSelector=a%3Db`
const WATCH = '/api/v1/pods?watch=1&resourceVersion=0'
const MUCH = 1024 * 1024

test('the time that it takes to find objects is charged to the caller, whatever comes of it', async (t) => {
  const charge = t.mock.method(threadScheduler, 'charge')
  for (const target of [SELECTIVE, `${WATCH}&labelSelector=a%3Db`]) {
    const before = charge.mock.callCount()
    const { exchange } = await ask(target)
    const charged = charge.mock.calls.slice(before).map(({ arguments: [account] }) => account)
    assert.deepEqual(charged, [threadScheduler.accountOf(exchange.charge, performance.now())])
  }
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
