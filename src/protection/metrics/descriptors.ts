// Metrics of pod protection, API server calls and health checks: Podseidon's names and labels, after `portcullis_`. Counted only on the main thread.
// test/protection/podseidon-metrics.test.ts compares docs/protection.md with them.

import { type Metric, MetricTable } from '../../gateway/metrics/metric.ts'
import { monitorGauges, NO_SUMS } from '../core/quota/protector-sums.ts'

const table = new MetricTable()
export const PROTECTION_METRICS: readonly Metric[] = table.metrics

/** Seconds: 1 us to 10 s (util/o11y/metrics of Podseidon). */
const SECONDS = Float64Array.of(
  ...[1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1],
  ...[2, 5, 10],
)
/** Wait times in seconds: 1 ms to a week. */
const LATENCY_SECONDS = Float64Array.of(
  ...[0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 86_400, 604_800],
)
/** Sizes of batches and pools. */
const SIZES = Float64Array.of(1, 4, 16, 64, 256, 1024, 4096, 16_384, 32_768)
const RETRY_COUNTS = Float64Array.of(0, 1, 2, 4, 8, 16)

// Deletions: the label `namespace`, here and below, only exists with --protection-metrics-by-namespace, `user` with -by-user.
export const WEBHOOK_REQUEST: Metric<[string, string, string]> = table.histogram(
  'webhook_request',
  ['cell', 'status', 'cause'],
  'Time to evaluate a pod deletion',
  SECONDS,
)
export const WEBHOOK_HANDLED: Metric<[string, string, 'true' | 'false', string, string]> = table.histogram(
  'webhook_handle_pod_in_ppr',
  ['pod_cell', 'request_type', 'rejected', 'namespace', 'user'],
  'Pod deletions that were evaluated, once for each PodProtector of the pod',
  SECONDS,
)
export const WEBHOOK_HTTP_ERROR: Metric<[string, string]> = table.counter(
  'webhook_http_error',
  ['cell', 'error'],
  'Requests to the webhook that were not a review from a known caller',
)

// The ledger: its writes, and its view of the PodProtectors.
export const SUBMIT: Metric<[string, string]> = table.histogram(
  'retrybatch_submit',
  ['pool', 'error'],
  'How long an operation waited for its answer',
  SECONDS,
)
export const SUBMIT_RETRIES: Metric<[string, string]> = table.histogram(
  'retrybatch_submit_retry_count',
  ['pool', 'error'],
  'Failed attempts before an operation was answered',
  RETRY_COUNTS,
)
export const BATCH: Metric<[string]> = table.histogram(
  'retrybatch_batch',
  ['pool'],
  'Time from the first attempt to write a batch to its end',
  SECONDS,
)
export const BATCH_RETRIES: Metric<[string]> = table.histogram(
  'retrybatch_batch_retry_count',
  ['pool'],
  'Failed attempts before a batch was written or abandoned',
  RETRY_COUNTS,
)
export const EXECUTE: Metric<[string, string, string]> = table.histogram(
  'retrybatch_execute',
  ['pool', 'result', 'error'],
  'Attempts to write a batch',
  SECONDS,
)
export const EXECUTE_SIZE: Metric<[string, string, string]> = table.histogram(
  'retrybatch_execute_batch_size',
  ['pool', 'result', 'error'],
  'Operations in an attempt',
  SIZES,
)
export const INFLIGHT_KEYS: Metric<[string]> = table.gauge(
  'retrybatch_inflight_keys',
  ['pool'],
  'PodProtectors with pending writes',
)
export const RELEASED: Metric<[]> = table.counter('protection_released_total', [], 'Reservations that were released')
export const PROTECTOR_ENQUEUE: Metric<[]> = table.histogram(
  'ppr_enqueue',
  [],
  'Time until a changed PodProtector can be found by labels',
  SECONDS,
)
export const PROTECTOR_INDEX_ERROR: Metric<[string]> = table.counter(
  'ppr_index_error',
  ['error'],
  'PodProtectors found to be partly unreadable',
)
export const PROTECTOR_MALFORMED: Metric<[]> = table.gauge(
  'ppr_malformed',
  [],
  'Partly unreadable PodProtectors, which protect less than their spec says',
)
export const PROTECTORS_FOLLOWING: Metric<[]> = table.gauge(
  'ppr_following',
  [],
  '1 if the known state of the PodProtectors is current',
)
export const PROTECTOR_SOURCES: Metric<[]> = table.gauge(
  'ppr_source_list_length',
  [],
  'API servers from which PodProtectors are read',
)
export const PROTECTOR_SOURCE_ERROR: Metric<[string]> = table.counter(
  'ppr_source_list_error',
  ['error'],
  'Number of times the watch of PodProtectors of an API server was lost',
)

