import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deletionOf, verdictOf } from '../../../test/harness/objects/protection-requests.ts'
import { expositionText } from '../../gateway/metrics/exposition.ts'
import { createProtectionMetrics, type ProtectionMetrics } from './metrics.ts'

async function lineOf(metrics: ProtectionMetrics, start: string): Promise<string | undefined> {
  return (await expositionText(metrics.expose)).split('\n').find((line) => line.startsWith(start))
}

test('deletions are counted by cell, status and cause, and once for each protector', async () => {
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => 0 })
  metrics.events.reviewed(deletionOf('a'), verdictOf('AdmittedAll'), ['shop/x', 'shop/y'], 5)
  metrics.events.reviewed(deletionOf('a', { cause: 'EvictPod' }), verdictOf('Rejected'), ['shop/x'], 5)
  const status = 'portcullis_webhook_request_count{cell="prod",status="Rejected",cause="EvictPod"}'
  assert.equal(await lineOf(metrics, status), `${status} 1`)
  const handled =
    'portcullis_webhook_handle_pod_in_ppr_count{pod_cell="prod",request_type="DeletePod",rejected="false"}'
  assert.equal(await lineOf(metrics, handled), `${handled} 2`)
})

test('namespace and user are labels only if configured; nodes are one user', async () => {
  const metrics = createProtectionMetrics({ byNamespace: true, byUser: true, identity: 'a', monotonic: () => 0 })
  metrics.events.reviewed(deletionOf('a'), verdictOf('AdmittedAll'), ['shop/x'], 5)
  assert.match(await expositionText(metrics.expose), /rejected="false",namespace="shop",user="system:node"\} 1/)
})

test('what the webhook answers without the ledger is counted too, and what the ledger evaluated only once', async () => {
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => 0 })
  const answered = { cell: 'prod', cause: 'DeletePod', code: 200, durationMs: 1 }
  metrics.webhookAnswered({ ...answered, status: 'NotRelevant' })
  metrics.webhookAnswered({ ...answered, status: 'AdmittedAll' })
  metrics.webhookAnswered({ ...answered, cell: '', status: 'HttpError', code: 401 })
  const text = await expositionText(metrics.expose)
  assert.match(text, /webhook_request_count\{cell="prod",status="NotRelevant",cause="DeletePod"\} 1/)
  assert.doesNotMatch(text, /AdmittedAll/)
  assert.match(text, /webhook_http_error\{cell="",error="401"\} 1/)
})

test('leadership and the sums of the monitor', async () => {
  let nowMs = 1000
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => nowMs })
  metrics.leader('portcullis-protection', true)
  metrics.monitor(new Map([['num_workloads', 3]]))
  nowMs = 3000
  const text = await expositionText(metrics.expose)
  assert.match(
    text,
    /portcullis_leader_heartbeat\{cluster_class="core",elector_name="portcullis-protection",identity="a"\} 2/,
  )
  assert.match(text, /portcullis_generator_monitor_workloads_num_workloads 3/)
  metrics.leader('portcullis-protection', false)
  const lost = await expositionText(metrics.expose)
  assert.match(lost, /portcullis_leader\{cluster_class="core",elector_name="portcullis-protection",identity="a"\} 0/)
  assert.doesNotMatch(lost, /leader_heartbeat\{/)
  assert.match(lost, /portcullis_leader_event\{.*event="acquired"\} 1\n.*event="lost"\} 1/)
})

test('during a stall of a cell the latency of its pool grows', async () => {
  let nowMs = 1000
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => nowMs })
  const events = metrics.aggregator('prod')
  events.pool(2, 500)
  nowMs = 11_000
  const latency = 'portcullis_aggregator_next_event_pool_current_latency{cell="prod"}'
  assert.equal(await lineOf(metrics, latency), `${latency} 10.5`)
  events.pool(0, 0)
  assert.equal(await lineOf(metrics, latency), `${latency} 0`)
})

test('writes: attempts with their result and error, whole batches with failed attempts, and the queue', async () => {
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => 0 })
  metrics.events.executed('shop/x', 3, 'conflict', 'Conflict', 5)
  metrics.events.executed('shop/x', 4, 'written', '', 5)
  metrics.events.batch(12, 1)
  metrics.events.submitted('', 12, 1)
  metrics.queued({ writing: 2, generator: 7, cells: new Map([['prod', 3]]) })
  metrics.queued({ writing: 1, generator: 5, cells: new Map([['test', 4]]) })
  const text = await expositionText(metrics.expose)
  const pool = 'pool="podprotector-update"'
  assert.match(text, new RegExp(`retrybatch_execute_count\\{${pool},result="conflict",error="Conflict"\\} 1`))
  assert.match(text, new RegExp(`retrybatch_execute_batch_size_sum\\{${pool},result="written",error="nil"\\} 4`))
  assert.match(text, new RegExp(`retrybatch_batch_sum\\{${pool}\\} 0.012`))
  assert.match(text, new RegExp(`retrybatch_batch_retry_count_sum\\{${pool}\\} 1`))
  assert.match(text, new RegExp(`retrybatch_submit_retry_count_sum\\{${pool},error="nil"\\} 1`))
  assert.match(text, new RegExp(`retrybatch_inflight_keys\\{${pool}\\} 1`))
  assert.match(text, /worker_queue_length\{worker="generator",cell=""\} 5/)
  assert.match(text, /worker_queue_length\{worker="aggregator",cell="test"\} 4/)
  assert.doesNotMatch(text, /cell="prod"/)
})

test('the state of the watch of PodProtectors, and how often it broke', async () => {
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => 0 })
  metrics.events.indexed(2)
  metrics.events.malformed(1, true)
  metrics.events.following(true, '')
  metrics.events.following(false, 'no answer')
  metrics.events.malformed(0, false)
  const text = await expositionText(metrics.expose)
  assert.match(text, /ppr_enqueue_count 1/)
  assert.match(text, /ppr_malformed 0/)
  assert.match(text, /ppr_index_error\{error="Malformed"\} 1/)
  assert.match(text, /ppr_source_list_length 1/)
  assert.match(text, /ppr_source_list_error\{error="NotFollowed"\} 1/)
})

test('the aggregator: events, due protectors, turns, and protectors with an unreadable selector', async () => {
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => 0 })
  const events = metrics.aggregator('prod')
  events.handled('shop', 'Pod', 3)
  events.enqueued('shop', 'Pod')
  events.reconciled('shop', 'BadSelector', 1)
  const text = await expositionText(metrics.expose)
  assert.match(text, /aggregator_enqueue_sum\{cell="prod",kind="Pod"\} 0.003/)
  assert.match(text, /aggregator_due_total\{cell="prod",kind="Pod"\} 1/)
  assert.match(text, /aggregator_index_error\{cell="prod",error="BadSelector"\} 1/)
  assert.match(text, /worker_reconcile_count\{worker="aggregator",cell="prod",error="BadSelector"\} 1/)
})

test('the clocks of cells, and not those of cells that are no more', async () => {
  const metrics = createProtectionMetrics({ identity: 'a', monotonic: () => 0 })
  metrics.clocks(new Map([['gone', { leastMs: 0, mostMs: 1_000 }]]))
  metrics.clocks(new Map([['prod', { leastMs: -31_000, mostMs: -29_500 }]]))
  const text = await expositionText(metrics.expose)
  assert.match(text, /^portcullis_cell_clock_skew_seconds\{cell="prod",bound="least"\} -31$/m)
  assert.match(text, /^portcullis_cell_clock_skew_seconds\{cell="prod",bound="most"\} -29.5$/m)
  assert.doesNotMatch(text, /"gone"/)
})
