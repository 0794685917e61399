// Several threads rendered as one text.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { PATIENT } from '../../../test/harness/patience.ts'
import { createRecord, type RequestRecord } from '../api/request-record.ts'
import {
  ACCESS_REVIEWS,
  CLIENT_CONNECTIONS,
  EJECTIONS,
  FLOW_INFLIGHT,
  HANDSHAKE_ERRORS,
  LOG_LINES_DROPPED,
  RETRIES,
  TOKEN_CACHE,
  TOKEN_REVIEWS,
  UPSTREAM_CONNECTIONS,
} from './descriptors.ts'
import { createMetrics, type GatewayMetrics, type MetricsSums, ThreadMetrics } from './metrics.ts'
import { type MetricsChanges, MetricsRecorder } from './recorder.ts'

/** Sums of snapshots of different threads. */
function mergeSnapshots(snapshots: readonly MetricsChanges[]): MetricsSums {
  const threads = new ThreadMetrics()
  for (const [thread, snapshot] of snapshots.entries()) threads.latest(thread, snapshot)
  return threads.merged()
}

const ENDPOINT = 'https://10.0.0.1:6443'
const CLUSTERS = [
  { name: 'prod', endpoints: [ENDPOINT] },
  { name: 'stage', endpoints: [ENDPOINT] },
]
const LIST_PODS: Partial<RequestRecord> = {
  cluster: 'prod',
  verb: 'list',
  apiVersion: 'v1',
  resource: 'pods',
  isResourceRequest: true,
  endpoint: ENDPOINT,
  attempts: 1,
  code: 200,
  durationMs: 8,
  ttfbMs: 4,
  upstreamMs: 3,
  responseBytes: 5000,
}
const LABELS = 'cluster="prod",verb="LIST",group="",version="v1",resource="pods",subresource="",scope="cluster"'
const TOTAL = `portcullis_apiserver_request_total{${LABELS},code="200"}`

function record(...parts: Partial<RequestRecord>[]): RequestRecord {
  return Object.assign(createRecord(), LIST_PODS, ...parts)
}

function recorder(): MetricsRecorder {
  const made = new MetricsRecorder()
  made.clustersChanged(CLUSTERS)
  return made
}

function mainMetrics(): GatewayMetrics {
  const metrics = createMetrics()
  metrics.clustersChanged(CLUSTERS)
  return metrics
}

/** A snapshot as received from another thread. */
function sent(from: MetricsRecorder): MetricsChanges {
  return structuredClone(from.changes())
}

/** Lines of the text by name and labels, without those about the process. Duplicate names are an error. */
async function samples(metrics: GatewayMetrics): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const line of (await metrics.text()).split('\n')) {
    if (line === '' || line.startsWith('#') || /^portcullis_(process|nodejs)_/.test(line)) continue
    const end = line.lastIndexOf(' ')
    assert.ok(!found.has(line.slice(0, end)), `${line} twice`)
    found.set(line.slice(0, end), Number(line.slice(end + 1)))
  }
  return found
}