// The aggregators of the cells.
export const AGGREGATOR_RECONCILE: Metric<[string, string, string]> = table.histogram(
  'aggregator_reconcile',
  ['cell', 'namespace', 'error'],
  'Counts of the pods of a PodProtector',
  SECONDS,
)
export const AGGREGATOR_ENQUEUE: Metric<[string, string, string]> = table.histogram(
  'aggregator_enqueue',
  ['cell', 'namespace', 'kind'],
  'Time to find the PodProtectors that an event concerns',
  SECONDS,
)
export const AGGREGATOR_DUE: Metric<[string, string, string]> = table.counter(
  'aggregator_due_total',
  ['cell', 'namespace', 'kind'],
  'PodProtectors waiting to be counted again',
)
export const AGGREGATOR_INDEX_ERROR: Metric<[string, string, string]> = table.counter(
  'aggregator_index_error',
  ['cell', 'namespace', 'error'],
  'PodProtectors whose pods cannot be determined',
)
export const POOL_SIZE: Metric<[string]> = table.gauge(
  'aggregator_next_event_pool_current_size',
  ['cell'],
  'PodProtectors that wait for the next event of their cell',
)
export const POOL_LATENCY: Metric<[string]> = table.gauge(
  'aggregator_next_event_pool_current_latency',
  ['cell'],
  'Seconds that the oldest waiting PodProtector has waited',
)
export const POOL_DRAINED: Metric<[string]> = table.histogram(
  'aggregator_next_event_pool_drain_count',
  ['cell'],
  'Number of waiting PodProtectors when an event arrived',
  SIZES,
)
export const POOL_PERIOD: Metric<[string]> = table.histogram(
  'aggregator_next_event_pool_drain_period',
  ['cell'],
  'Seconds between two events of a cell',
  LATENCY_SECONDS,
)
export const POOL_WAITED: Metric<[string]> = table.histogram(
  'aggregator_next_event_pool_drain_object_latency',
  ['cell'],
  'Seconds that each waiting PodProtector waited',
  LATENCY_SECONDS,
)
export const UPDATE_TRIGGER: Metric<[string, string, string]> = table.counter(
  'aggregator_update_trigger_spin',
  ['cell', 'event', 'error'],
  'Writes of the update trigger',
)
export const CELL_CLOCK_SKEW: Metric<[string, 'least' | 'most']> = table.gauge(
  'cell_clock_skew_seconds',
  ['cell', 'bound'],
  "Bounds of the seconds by which the clocks of a cell's API servers are ahead of this replica's",
)

// The generator, and sums over all PodProtectors.
export const GENERATOR_RECONCILE: Metric<[string, string, string, string, string]> = table.histogram(
  'generator_reconcile',
  ['group', 'version', 'resource', 'namespace', 'error'],
  'Workloads that the generator has processed',
  SECONDS,
)
export const GENERATOR_ACTION: Metric<[string, string, string, string, string]> = table.counter(
  'generator_action',
  ['group', 'version', 'resource', 'namespace', 'action'],
  'Actions that the generator found necessary',
)
/** Keyed by the part after `generator_monitor_workloads_`: one per sum over all PodProtectors. */
export const MONITORS: ReadonlyMap<string, Metric<[]>> = new Map(
  Array.from(monitorGauges(NO_SUMS).keys(), (name): [string, Metric<[]>] => [
    name,
    table.gauge(`generator_monitor_workloads_${name}`, [], 'Over all PodProtectors; see docs/protection.md'),
  ]),
)

// Workers and leaders.
export const WORKER_RECONCILE: Metric<[string, string, string]> = table.histogram(
  'worker_reconcile',
  ['worker', 'cell', 'error'],
  'Turns of the workers',
  SECONDS,
)
export const WORKER_QUEUE_LENGTH: Metric<[string, string]> = table.gauge(
  'worker_queue_length',
  ['worker', 'cell'],
  'Items waiting for a worker',
)
export const LEADER: Metric<[string, string, string]> = table.gauge(
  'leader',
  ['cluster_class', 'elector_name', 'identity'],
  '1 when this replica leads',
)
export const LEADER_HEARTBEAT: Metric<[string, string, string]> = table.gauge(
  'leader_heartbeat',
  ['cluster_class', 'elector_name', 'identity'],
  'Seconds since this replica became the leader, if it is',
)
export const LEADER_EVENT: Metric<[string, string, string, 'acquired' | 'lost']> = table.counter(
  'leader_event',
  ['cluster_class', 'elector_name', 'identity', 'event'],
  'Changes of leadership: acquired or lost',
)
