import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
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
import { createMetrics, type GatewayMetrics } from './metrics.ts'

const ENDPOINT = 'https://10.0.0.1:6443'
const LIST_PODS: Partial<RequestRecord> = {
  cluster: 'prod',
  verb: 'list',
  apiVersion: 'v1',
  resource: 'pods',
  namespace: 'default',
  isResourceRequest: true,
  endpoint: ENDPOINT,
  attempts: 1,
  code: 200,
  durationMs: 30,
  ttfbMs: 20,
  upstreamMs: 19.7,
  responseBytes: 5000,
}

function record(...parts: Partial<RequestRecord>[]): RequestRecord {
  return Object.assign(createRecord(), ...parts)
}

function metricsFor(...names: string[]): GatewayMetrics {
  const metrics = createMetrics()
  metrics.clustersChanged(names.map((name) => ({ name, endpoints: [ENDPOINT] })))
  return metrics
}

/** Value of a line, by its exact name and labels; undefined = no such line. */
async function sampleOf(metrics: GatewayMetrics, series: string): Promise<number | undefined> {
  const line = (await metrics.text()).split('\n').find((candidate) => candidate.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const PODS = 'group="",version="v1",resource="pods",subresource=""'

test('a request is counted with the names of kube-apiserver', async () => {
  const metrics = metricsFor('prod')
  for (let i = 0; i < 3; i++) metrics.observe(record(LIST_PODS))
  metrics.observe(record(LIST_PODS, { code: 404 }))
  const labels = `cluster="prod",verb="LIST",${PODS},scope="namespace"`
  assert.equal(await sampleOf(metrics, `portcullis_apiserver_request_total{${labels},code="200"}`), 3)
  assert.equal(await sampleOf(metrics, `portcullis_apiserver_request_total{${labels},code="404"}`), 1)
  const duration = 'portcullis_apiserver_request_duration_seconds'
  assert.equal(await sampleOf(metrics, `${duration}_bucket{${labels},le="0.025"}`), 0)
  assert.equal(await sampleOf(metrics, `${duration}_bucket{${labels},le="0.05"}`), 4)
  assert.equal(await sampleOf(metrics, `${duration}_bucket{${labels},le="+Inf"}`), 4)
  assert.equal(await sampleOf(metrics, `${duration}_count{${labels}}`), 4)
  assert.equal(await sampleOf(metrics, `${duration}_sum{${labels}}`), 0.12)
  assert.equal(await sampleOf(metrics, `portcullis_apiserver_response_sizes_bucket{${labels},le="10000"}`), 4)
  assert.equal(await sampleOf(metrics, 'portcullis_added_latency_seconds_bucket{cluster="prod",le="0.0005"}'), 4)
  const upstream = `portcullis_upstream_requests_total{cluster="prod",endpoint="${ENDPOINT}"`
  assert.equal(await sampleOf(metrics, `${upstream},code="404"}`), 1)
})

test('verbs and scopes as kube-apiserver spells them', async () => {
  const pod: Partial<RequestRecord> = { ...LIST_PODS, name: 'a' }
  const table: [Partial<RequestRecord>, string, string][] = [
    [{ ...pod, verb: 'get' }, 'GET', 'resource'],
    [{ ...LIST_PODS, verb: 'create' }, 'POST', 'resource'],
    [{ ...pod, verb: 'update' }, 'PUT', 'resource'],
    [{ ...pod, verb: 'patch' }, 'PATCH', 'resource'],
    [{ ...pod, verb: 'delete' }, 'DELETE', 'resource'],
    [{ ...LIST_PODS, verb: 'deletecollection' }, 'DELETECOLLECTION', 'namespace'],
    [{ ...LIST_PODS, verb: 'watch', namespace: '' }, 'WATCH', 'cluster'],
    [{ ...pod, verb: 'create', subresource: 'exec' }, 'CONNECT', 'resource'],
    [{ ...pod, verb: 'x'.repeat(50) }, 'other', 'resource'],
    [{ ...LIST_PODS, isResourceRequest: false, verb: 'get', path: '/version' }, 'GET', ''],
    [{ ...LIST_PODS, isResourceRequest: false, verb: 'brew', path: '/version' }, 'other', ''],
  ]
  for (const [given, verb, scope] of table) {
    const metrics = metricsFor('prod')
    metrics.observe(record(given))
    const total = (await metrics.text())
      .split('\n')
      .find((line) => line.startsWith('portcullis_apiserver_request_total{'))
    assert.match(total ?? '', new RegExp(`verb="${verb}".*scope="${scope}"`))
  }
})

test('running requests: read-only, mutating, long-running', async () => {
  const metrics = metricsFor('prod')
  const inflight = 'portcullis_apiserver_current_inflight_requests{cluster="prod",request_kind='
  const read = record(LIST_PODS)
  const write = record(LIST_PODS, { verb: 'create' })
  const watch = record(LIST_PODS, { verb: 'watch', longRunning: true })
  for (const started of [read, write, watch, read]) metrics.requestStarted(started)
  const watchers = `portcullis_apiserver_registered_watchers{cluster="prod",group="",version="v1",resource="pods"}`
  assert.equal(await sampleOf(metrics, `${inflight}"readOnly"}`), 1)
  assert.equal(await sampleOf(metrics, `${inflight}"mutating"}`), 1)
  assert.equal(await sampleOf(metrics, watchers), 1)
  // A replaced cluster keeps its counts; later changes of the request's record do not matter.
  metrics.clustersChanged([{ name: 'prod', endpoints: [] }])
  write.cluster = ''
  write.verb = 'list'
  for (const ended of [read, write, watch]) metrics.observe(ended)
  const labels = `cluster="prod",verb="WATCH",${PODS},scope="namespace"`
  assert.equal(await sampleOf(metrics, `${inflight}"readOnly"}`), 0)
  assert.equal(await sampleOf(metrics, `${inflight}"mutating"}`), 0)
  assert.equal(await sampleOf(metrics, watchers), 0)
  assert.equal(await sampleOf(metrics, `portcullis_apiserver_longrunning_requests{${labels}}`), 0)
  assert.equal(await sampleOf(metrics, `portcullis_apiserver_request_total{${labels},code="200"}`), 1)
  assert.equal(await sampleOf(metrics, `portcullis_apiserver_request_duration_seconds_count{${labels}}`), undefined)
})

test('refusals, limits, shadow decisions and aborts', async () => {
  const metrics = metricsFor('prod')
  const refused: Partial<RequestRecord> = { ...LIST_PODS, endpoint: '', attempts: 0, flowControl: 'reads' }
  metrics.observe(record(refused, { code: 429, refusal: 'RateLimited', refusalRule: 'reads' }))
  metrics.observe(record(refused, { code: 503, refusal: 'Degraded', refusalRule: 'Freeze' }))
  metrics.observe(record(LIST_PODS, { flowControl: 'reads', shadow: ['access/deny "x"\n'], aborted: 'client' }))
  const get = (series: string): Promise<number | undefined> => sampleOf(metrics, `portcullis_${series}`)
  assert.equal(await get('refusals_total{cluster="prod",reason="RateLimited",rule="reads"}'), 1)
  assert.equal(await get('refusals_total{cluster="prod",reason="Degraded",rule="Freeze"}'), 1)
  assert.equal(await get('flow_control_rejected_total{cluster="prod",schema="reads"}'), 1)
  assert.equal(await get('flow_control_admitted_total{cluster="prod",schema="reads"}'), 1)
  assert.equal(await get('shadow_refusals_total{cluster="prod",rule="access/deny \\"x\\"\\n"}'), 1)
  assert.equal(await get('apiserver_request_aborts_total{cluster="prod",by="client"}'), 1)
})

// KubeGateway's metrics contain the raw host and path of unauthenticated requests: its defect 5.
test('however odd the requests, the number of series is bounded and nothing of them leaks', async () => {
  const metrics = metricsFor('prod')
  const evil = 'evil"} 1\nportcullis_fake 1'
  for (let i = 0; i < 20_000; i++) {
    metrics.observe(
      record({
        cluster: i % 2 === 0 ? 'prod' : `host-${i}.example.com`,
        host: `host-${i}.example.com`,
        user: `user-${i}`,
        userAgent: `agent-${i}`,
        path: `/path-${i}`,
        verb: i % 3 === 0 ? `verb-${i}` : 'list',
        apiGroup: i % 5 === 0 ? `${evil}-${i}` : `group-${i}.io`,
        apiVersion: `v${i}`,
        resource: `resources-${i}`,
        subresource: i % 7 === 0 ? `sub-${i}` : '',
        isResourceRequest: i % 11 !== 0,
        code: i % 1000,
        refusal: 'Unauthorized',
      }),
    )
  }
  const text = await metrics.text()
  for (const leak of ['host-', 'user-', 'agent-', 'path-', 'verb-', 'evil', 'portcullis_fake']) {
    assert.ok(!text.includes(leak), leak)
  }
  const totals = new Set(text.match(/^portcullis_apiserver_request_total\{[^}]*(?=,code)/gm))
  // Two clusters ('prod' and none) of at most 100 made-up resources each, twice: a known verb and `other`.
  assert.ok(totals.size <= 2 * 2 * 103, `${totals.size} series`)
  // Real resources still fit.
  metrics.observe(record(LIST_PODS, { apiGroup: 'real.io', resource: 'reals' }))
  assert.match(
    await metrics.text(),
    /request_total\{cluster="prod",verb="LIST",group="real\.io",version="v1",resource="reals"/,
  )
})

test('resources that upstream knows are limited too', async () => {
  const metrics = metricsFor('prod')
  for (let i = 0; i < 600; i++) metrics.observe(record(LIST_PODS, { resource: `r${i}` }))
  const text = await metrics.text()
  const resources = new Set(text.match(/request_total\{[^}]*resource="[^"]*"/g))
  assert.equal(resources.size, 501)
  assert.equal(
    await sampleOf(
      metrics,
      'portcullis_apiserver_request_total{cluster="prod",verb="LIST",group="other",version="other",resource="other",subresource="other",scope="namespace",code="200"}',
    ),
    100,
  )
})

test('the text is in the Prometheus format', async () => {
  const metrics = metricsFor('prod', 'other')
  metrics.observe(record(LIST_PODS))
  metrics.observe(record(LIST_PODS, { cluster: 'other', refusalRule: 'a\\b"c\nd', refusal: 'x' }))
  const text = await metrics.text()
  const seen = new Set<string>()
  let family = ''
  for (const line of text.split('\n').filter((candidate) => candidate !== '')) {
    const comment = /^# (HELP|TYPE) (\w+) \S/.exec(line)
    if (comment === null) {
      assert.match(line, /^[a-z_]\w*(\{(\w+="([^"\\\n]|\\["\\n])*",?)*\})? (-?[\d.e+-]+|\+Inf|NaN)$/)
      assert.ok(line.startsWith(family), `${line} is outside ${family}`)
    } else if (comment[1] === 'HELP') {
      family = comment[2] ?? ''
      assert.ok(family.startsWith('portcullis_'), family)
      assert.ok(!seen.has(family), `${family} twice`)
      seen.add(family)
    }
  }
  assert.ok(seen.has('portcullis_process_cpu_seconds_total'))
  assert.ok(seen.has('portcullis_nodejs_eventloop_lag_seconds'))
  assert.equal(metrics.contentType, 'text/plain; version=0.0.4; charset=utf-8')
})

test('a removed cluster loses its series', async () => {
  const metrics = metricsFor('prod', 'stage')
  for (const cluster of ['prod', 'stage']) {
    metrics.observe(record(LIST_PODS, { cluster }))
    metrics.endpointHealth(cluster, ENDPOINT, true)
    metrics.endpointHealth(cluster, 'https://gone', false)
    metrics.recorder.add(TOKEN_CACHE, 1, cluster, 'hit')
  }
  metrics.clustersChanged([{ name: 'prod', endpoints: [ENDPOINT] }], ['stage'])
  const text = await metrics.text()
  assert.doesNotMatch(text, /cluster="stage"|gone/)
  assert.equal(await sampleOf(metrics, `portcullis_endpoint_healthy{cluster="prod",endpoint="${ENDPOINT}"}`), 1)
  assert.match(text, /portcullis_token_cache_lookups_total\{cluster="prod",result="hit"\} 1/)
  metrics.observe(record(LIST_PODS, { cluster: 'stage' }))
  assert.match(await metrics.text(), /request_total\{cluster="",verb="LIST"/)
})

test('events other than requests', async () => {
  const metrics = metricsFor('prod')
  metrics.recorder.add(EJECTIONS, 1, 'prod', ENDPOINT)
  metrics.recorder.add(RETRIES, 1, 'prod', 'read')
  metrics.recorder.add(RETRIES, 1, 'prod', 'read')
  metrics.recorder.add(TOKEN_REVIEWS, 1, 'prod', 'denied')
  metrics.recorder.add(ACCESS_REVIEWS, 1, 'prod', 'allowed')
  metrics.recorder.add(HANDSHAKE_ERRORS, 1)
  metrics.recorder.add(CLIENT_CONNECTIONS, 1, 'h2')
  metrics.recorder.add(CLIENT_CONNECTIONS, 1, 'h2')
  metrics.recorder.add(CLIENT_CONNECTIONS, -1, 'h2')
  metrics.recorder.set(LOG_LINES_DROPPED, 7, 'audit')
  metrics.configApplied({ generation: 3, nowMs: 5000, clusters: 2, errors: 0, warnings: 1 })
  metrics.configApplied({ generation: 3, nowMs: 9000, clusters: 2, errors: 4, warnings: 0 })
  metrics.beforeScrape(() => metrics.recorder.set(FLOW_INFLIGHT, 12, 'prod', 'reads'))
  metrics.beforeScrape(() => metrics.recorder.set(UPSTREAM_CONNECTIONS, 2, 'prod', ENDPOINT, 'watch'))
  for (const [series, value] of [
    [`endpoint_ejections_total{cluster="prod",endpoint="${ENDPOINT}"}`, 1],
    ['upstream_retries_total{cluster="prod",cause="read"}', 2],
    ['token_reviews_total{cluster="prod",result="denied"}', 1],
    ['access_reviews_total{cluster="prod",result="allowed"}', 1],
    ['apiserver_tls_handshake_errors_total', 1],
    ['client_connections{protocol="h2"}', 1],
    ['client_connections{protocol="http/1.1"}', 0],
    ['log_lines_dropped{log="audit"}', 7],
    ['config_problems{severity="error"}', 4],
    ['config_last_reload_successful', 0],
    ['config_last_reload_success_timestamp_seconds', 5],
    ['flow_control_inflight_requests{cluster="prod",schema="reads"}', 12],
    [`upstream_connections{cluster="prod",endpoint="${ENDPOINT}",class="watch"}`, 2],
  ] as const) {
    assert.equal(await sampleOf(metrics, `portcullis_${series}`), value, series)
  }
})

test('buckets agree with a plain count', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.double({ min: 0, max: 1e5, noNaN: true }), { maxLength: 50 }), async (durations) => {
      const metrics = metricsFor('prod')
      for (const durationMs of durations) metrics.observe(record(LIST_PODS, { durationMs }))
      const found = (await metrics.text()).matchAll(/request_duration_seconds_bucket\{.*,le="(.+)"\} (\d+)/g)
      for (const [, bound, count] of found) {
        const limit = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound)
        assert.equal(Number(count), durations.filter((ms) => ms / 1000 <= limit).length, bound)
      }
    }),
    { numRuns: 25 },
  )
})