/** Counts something of everything that a thread counts. */
function count(into: MetricsRecorder, seed: number): void {
  const pick = <T>(values: readonly T[], shift: number): T | undefined => values[(seed >> shift) % values.length]
  const verb = pick(['list', 'get', 'create', 'watch'], 0) ?? 'get'
  const cluster = pick(['prod', 'stage', ''], 2) ?? ''
  const request = record({
    cluster,
    verb,
    longRunning: verb === 'watch',
    resource: pick(['pods', 'nodes', 'leases'], 3) ?? '',
    subresource: pick(['', '', 'status'], 5) ?? '',
    code: pick([200, 201, 404, 429, 503], 1) ?? 0,
    refusal: pick(['', '', 'degraded'], 2) ?? '',
    flowControl: pick(['', 'reads'], 4) ?? '',
    aborted: pick(['', '', 'client'] as const, 6) ?? '',
    shadow: pick([[], ['access/deny']], 3) ?? [],
    // Sums of such numbers are exact.
    durationMs: (seed % 64) * 125,
    ttfbMs: (seed % 16) * 125,
    upstreamMs: 0,
  })
  into.requestStarted(request)
  if (seed % 9 !== 0) into.observe(request)
  if (seed % 5 === 0) into.add(RETRIES, 1, cluster, 'read')
  if (seed % 6 === 0) into.add(TOKEN_REVIEWS, 1, cluster, 'denied')
  if (seed % 7 === 0) into.add(TOKEN_CACHE, 1, cluster, seed % 2 === 0 ? 'hit' : 'miss')
  if (seed % 8 === 0) into.add(ACCESS_REVIEWS, 1, cluster, 'allowed')
  if (seed % 10 === 0) into.add(EJECTIONS, 1, 'prod', ENDPOINT)
  if (seed % 11 === 0) into.add(HANDSHAKE_ERRORS, 1)
  if (seed % 3 === 0) into.add(CLIENT_CONNECTIONS, 1, 'h2')
  if (seed % 13 === 0) into.http2Clients.rapidReset++
  if (seed % 4 === 0) into.upstream('stage', ENDPOINT).opened++
}

const seeds: fc.Arbitrary<number[]> = fc.array(fc.nat(100_000), { maxLength: 80 })

test('the text of several threads is that of one that did all the work', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(seeds, { minLength: 1, maxLength: 4 }), async (threads) => {
      const alone = mainMetrics()
      const merged = mainMetrics()
      for (const [index, work] of threads.entries()) {
        const thread = recorder()
        for (const seed of work) for (const one of [alone.recorder, thread]) count(one, seed)
        merged.threads.latest(index + 1, sent(thread))
      }
      assert.deepEqual(new Map([...(await samples(merged))].sort()), new Map([...(await samples(alone))].sort()))
    }),
    { numRuns: 20 },
  )
})

test('snapshots are added up again and again, each thread with its last one', async () => {
  const metrics = mainMetrics()
  const [one, two] = [recorder(), recorder()]
  for (let round = 1; round <= 3; round++) {
    one.observe(record())
    two.observe(record())
    two.observe(record({ resource: `r${round}` }))
    metrics.threads.latest(1, sent(one))
    metrics.threads.latest(2, sent(two))
    const found = await samples(metrics)
    assert.equal(found.get(TOTAL), 2 * round)
    assert.equal(found.get(`portcullis_apiserver_request_duration_seconds_sum{${LABELS}}`), (2 * round * 8) / 1000)
    assert.equal(found.get(TOTAL.replace('pods', `r${round}`)), 1)
  }
})

test('when a thread dies its counters stay and its gauges go', async () => {
  const metrics = mainMetrics()
  const [one, two] = [recorder(), recorder()]
  for (const thread of [one, two]) {
    thread.observe(record())
    thread.requestStarted(record())
    thread.requestStarted(record({ verb: 'watch', longRunning: true }))
    thread.add(CLIENT_CONNECTIONS, 1, 'h2')
    thread.add(HANDSHAKE_ERRORS, 1)
    thread.add(RETRIES, 1, 'prod', 'read')
    thread.set(LOG_LINES_DROPPED, 5, 'access')
    thread.http2Upstreams.pingTimeouts++
    thread.upstream('prod', ENDPOINT).closedByGoaway++
    thread.beforeSnapshot(() => thread.set(UPSTREAM_CONNECTIONS, 3, 'prod', ENDPOINT, 'h2'))
    thread.beforeSnapshot(() => thread.set(FLOW_INFLIGHT, 2, 'prod', 'reads'))
  }
  metrics.threads.latest(1, sent(one))
  metrics.threads.latest(2, sent(two))
  const before = await samples(metrics)
  metrics.threads.died(2)
  // A message in transit when the thread ended.
  metrics.threads.latest(2, sent(two))
  const after = await samples(metrics)
  const gauges = [
    'portcullis_apiserver_current_inflight_requests{cluster="prod",request_kind="readOnly"}',
    'portcullis_apiserver_registered_watchers{cluster="prod",group="",version="v1",resource="pods"}',
    `portcullis_apiserver_longrunning_requests{${LABELS.replace('LIST', 'WATCH')}}`,
    'portcullis_client_connections{protocol="h2"}',
    `portcullis_upstream_connections{cluster="prod",endpoint="${ENDPOINT}",class="h2"}`,
    'portcullis_flow_control_inflight_requests{cluster="prod",schema="reads"}',
  ]
  for (const gauge of gauges) {
    assert.equal(after.get(gauge), (before.get(gauge) ?? 0) / 2, gauge)
    assert.notEqual(after.get(gauge), 0, gauge)
  }
  for (const [series, value] of before) if (!gauges.includes(series)) assert.equal(after.get(series), value, series)
  assert.equal(after.get(TOTAL), 2)
  assert.equal(after.get('portcullis_http2_timeouts_total{side="upstream",frame="ping"}'), 2)
  // The successor's counts are added.
  const next = recorder()
  next.observe(record())
  metrics.threads.latest(3, sent(next))
  assert.equal((await samples(metrics)).get(TOTAL), 3)
})

