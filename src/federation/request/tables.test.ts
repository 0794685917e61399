// Tables of three members as a client gets them: what is kept is there, and no cluster.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FactsReader } from '../../cache/core/bytes/object-facts.ts'
import type { JsonForm } from '../../cache/core/bytes/object-form.ts'
import type { CollectionReset } from '../../cache/core/changes/collection.ts'
import { selectableFields } from '../../cache/core/fields/selectable-fields.ts'
import { OpenWatches } from '../../cache/request/open-watches.ts'
import { CachedCollections } from '../../cache/state/cached-collections.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Decision, Permit } from '../../gateway/request/exchange/decision.ts'
import { Exchange } from '../../gateway/request/exchange/exchange.ts'
import type { Gateway } from '../../gateway/request/exchange/gateway.ts'
import { OwnCallLimits } from '../../gateway/state/clusters.ts'
import { ThreadShares } from '../../gateway/state/thread-shares.ts'
import type { HeaderList, Peer, Stream } from '../../kit/api/stream.ts'
import { addressCharge } from '../../kit/core/shares/charge.ts'
import { FederatedCollections } from '../state/federated-collections.ts'
import { KnownRights } from '../state/known-rights.ts'
import { FederatedReadsFilter } from './federated-reads.ts'

const CREATED = '2026-01-01T00:00:00Z'
const NOW = Date.parse('2026-01-01T00:05:00Z')
const NAMES = ['east', 'west']
const USER = { name: 'alice', uid: '', groups: ['dev'], extra: {} }
const TYPE = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster' }
const POLICIES = [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }]
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
/** As kubectl sends it. */
const KUBECTL = `${TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json`
const PODS = { group: '', version: 'v1', resource: 'pods' }
const WIDGETS = { group: 'example.com', version: 'v1', resource: 'widgets' }
const NODES = { group: '', version: 'v1', resource: 'nodes' }
const DEFINITIONS = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const MUCH = 1024 * 1024

interface Row {
  readonly cells: readonly unknown[]
  readonly object: { readonly kind: string; readonly apiVersion: string; readonly metadata: Metadata } | null
  readonly conditions?: readonly unknown[]
}
interface Metadata {
  readonly namespace: string
  readonly name: string
  readonly resourceVersion: string
  readonly annotations: Readonly<Record<string, string>>
}
interface Table {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[] | null
  readonly rows: readonly Row[]
}
interface Event {
  readonly type: string
  readonly object: Table
}

type KeptResource = typeof PODS

function reset(
  cluster: string,
  of: KeptResource,
  kind: string,
  form: JsonForm,
  objects: readonly object[],
  epoch = 1,
): CollectionReset {
  const id = { cluster, ...of, namespace: '', encoding: 'json' as const }
  const reader = new FactsReader(selectableFields({ ...id, namespaced: true }).kept)
  const texts = objects.map((object) => Buffer.from(JSON.stringify(object)))
  const memory = new SharedArrayBuffer(texts.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  const records = texts.map((text) => {
    Buffer.from(memory).set(text, offset)
    offset += text.length
    return { facts: reader.read(text), segment: 1, offset: offset - text.length, length: text.length }
  })
  return {
    type: 'reset',
    collection: id,
    epoch,
    number: 0,
    list: { kind: `${kind}List`, apiVersion: of.group === '' ? of.version : `${of.group}/${of.version}` },
    form,
    resourceVersion: '100',
    bookmark: undefined,
    segments: [{ id: 1, memory }],
    objects: records,
    followed: true,
    warnings: [],
  }
}

function podNamed(name: string, phase = 'Running', resourceVersion = '100'): object {
  const metadata = { name, namespace: 'a', uid: name, resourceVersion, creationTimestamp: CREATED }
  return { kind: 'Pod', apiVersion: 'v1', metadata, spec: { containers: [{ name: 'c' }] }, status: { phase } }
}

function widgetNamed(name: string): object {
  const metadata = { creationTimestamp: CREATED, name, namespace: 'a', resourceVersion: '100', uid: name }
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata, spec: { color: 'red' } }
}

