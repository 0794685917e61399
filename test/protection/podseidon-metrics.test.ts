// Podseidon's dashboards go on working: its metrics are here by their names with our prefix, of the same type, with the same labels,
// except for its webhook_handle_unique_* gauges and the parts of client-go that do not exist here.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { expositionText } from '../../src/gateway/metrics/exposition.ts'
import { createProcessMetrics } from '../../src/gateway/metrics/process-metrics.ts'
import { ProtectorMonitor } from '../../src/protection/controllers/generator/protector-monitor.ts'
import { builtInKind } from '../../src/protection/core/generator/kinds.ts'
import { createProtectionMetrics } from '../../src/protection/metrics/metrics.ts'
import { deletionOf, verdictOf } from '../harness/objects/protection-requests.ts'

const STATES = ['created', 'available', 'ready', 'scheduled', 'running']
/** Name, type, labels: Podseidon v0 (the observer/metrics.go of each component). */
const PODSEIDON: readonly (readonly [name: string, type: string, ...labels: string[]])[] = [
  ['heartbeat', 'gauge'],
  ['leader_event', 'counter', 'cluster_class', 'elector_name', 'identity', 'event'],
  ['leader_heartbeat', 'gauge', 'cluster_class', 'elector_name', 'identity'],
  ['webhook_request', 'histogram', 'cell', 'status', 'cause'],
  ['webhook_http_error', 'counter', 'cell', 'error'],
  ['webhook_handle_pod_in_ppr', 'histogram', 'pod_cell', 'namespace', 'user', 'request_type', 'rejected'],
  ['retrybatch_submit', 'histogram', 'pool', 'error'],
  ['retrybatch_submit_retry_count', 'histogram', 'pool', 'error'],
  ['retrybatch_batch', 'histogram', 'pool'],
  ['retrybatch_batch_retry_count', 'histogram', 'pool'],
  ['retrybatch_execute', 'histogram', 'pool', 'result', 'error'],
  ['retrybatch_execute_batch_size', 'histogram', 'pool', 'result', 'error'],
  ['retrybatch_inflight_keys', 'gauge', 'pool'],
  ['ppr_enqueue', 'histogram'],
  ['ppr_index_error', 'counter', 'error'],
  ['ppr_source_list_length', 'gauge'],
  ['ppr_source_list_error', 'counter', 'error'],
  ['aggregator_reconcile', 'histogram', 'namespace', 'error'],
  ['aggregator_enqueue', 'histogram', 'namespace', 'kind'],
  ['aggregator_index_error', 'counter', 'namespace', 'error'],
  ['aggregator_next_event_pool_current_size', 'gauge'],
  ['aggregator_next_event_pool_current_latency', 'gauge'],
  ['aggregator_next_event_pool_drain_count', 'histogram'],
  ['aggregator_next_event_pool_drain_period', 'histogram'],
  ['aggregator_next_event_pool_drain_object_latency', 'histogram'],
  ['aggregator_update_trigger_spin', 'counter', 'event', 'error'],
  ['generator_reconcile', 'histogram', 'group', 'version', 'resource', 'namespace', 'error'],
  ['generator_action', 'counter', 'group', 'version', 'resource', 'namespace', 'action'],
  ...[
    'num_workloads',
    'num_non_zero_workloads',
    'min_available',
    'current_estimated_available_replicas',
    'sum_latency_millis',
    'total_outstanding_history',
    ...STATES.flatMap((state) => [
      `num_${state}_workloads`,
      `proportion_${state}_workloads`,
      `current_aggregated_${state}_pods`,
      `proportion_${state}_pods`,
      `sum_${state}_proportion`,
      `avg_${state}_proportion_ppm`,
    ]),
  ].map((name) => [`generator_monitor_workloads_${name}`, 'gauge'] as const),
  ['worker_reconcile', 'histogram', 'worker', 'error'],
  ['worker_queue_length', 'gauge', 'worker'],
  ['healthck_failure', 'counter', 'check', 'error'],
  // What the client counts; not its rate limiter and its cache of transports, which this one does not have.
  ['kube_client_requests_total', 'counter', 'code', 'method', 'host'],
  ['kube_client_request_duration_seconds', 'histogram', 'verb', 'host'],
  ['kube_client_request_size_bytes', 'histogram', 'verb', 'host'],
  ['kube_client_response_size_bytes', 'histogram', 'verb', 'host'],
  ['kube_client_request_retries_total', 'counter', 'code', 'verb', 'host'],
]