test('no counter decreases, whatever threads do and however they end', PATIENT, async () => {
  const step = fc.record({
    thread: fc.nat(2),
    what: fc.constantFrom('count', 'send', 'die', 'invent'),
    seed: fc.nat(1e6),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 30 }), async (steps) => {
      const metrics = mainMetrics()
      const threads = [0, 1, 2].map((id) => ({ id: id + 1, recorder: recorder() }))
      let nextId = 4
      let before = new Map<string, number>()
      for (const { thread, what, seed } of steps) {
        const one = threads[thread]
        if (one === undefined) continue
        if (what === 'count') count(one.recorder, seed)
        for (let i = 0; what === 'invent' && i < 50; i++) {
          one.recorder.observe(record({ resource: `x${(seed + i) % 200}`, code: seed % 2 === 0 ? 404 : 200 }))
        }
        if (what !== 'count') metrics.threads.latest(one.id, sent(one.recorder))
        if (what === 'die') {
          metrics.threads.died(one.id)
          threads[thread] = { id: nextId++, recorder: recorder() }
        }
        const after = await samples(metrics)
        for (const [series, value] of before) {
          if (/_(total|count|bucket)\{/.test(series)) assert.ok((after.get(series) ?? -1) >= value, series)
        }
        before = after
      }
    }),
    { numRuns: 6 },
  )
})