const DEFINITION = {
  kind: 'CustomResourceDefinition',
  apiVersion: 'apiextensions.k8s.io/v1',
  metadata: { name: 'widgets.example.com', uid: 'd', resourceVersion: '100' },
  spec: {
    versions: [{ name: 'v1', additionalPrinterColumns: [{ name: 'Color', type: 'string', jsonPath: '.spec.color' }] }],
  },
}

class Client implements Stream {
  queued = 0
  text = ''
  ended = false
  headers(): void {}
  body(chunk: Buffer, end: boolean): void {
    this.text += chunk.toString()
    this.ended ||= end
  }
  trailers(): void {}
  credit(): void {}
  reset(): void {}
}

class World {
  nowMs = NOW
  readonly #collections: CachedCollections
  readonly #federated: FederatedCollections
  readonly #watches: OpenWatches
  readonly #cluster = compileCluster({
    object: {
      ...TYPE,
      metadata: { name: 'all' },
      spec: {
        servers: [],
        dispatchPolicies: POLICIES,
        members: NAMES.map((name) => ({ name, trustUsers: true })),
        federation: { resources: [PODS, WIDGETS, NODES] },
      },
    },
    revision: '1',
  })
  readonly #shares: ThreadShares
  readonly #filter: FederatedReadsFilter

  /** @param maxBufferedBytes 0 = unlimited */
  constructor(resets: readonly CollectionReset[], maxBufferedBytes = 0) {
    const clock = { now: () => this.nowMs, monotonic: () => this.nowMs }
    const nothing = (): void => undefined
    this.#collections = new CachedCollections(
      clock,
      ({ collection }) => {
        const { version } = this.#collections.get(collection) ?? assert.fail()
        return Promise.resolve({ known: version, current: version })
      },
      nothing,
      nothing,
      nothing,
    )
    for (const one of resets) this.#collections.apply(one)
    this.#federated = new FederatedCollections((id) => this.#collections.get(id), clock)
    const { federation } = this.#cluster
    this.#federated.told([{ cluster: 'all', federation: federation ?? assert.fail() }])
    this.#watches = new OpenWatches(clock.monotonic, () => false)
    this.#shares = new ThreadShares({ maxRequestsInflight: 0, maxWatches: 0, maxBufferedBytes, threads: 1 })
    this.#filter = new FederatedReadsFilter({
      kept: this.#collections,
      collections: this.#federated,
      watches: this.#watches,
      known: new KnownRights(nothing),
    })
  }

  /** A pod of a member is changed, or is new. */
  change(cluster: string, number: number, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: object): void {
    const { collection, objects, segments } = reset(cluster, PODS, 'Pod', 'declared', [object])
    const [record] = objects
    const [segment] = segments
    if (record === undefined || segment === undefined) return
    this.#collections.apply({
      type: 'update',
      collection,
      epoch: 1,
      number,
      resourceVersion: record.facts.resourceVersion,
      changes: [{ type, object: { ...record, segment: number + 1 } }],
      moved: [],
      segments: [{ id: number + 1, memory: segment.memory }],
      dropped: [],
      bookmark: undefined,
      followed: true,
      warnings: [],
      afterGap: false,
    })
  }

  /** A second passes. */
  tick(ms: number): void {
    this.nowMs += ms
    this.#watches.tick()
  }

  async ask(target: string, accept = KUBECTL) {
    const live = (name: string) => ({
      compiled: compileCluster({
        object: {
          ...TYPE,
          metadata: { name },
          spec: { servers: [{ endpoint: 'https://10.0.0.1:6443' }], dispatchPolicies: POLICIES },
        },
        revision: '1',
      }),
      identityEpoch: 1,
      flows: {},
      turns: new OwnCallLimits(),
      // They answer reviews, and no other call.
      endpoints: { all: [], available: () => false },
    })
    const nothing = (): void => undefined
    const gw = {
      clock: { now: () => this.nowMs, monotonic: () => this.nowMs },
      shares: this.#shares,
      uuid: () => 'id',
      random: () => 0,
      events: { requestEnded: nothing, responseStarted: nothing, limited: nothing },
      budgets: { cancelledRequests: { spend: nothing }, cancelledLongRunning: { spend: nothing } },
      running: { add: nothing, remove: nothing },
      clusters: { get: (name: string) => (NAMES.includes(name) ? live(name) : undefined) },
      access: { review: async () => ({ kind: 'allowed' }) },
      upstreams: { get: nothing },
    } as unknown as Gateway
    const head: HeaderList = [
      ':method',
      'GET',
      ':path',
      target,
      ':authority',
      'all',
      ':scheme',
      'https',
      'accept',
      accept,
    ]
    const peer = { protocol: 'h2', remoteAddress: '192.0.2.1', addressCharge: addressCharge('192.0.2.1') }
    const client = new Client()
    const exchange = new Exchange(gw, peer as unknown as Peer, client, head, true, undefined)
    exchange.target = target
    const info = parseRequestInfo('GET', target)
    assert.ok(!('failure' in info))
    const decision = {
      exchange,
      cluster: this.#cluster,
      info,
      caller: { user: USER, kind: 'certificate' },
      user: USER,
      requester: { user: USER },
      userAgent: 'kubectl',
      remoteAddress: '10.0.0.9',
      isWatch: info.verb === 'watch',
      isUpgrade: false,
      moment: { nowMs: this.nowMs, monotonicMs: this.nowMs },
      warnings: [],
      filters: { skipRest: () => undefined },
      handOver: undefined,
      deliver: undefined,
    } as unknown as Decision
    const refused = await this.#filter.check(decision)
    const held = (): number => this.#shares.buffered.of(exchange.charge).held
    await decision.deliver?.(decision as unknown as Permit)
    return { client, exchange, refused: refused?.refused, held, table: (): Table => JSON.parse(client.text) }
  }

  async table(target: string, accept = KUBECTL): Promise<Table> {
    const { refused, table } = await this.ask(target, accept)
    assert.equal(refused, undefined)
    return table()
  }
}