test("Podseidon's metrics", async () => {
  const text = await everythingOnce()
  for (const [name, type, ...labels] of PODSEIDON) {
    const full = `portcullis_${name}`
    assert.match(text, new RegExp(`^# TYPE ${full} ${type}$`, 'm'))
    const series = new RegExp(`^${full}(?:_count)?(?:\\{(?<labels>[^}]*)\\})? `, 'm').exec(text)
    assert.ok(series, `${full} has a series`)
    const has = [...(series.groups?.['labels'] ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label)
    for (const label of labels) assert.ok(has.includes(label), `${full} has the label ${label}; it has ${has}`)
  }
})

test('docs/protection.md has every metric with its type and labels, and no other', async () => {
  const text = await everythingOnce()
  const types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const page = readFileSync(join(import.meta.dirname, '../../docs/protection.md'), 'utf8')
  const table = page.slice(page.indexOf('\n### Metrics\n')).split('\n| alert |')[0] ?? ''
  const rows = table.split('\n').filter((line) => line.startsWith('| `portcullis_'))
  const told = new Set<string>()
  for (const row of rows) {
    const [, first = '', kinds = '', labels = ''] = row.split('|')
    const names = namesOf(first, [...types.keys()])
    for (const name of names) {
      told.add(name)
      assert.ok(kinds.includes(types.get(name) ?? '?'), `${name} is a ${types.get(name)}`)
    }
    const has = new Set(names.flatMap((name) => labelsOf(text, name)))
    const written = labels.replace(/with `[^`]*`/g, '').match(/\w+/g) ?? []
    assert.deepEqual(new Set(written.filter((word) => word !== 'and' && word !== 'or')), has, first)
  }
  assert.deepEqual([...told].sort(), [...types.keys()].sort())
})

/** The metrics that a cell names; `..._x` ends otherwise than the one before it, `*` stands for several. */
function namesOf(cell: string, all: readonly string[]): string[] {
  const written = [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '')
  return written.flatMap((name) => {
    const segments = (written[0] ?? '').split('_')
    const found = [
      name,
      ...segments.map((_, less) => name.replace('...', segments.slice(0, -less || undefined).join('_'))),
    ]
      .map((pattern) => new RegExp(`^${pattern.replace('*', '\\w+')}$`))
      .map((pattern) => all.filter((each) => pattern.test(each)))
      .find((names) => names.length > 0)
    assert.ok(found, `${name} is no metric`)
    return found
  })
}

function labelsOf(text: string, name: string): string[] {
  const series = new RegExp(`^${name}(?:_count)?\\{([^}]*)\\} `, 'm').exec(text)
  return [...(series?.[1] ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label ?? '')
}

/** One of everything that is told. */
async function everythingOnce(): Promise<string> {
  const metrics = createProtectionMetrics({ byNamespace: true, byUser: true, identity: 'a', monotonic: () => 0 })
  const { events, generator } = metrics
  events.reviewed(deletionOf('web-0'), verdictOf('Rejected'), ['shop/web'], 1)
  events.executed('shop/web', 1, 'written', '', 1)
  events.batch(1, 0)
  events.submitted('', 1, 0)
  events.indexed(1)
  events.malformed(1, true)
  events.following(false, 'no answer')
  events.released(1)
  metrics.clocks(new Map([['prod', { leastMs: 1, mostMs: 2 }]]))
  const aggregator = metrics.aggregator('prod')
  aggregator.reconciled('shop', 'BadSelector', 1)
  aggregator.enqueued('shop', 'Pod')
  aggregator.handled('shop', 'Pod', 1)
  aggregator.pool(1, 1)
  aggregator.drained([1], 1)
  aggregator.trigger('create', '')
  const kind = builtInKind('Deployment')
  assert.ok(kind)
  generator.reconciled(kind, 'shop', '', 1)
  generator.found(kind, 'shop', 'Create')
  metrics.webhookAnswered({ cell: '', cause: '', status: 'HttpError', code: 401, durationMs: 1 })
  metrics.leader('portcullis-protection', true)
  metrics.monitor(new ProtectorMonitor().gauges())
  metrics.queued({ writing: 0, generator: 0, cells: new Map() })
  const process = createProcessMetrics(() => 0)
  process.checkFailed('listeners')
  const target = { method: 'GET', server: 'https://10.0.0.1:6443' } as const
  process.calls.answered(target, '200')
  process.calls.ended(target, 1, 0, 1)
  process.calls.resent(target, 429)
  return expositionText(metrics.expose, process.expose)
}