test('series stay bounded over all threads, and nothing is lost', async () => {
  const metrics = mainMetrics()
  const threads = Array.from({ length: 6 }, () => recorder())
  for (const [index, thread] of threads.entries()) {
    for (let i = 0; i < 150; i++) {
      thread.observe(record({ resource: `known-${index}-${i}` }))
      thread.observe(record({ resource: `invented-${index}-${i}`, code: 404 }))
    }
    for (let i = 0; i < 1200; i++) {
      thread.observe(record({ refusal: 'degraded', refusalRule: `rule-${index}-${i}`, cluster: 'stage' }))
      thread.observe(record({ endpoint: `https://${index}-${i}`, code: 204, cluster: 'stage' }))
    }
    metrics.threads.latest(index + 1, sent(thread))
  }
  for (let round = 0; round < 2; round++) {
    const found = await samples(metrics)
    const of = (pattern: RegExp): string[] => [...found.keys()].filter((series) => pattern.test(series))
    const sum = (series: readonly string[]): number => series.reduce((total, each) => total + (found.get(each) ?? 0), 0)
    const prod = of(/^portcullis_apiserver_request_total\{cluster="prod"/)
    const resources = new Set(prod.map((series) => /resource="([^"]*)"/.exec(series)?.[1] ?? ''))
    assert.equal(resources.size, 501)
    assert.equal([...resources].filter((name) => name.startsWith('invented-')).length, 100)
    assert.equal(sum(prod), 6 * 300)
    const refusals = of(/^portcullis_refusals_total/)
    assert.equal(refusals.length, 1001)
    assert.equal(sum(refusals), 6 * 1200)
    assert.ok((found.get('portcullis_refusals_total{cluster="stage",reason="other",rule="other"}') ?? 0) > 0)
    const upstream = of(/^portcullis_upstream_requests_total\{cluster="stage"/)
    assert.equal(upstream.length, 1001)
    assert.equal(sum(upstream), 6 * 1200)
    assert.ok((found.get('portcullis_upstream_requests_total{cluster="stage",endpoint="other",code="other"}') ?? 0) > 0)
    // Dead threads count like live ones.
    metrics.threads.died(2)
  }
})

test('the series of a removed cluster are dropped, also those of dead threads', async () => {
  const metrics = mainMetrics()
  const [one, two] = [recorder(), recorder()]
  for (const [index, thread] of [one, two].entries()) {
    thread.observe(record())
    metrics.threads.latest(index + 1, sent(thread))
  }
  metrics.threads.died(1)
  const [, stage] = CLUSTERS
  assert.ok(stage !== undefined)
  metrics.clustersChanged([stage], ['prod'])
  assert.equal((await samples(metrics)).get(TOTAL), undefined)
  // It is added back: both threads start from zero.
  two.clustersChanged([], ['prod'])
  metrics.clustersChanged(CLUSTERS)
  two.clustersChanged(CLUSTERS)
  two.observe(record())
  metrics.threads.latest(2, sent(two))
  assert.equal((await samples(metrics)).get(TOTAL), 1)
})

test('gauges that are set before a snapshot disappear when they are not set again', async () => {
  const metrics = mainMetrics()
  let schemas = ['reads', 'writes']
  metrics.beforeScrape(() => {
    for (const schema of schemas) metrics.recorder.set(FLOW_INFLIGHT, 0, 'prod', schema)
  })
  const series = (schema: string): string =>
    `portcullis_flow_control_inflight_requests{cluster="prod",schema="${schema}"}`
  assert.equal((await samples(metrics)).get(series('writes')), 0)
  schemas = ['reads']
  const found = await samples(metrics)
  assert.equal(found.get(series('reads')), 0)
  assert.equal(found.get(series('writes')), undefined)
})

test('concurrent scrapes share one text, and threads are asked before it', async () => {
  const metrics = mainMetrics()
  const thread = recorder()
  let asked = 0
  metrics.beforeScrape(async () => {
    asked++
    await Promise.resolve()
    thread.observe(record())
    metrics.threads.latest(1, sent(thread))
  })
  const [first, second] = await Promise.all([metrics.text(), metrics.text()])
  assert.equal(first, second)
  assert.equal(asked, 1)
  assert.ok(first.includes(`${TOTAL} 1\n`))
  assert.ok((await metrics.text()).includes(`${TOTAL} 2\n`))
})

test('a watch on a resource and on a subresource are one number of watchers', async () => {
  const metrics = mainMetrics()
  for (const subresource of ['', 'status']) {
    metrics.requestStarted(record({ verb: 'watch', longRunning: true, subresource }))
  }
  const series = 'portcullis_apiserver_registered_watchers{cluster="prod",group="",version="v1",resource="pods"}'
  assert.equal((await samples(metrics)).get(series), 2)
})

test('counters of HTTP/2 and of upstream connections, by kind and by cause', async () => {
  const metrics = mainMetrics()
  metrics.recorder.http2Clients.rapidReset = 3
  metrics.recorder.http2Clients.goawaySent = 2
  metrics.recorder.http2Upstreams.madeYouReset = 1
  metrics.recorder.http2Upstreams.connectionsClosed = 4
  // Before the cluster is known, as when its connections are created first.
  const early = metrics.recorder.upstream('new', ENDPOINT)
  early.closedBySettingsTimeout = 2
  early.connectFailed = 5
  metrics.clustersChanged([...CLUSTERS, { name: 'new', endpoints: [ENDPOINT] }])
  assert.equal(metrics.recorder.upstream('new', ENDPOINT), early)
  const found = await samples(metrics)
  for (const [series, value] of [
    ['http2_abuse_total{side="client",kind="rapid-reset"}', 3],
    ['http2_abuse_total{side="upstream",kind="made-you-reset"}', 1],
    ['http2_goaway_total{side="client",direction="sent"}', 2],
    ['http2_connections_closed_total{side="upstream"}', 4],
    [`upstream_connections_closed_total{cluster="new",endpoint="${ENDPOINT}",cause="settings-timeout"}`, 2],
    [`upstream_connections_closed_total{cluster="new",endpoint="${ENDPOINT}",cause="age"}`, 0],
    [`upstream_connect_errors_total{cluster="new",endpoint="${ENDPOINT}"}`, 5],
    [`upstream_connections_opened_total{cluster="new",endpoint="${ENDPOINT}"}`, 0],
  ] as const) {
    assert.equal(found.get(`portcullis_${series}`), value, series)
  }
  metrics.clustersChanged([{ name: 'new', endpoints: [] }])
  assert.ok([...(await samples(metrics)).keys()].every((series) => !/upstream_conn.*cluster="new"/.test(series)))
})

test('the page about connections has every kind of abuse', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/connections.md'), 'utf8')
  const kinds = [...(await mainMetrics().text()).matchAll(/http2_abuse_total\{side="client",kind="([^"]+)"/g)]
  assert.ok(kinds.length > 10)
  for (const [, kind] of kinds) assert.ok(page.includes(`\`${kind}\``), kind)
})

test('snapshots can be added up without a main thread', () => {
  const threads = [recorder(), recorder(), recorder()]
  for (const thread of threads) thread.observe(record())
  const counted = threads.map((thread) => thread.changes())
  const all = new ThreadMetrics()
  all.latest(1, { ...mergeSnapshots(counted), removed: [] })
  const prod = all.merged().clusters.find(({ cluster }) => cluster === 'prod')
  const single = mergeSnapshots(counted.slice(0, 1))
  const one = single.clusters.find(({ cluster }) => cluster === 'prod')
  assert.deepEqual(
    [...(prod?.values ?? [])],
    [...(one?.values ?? [])].map((value) => value * 3),
  )
})

test('a cluster takes no memory, and no part of a report, before something is counted for it', () => {
  const made = new MetricsRecorder()
  made.clustersChanged(['a', 'b', 'c'].map((name) => ({ name, endpoints: [ENDPOINT] })))
  const reported = (): string[] => made.changes().clusters.map(({ cluster }) => cluster)
  assert.deepEqual(reported(), [''])
  made.observe(record({ cluster: 'b' }))
  made.observe(record({ cluster: 'unknown' }))
  made.upstream('c', ENDPOINT).opened++
  assert.deepEqual(reported(), ['', 'b', 'c'])
  made.clustersChanged([], ['a', 'b'])
  for (const cluster of ['a', 'b']) made.observe(record({ cluster }))
  assert.deepEqual(reported(), [''])
})

test('series of requests appear with the first request, those of connections with the first connection', async () => {
  const metrics = mainMetrics()
  const shown = async (): Promise<string[]> => {
    const lines = (await metrics.text()).split('\n').filter((line) => line.includes('cluster="prod"'))
    const names = lines.map((line) => line.slice(0, line.indexOf('{')).replace('portcullis_', ''))
    return [
      'apiserver_current_inflight_requests',
      'added_latency_seconds_count',
      'upstream_connections_opened_total',
    ].filter((name) => names.includes(name))
  }
  assert.deepEqual(await shown(), [])
  metrics.recorder.upstream('prod', ENDPOINT).opened++
  assert.deepEqual(await shown(), ['upstream_connections_opened_total'])
  metrics.observe(record({ cluster: 'prod' }))
  assert.equal((await shown()).length, 3)
})

describe('sums of many clusters', () => {
  const NAMES = Array.from({ length: 500 }, (_, i) => `cluster-${i}`)

  function counted(): MetricsChanges {
    const made = new MetricsRecorder()
    made.clustersChanged(NAMES.map((name) => ({ name, endpoints: [ENDPOINT] })))
    for (const cluster of NAMES) made.observe(record({ cluster }))
    return sent(made)
  }

  test('are made in turns, between which the event loop goes on, and are the same', async () => {
    const threads = new ThreadMetrics()
    for (const thread of [1, 2]) threads.latest(thread, counted())
    let turns = 0
    const count = (): void => {
      turns++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    const sums = structuredClone(await threads.mergedWithPauses())
    clearImmediate(counting)
    assert.ok(turns >= 9, `${turns} turns`)
    assert.deepEqual(sums, structuredClone(threads.merged()))
  })

  test('do not count a thread twice that dies meanwhile', async () => {
    const threads = new ThreadMetrics()
    for (const thread of [1, 2]) threads.latest(thread, counted())
    const before = structuredClone(threads.merged())
    const merging = threads.mergedWithPauses()
    threads.died(1)
    assert.deepEqual(structuredClone((await merging).clusters), before.clusters)
  })
})

describe('changes', () => {
  const clustersOf = ({ clusters }: MetricsChanges): string[] => clusters.map(({ cluster }) => cluster)

  test('of a thread are those of clusters that have counted something since', () => {
    const thread = recorder()
    assert.deepEqual(clustersOf(thread.changes()), [''])
    assert.deepEqual(clustersOf(thread.changes()), [])
    thread.observe(record({ cluster: 'stage' }))
    assert.deepEqual(clustersOf(thread.changes()), ['stage'])
    assert.deepEqual(clustersOf(thread.changes()), [])
  })

  test('of a gauge that has to be set each time are its value, its absence and its return', async () => {
    const thread = recorder()
    const metrics = mainMetrics()
    const series = `portcullis_upstream_connections{cluster="prod",endpoint="${ENDPOINT}",class="h2"}`
    for (const value of [2, 2, undefined, undefined, 0, 0, 3]) {
      if (value !== undefined) thread.set(UPSTREAM_CONNECTIONS, value, 'prod', ENDPOINT, 'h2')
      metrics.threads.latest(1, sent(thread))
      assert.equal((await samples(metrics)).get(series), value)
    }
  })

  test('of a cluster that was removed, or removed and added again, leave nothing of what it had counted', async () => {
    const thread = recorder()
    const metrics = mainMetrics()
    const [prod] = CLUSTERS
    assert.ok(prod)
    thread.observe(record())
    metrics.threads.latest(1, sent(thread))
    assert.equal((await samples(metrics)).get(TOTAL), 1)
    for (const each of [metrics, thread]) each.clustersChanged([], ['prod'])
    for (const each of [metrics, thread]) each.clustersChanged([prod], [])
    metrics.threads.latest(1, sent(thread))
    assert.equal((await samples(metrics)).get(TOTAL), undefined)
    thread.observe(record())
    metrics.threads.latest(1, sent(thread))
    assert.equal((await samples(metrics)).get(TOTAL), 1)
  })

  test('of all threads are those of any of them, also of one that has died, and never of a removed cluster', async () => {
    const metrics = mainMetrics()
    const [one, two] = [recorder(), recorder()]
    const changed = async (): Promise<string[]> => (await metrics.changes()).changed.map(({ cluster }) => cluster)
    for (const [i, thread] of [one, two].entries()) metrics.threads.latest(i + 1, sent(thread))
    assert.deepEqual(await changed(), [''])
    assert.deepEqual(await changed(), [])
    two.observe(record())
    for (const [i, thread] of [one, two].entries()) metrics.threads.latest(i + 1, sent(thread))
    assert.deepEqual(await changed(), ['prod'])
    metrics.threads.died(2)
    assert.deepEqual(await changed(), ['', 'prod'])
    one.observe(record())
    metrics.threads.latest(1, sent(one))
    metrics.clustersChanged([], ['prod'])
    assert.deepEqual(await changed(), [])
    assert.equal((await metrics.changes()).has('prod'), false)
    one.clustersChanged([], ['prod'])
    metrics.threads.latest(1, sent(one))
    assert.deepEqual(await changed(), [])
  })
})