function withPods(maxBufferedBytes = 0): World {
  return new World(
    [
      reset('east', PODS, 'Pod', 'declared', [podNamed('web'), podNamed('x', 'Succeeded')]),
      reset('west', PODS, 'Pod', 'declared', [podNamed('web', 'Pending')]),
    ],
    maxBufferedBytes,
  )
}

function eventsOf({ text }: Client): Event[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const LIST = '/api/v1/pods'
const columnsOf = ({ columnDefinitions }: Table): string[] => (columnDefinitions ?? []).map(({ name }) => name)
const shownOf = ({ rows }: Table): unknown[][] =>
  rows.map(({ cells, object }) => [object?.metadata.namespace, ...cells.slice(0, 5), cells.at(-1)])

test('a list has the rows of all members, in order, and a column with their names', async () => {
  const table = await withPods().table(LIST)
  assert.deepEqual([table.kind, table.apiVersion], ['Table', 'meta.k8s.io/v1'])
  assert.deepEqual(columnsOf(table), [
    ...['Name', 'Ready', 'Status', 'Restarts', 'Age', 'IP', 'Node', 'Nominated Node', 'Readiness Gates', 'Cluster'],
  ])
  assert.deepEqual(shownOf(table), [
    ['east--a', 'web', '0/1', 'Running', '0', '5m', 'east'],
    ['east--a', 'x', '0/1', 'Succeeded', '0', '5m', 'east'],
    ['west--a', 'web', '0/1', 'Pending', '0', '5m', 'west'],
  ])
  assert.deepEqual(
    table.rows.map(({ conditions }) => conditions?.length),
    [undefined, 1, undefined],
  )
  assert.match(table.metadata.resourceVersion, /^1[0-9]+$/)
  for (const { object } of table.rows) {
    assert.deepEqual([object?.kind, object?.apiVersion], ['PartialObjectMetadata', 'meta.k8s.io/v1'])
    assert.match(object?.metadata.resourceVersion ?? '', /^1[0-9]+$/)
    assert.deepEqual(Object.keys(object ?? {}), ['kind', 'apiVersion', 'metadata'])
  }
})

test('rows have as much of their object as is asked for', async () => {
  const world = withPods()
  const objects = async (include: string): Promise<unknown[]> =>
    (await world.table(`${LIST}?includeObject=${include}`)).rows.map(({ object }) => object?.kind)
  assert.deepEqual(await objects('None'), [undefined, undefined, undefined])
  assert.deepEqual(await objects('Metadata'), Array(3).fill('PartialObjectMetadata'))
  assert.deepEqual(await objects(''), Array(3).fill('PartialObjectMetadata'))
  assert.deepEqual(await objects('Object'), Array(3).fill('Pod'))
  assert.equal((await world.ask(`${LIST}?includeObject=All`)).refused, 'bad-request')
  const { rows } = await world.table(`${LIST}?includeObject=Object`)
  assert.equal(rows[0]?.object?.metadata.namespace, 'east--a')
})

test('v1beta1 is as v1, and what prefers objects gets objects', async () => {
  const world = withPods()
  const beta = await world.table(LIST, 'application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json')
  assert.deepEqual([beta.apiVersion, beta.rows[0]?.object?.apiVersion], ['meta.k8s.io/v1beta1', 'meta.k8s.io/v1beta1'])
  assert.equal((await world.table(LIST, `application/json,${TABLE}`)).kind, 'PodList')
  assert.equal((await world.table(LIST, `${TABLE};q=0.5,application/json`)).kind, 'PodList')
  assert.equal((await world.ask(LIST, 'application/yaml;as=Table;v=v1;g=meta.k8s.io')).refused, 'federated-encoding')
})

test('pages are those of other lists', async () => {
  const world = withPods()
  const first = await world.table(`${LIST}?limit=2`)
  assert.deepEqual([first.rows.length, first.metadata.remainingItemCount], [2, 1])
  const second = await world.table(`${LIST}?limit=2&continue=${first.metadata.continue}`)
  assert.deepEqual(shownOf(second), [['west--a', 'web', '0/1', 'Pending', '0', '5m', 'west']])
  assert.deepEqual(
    [second.metadata.continue, second.metadata.resourceVersion],
    [undefined, first.metadata.resourceVersion],
  )
})

test('a list without any rows has its columns', async () => {
  const table = await withPods().table('/api/v1/namespaces/east--none/pods')
  assert.deepEqual([table.rows.length, columnsOf(table).length], [0, 10])
})

test('one object is a table of one row', async () => {
  const table = await withPods().table('/api/v1/namespaces/west--a/pods/web')
  assert.deepEqual(shownOf(table), [['west--a', 'web', '0/1', 'Pending', '0', '5m', 'west']])
  assert.equal(table.metadata.resourceVersion, table.rows[0]?.object?.metadata.resourceVersion)
  assert.equal(columnsOf(table).at(-1), 'Cluster')
})

test('the columns of a kind are the same in whatever order an API server writes its fields', async () => {
  const pods = NAMES.map((name) => reset(name, PODS, 'Pod', 'sorted', [podNamed('web')]))
  const table = await new World(pods).table(LIST)
  assert.equal(columnsOf(table)[1], 'Ready')
  assert.deepEqual(shownOf(table)[1], ['west--a', 'web', '0/1', 'Running', '0', '5m', 'west'])
})

test('cluster-scoped objects have prefixed names in their cells', async () => {
  const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n1', uid: 'n', resourceVersion: '100' } }
  const world = new World(NAMES.map((name) => reset(name, NODES, 'Node', 'declared', [node])))
  const { rows } = await world.table('/api/v1/nodes')
  assert.deepEqual(
    rows.map(({ cells }) => [cells[0], cells[1], cells.at(-1)]),
    [
      ['east--n1', 'Unknown', 'east'],
      ['west--n1', 'Unknown', 'west'],
    ],
  )
})

test('custom resources have the columns of their definition, where a read cache keeps it', async () => {
  const widgets = NAMES.map((name) => reset(name, WIDGETS, 'Widget', 'sorted', [widgetNamed('w')]))
  const path = '/apis/example.com/v1/widgets'
  const without = await new World(widgets).table(path)
  assert.deepEqual(columnsOf(without), ['Name', 'Age', 'Cluster'])
  const definition = reset('west', DEFINITIONS, 'CustomResourceDefinition', 'declared', [DEFINITION])
  const table = await new World([...widgets, definition]).table(path)
  assert.deepEqual(columnsOf(table), ['Name', 'Color', 'Cluster'])
  assert.deepEqual(
    table.rows.map(({ cells }) => cells),
    [
      ['w', 'red', 'east'],
      ['w', 'red', 'west'],
    ],
  )
  assert.deepEqual(Object.keys(table.rows[0]?.object?.metadata ?? {}).slice(0, 2), ['name', 'namespace'])
})

test('a watch has the columns once, and the age of the moment in which a row is sent', async () => {
  const world = withPods()
  const { metadata } = await world.table(LIST)
  const { client } = await world.ask(
    `${LIST}?watch=1&allowWatchBookmarks=1&resourceVersion=${metadata.resourceVersion}`,
  )
  world.change('west', 1, 'MODIFIED', podNamed('web', 'Running', '101'))
  world.nowMs += 60_000
  await nextTurn()
  world.change('east', 1, 'DELETED', podNamed('web', 'Running', '101'))
  await nextTurn()
  world.tick(61_000)
  const [first, second, mark] = eventsOf(client)
  assert.deepEqual([first?.type, second?.type, mark?.type], ['MODIFIED', 'DELETED', 'BOOKMARK'])
  assert.equal(first?.object.columnDefinitions?.length, 10)
  assert.deepEqual([second?.object.columnDefinitions, mark?.object.columnDefinitions], [null, null])
  assert.deepEqual(first === undefined ? [] : shownOf(first.object), [
    ['west--a', 'web', '0/1', 'Running', '0', '6m', 'west'],
  ])
  for (const event of [first, second])
    assert.equal(event?.object.metadata.resourceVersion, event?.object.rows[0]?.object?.metadata.resourceVersion)
  assert.equal(mark?.object.kind, 'Table')
  assert.match(mark?.object.metadata.resourceVersion ?? '', /^1[0-9]+$/)
})

test('two watches of the same changes have the columns each', async () => {
  const world = withPods()
  const { metadata } = await world.table(LIST)
  const target = `${LIST}?watch=1&resourceVersion=${metadata.resourceVersion}`
  const clients = [(await world.ask(target)).client, (await world.ask(target)).client]
  world.change('west', 1, 'MODIFIED', podNamed('web', 'Running', '101'))
  await nextTurn()
  for (const client of clients) assert.equal(eventsOf(client)[0]?.object.columnDefinitions?.length, 10)
})

test('a watch may begin with the state, whose end is marked', async () => {
  const query = 'watch=1&allowWatchBookmarks=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
  for (const include of ['None', 'Metadata']) {
    const { client } = await withPods(MUCH).ask(`${LIST}?${query}&includeObject=${include}`)
    const events = eventsOf(client)
    assert.deepEqual(
      events.map(({ type, object }) => [type, object.columnDefinitions?.length]),
      [
        ['ADDED', 10],
        ['ADDED', undefined],
        ['ADDED', undefined],
        ['BOOKMARK', undefined],
      ],
    )
    assert.equal(events[0]?.object.rows[0]?.object === null, include === 'None')
    const mark = events.at(-1)?.object.rows[0]?.object?.metadata.annotations
    assert.deepEqual(mark, { 'k8s.io/initial-events-end': 'true' })
  }
})

test('rows are the memory of their caller until they are sent', async () => {
  const list = await withPods(MUCH).ask(LIST)
  assert.equal(list.client.ended, true)
  assert.equal(list.held(), 0)
  const watch = await withPods(MUCH).ask(`${LIST}?watch=1`)
  assert.equal(eventsOf(watch.client).length, 3)
  assert.equal(watch.held(), 0)
  const few = await withPods(100).ask(LIST)
  assert.equal(few.refused, 'federated-memory')
  assert.equal((await withPods(100).ask(`${LIST}?watch=1`)).refused, 'federated-memory')
})

test('rows are made between turns of others, and their time is charged', async (t) => {
  const charge = t.mock.method(threadScheduler, 'charge')
  const { exchange } = await withPods(MUCH).ask(LIST)
  const account = threadScheduler.accountOf(exchange.charge, performance.now())
  assert.ok(charge.mock.calls.filter(({ arguments: [to] }) => to === account).length >= 2)
})
