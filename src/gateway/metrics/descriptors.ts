// All metrics of the gateway except those of pod protection (src/protection/metrics/descriptors.ts), of subjects that can be left out, and of Node
// (node-metrics.ts): name, labels, help. The rows in which threads count, how they are merged, and the text derive from it;
// test/repository/docs.test.ts compares docs/metrics.md with it.
// Names follow kube-apiserver where it has an equivalent, after `portcullis_`.

import type { Step } from '../../kit/io/stalls/steps.ts'
import type { TokenFault } from '../../pki/core/id-tokens/claims-user.ts'
import type { ListOutcome } from '../api/list-request.ts'
import { MAX_TABLE_ROWS, type Metric, MetricTable, type RowKind } from './metric.ts'

/** Why a request is retried: upstream did not process it, or a read got no complete response. */
type RetryCause = 'refused' | 'read'
type ReviewResult = 'allowed' | 'denied' | 'error'

/** Only program/subjects/subjects.ts adds to it, the metrics of subjects that can be left out. */
export const table = new MetricTable()
/** Row kinds, by `id`. */
export const KINDS: readonly RowKind[] = table.kinds
export const METRICS: readonly Metric[] = table.metrics

// Buckets of kube-apiserver's apiserver_request_duration_seconds and apiserver_response_sizes.
const DURATION_BUCKETS = Float64Array.of(
  ...[0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60],
)
const SIZE_BUCKETS = Float64Array.of(1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
const ADDED_BUCKETS = Float64Array.of(
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
)

// Requests: counted in request-metrics.ts, which keeps offsets into their rows.
const RESOURCE_LABELS = ['cluster', 'group', 'version', 'resource']
const REQUEST_LABELS = ['cluster', 'verb', 'group', 'version', 'resource', 'subresource', 'scope']
/** A resource: four names starting at `first` (group, version, resource, subresource), `second` is its standing. */
export const RESOURCE: RowKind = table.labelRows([], 'none')
/** Requests of one verb and scope on one resource: `first` = row of the resource, `second` = verb and scope. */
export const VERB: RowKind = table.labelRows(REQUEST_LABELS, 'row')
const OF_VERB = { of: VERB }

export const INFLIGHT: Metric<[string, 'readOnly' | 'mutating']> = table.gauge(
  'apiserver_current_inflight_requests',
  ['cluster', 'request_kind'],
  'Requests running, without long-running ones',
)
export const ADDED: Metric = table.histogram(
  'added_latency_seconds',
  ['cluster'],
  'Time to the response head that the gateway added: the total less the time of upstream',
  ADDED_BUCKETS,
)
export const REQUEST_TOTAL: Metric = table.counter(
  'apiserver_request_total',
  [...REQUEST_LABELS, 'code'],
  'Requests, by the code sent to the client; 0 = none',
  OF_VERB,
)
export const REQUEST_DURATION: Metric = table.histogram(
  'apiserver_request_duration_seconds',
  REQUEST_LABELS,
  'Time from the request head to the end of the response, without long-running requests',
  DURATION_BUCKETS,
  OF_VERB,
)
export const RESPONSE_SIZES: Metric = table.histogram(
  'apiserver_response_sizes',
  REQUEST_LABELS,
  'Bytes of the bodies of reads',
  SIZE_BUCKETS,
  OF_VERB,
)
export const LONG_RUNNING: Metric = table.gauge(
  'apiserver_longrunning_requests',
  REQUEST_LABELS,
  'Long-running requests open',
  OF_VERB,
)
/** Has no rows: it is the sum of LONG_RUNNING over the verb watch. */
export const WATCHERS: Metric = table.gauge('apiserver_registered_watchers', RESOURCE_LABELS, 'Watches open')
export const REFUSALS: Metric<[string, string, string]> = table.counter(
  'refusals_total',
  ['cluster', 'reason', 'rule'],
  'Requests that the gateway refused, by reason and by the rule or limit',
)
/** The names of ShareLimit, and of other limits divided among sources. */
export const LIMITED: Metric<[string, 'true' | 'false']> = table.counter(
  'limited_total',
  ['limit', 'known'],
  'Requests, connections and so on that reached a limit that is divided among users and addresses',
)
export const SHADOW: Metric<[string, string]> = table.counter(
  'shadow_refusals_total',
  ['cluster', 'rule'],
  'Requests that would have been refused if the rule were not in shadow mode',
)
export const UPSTREAM: Metric<[string, string, string]> = table.counter(
  'upstream_requests_total',
  ['cluster', 'endpoint', 'code'],
  'Requests answered by an endpoint, by code; 0 = aborted',
)
export const ADMITTED: Metric<[string, string]> = table.counter(
  'flow_control_admitted_total',
  ['cluster', 'schema'],
  'Requests that a flow control schema admitted',
)
export const RESERVED: Metric<[string, string]> = table.counter(
  'flow_control_reserved_total',
  ['cluster', 'schema'],
  'Requests admitted although the limit was reached: heartbeats of nodes, and requests that match spec.degrade.exempt',
)
export const REJECTED: Metric<[string, string]> = table.counter(
  'flow_control_rejected_total',
  ['cluster', 'schema'],
  'Requests that a flow control schema refused with 429',
)
export const POLICY_MATCHES: Metric<[string, string]> = table.counter(
  'policy_matches_total',
  ['cluster', 'policy'],
  'Requests that a dispatch policy matched, by its index in the object',
)
export const ABORTS: Metric<[string, string]> = table.counter(
  'apiserver_request_aborts_total',
  ['cluster', 'by'],
  'Requests aborted before the response was complete',
)

// Not about requests, counted in the threads that serve them: MetricsRecorder.add and .set.
export const EJECTIONS: Metric<[string, string]> = table.counter(
  'endpoint_ejections_total',
  ['cluster', 'endpoint'],
  'Ejections of an endpoint because requests to it failed',
  { knownEndpoints: true },
)
export const DISRUPTION_UNCHECKED: Metric<[string]> = table.counter(
  'degrade_unchecked_total',
  ['cluster'],
  'Writes admitted in degrade mode NoDisruption or Limited because their effect could not be determined',
)
export const RETRIES: Metric<[string, RetryCause]> = table.counter(
  'upstream_retries_total',
  ['cluster', 'cause'],
  'Requests sent again to another endpoint, by cause',
)
/** The class is always `h2`: connections of all classes together. */
export const UPSTREAM_CONNECTIONS: Metric<[string, string, string]> = table.gauge(
  'upstream_connections',
  ['cluster', 'endpoint', 'class'],
  'Open connections to an endpoint, by class',
  { merge: 'perSnapshot', knownEndpoints: true },
)
/** A count shared by threads, so only one of them reports it. */
export const FLOW_INFLIGHT: Metric<[string, string]> = table.gauge(
  'flow_control_inflight_requests',
  ['cluster', 'schema'],
  'Requests that hold a slot of a flow control schema',
  { merge: 'perSnapshot' },
)
export const FLOW_LIMIT: Metric<[string, string]> = table.gauge(
  'flow_control_limit',
  ['cluster', 'schema'],
  'Maximum requests in flight of a maxRequestsInflight schema in this replica, unless it is per user',
)
export const TOKEN_REVIEWS: Metric<[string, ReviewResult]> = table.counter(
  'token_reviews_total',
  ['cluster', 'result'],
  'TokenReviews sent upstream, by result',
)
export const TOKEN_CACHE: Metric<[string, 'hit' | 'miss']> = table.counter(
  'token_cache_lookups_total',
  ['cluster', 'result'],
  'Bearer tokens looked up in the cache',
)
export const ID_TOKENS: Metric<[string, 'accepted' | TokenFault]> = table.counter(
  'id_tokens_total',
  ['cluster', 'result'],
  "Tokens of a cluster's issuers that the gateway verified: accepted, or why they were sent to the cluster for review instead",
)
export const ISSUER_KEY_FETCHES: Metric<[string, 'success' | 'error']> = table.counter(
  'issuer_key_fetches_total',
  ['issuer', 'result'],
  'Reads of the keys of an issuer of clusters',
)
export const ISSUER_KEYS: Metric<[string]> = table.gauge(
  'issuer_keys',
  ['issuer'],
  'Keys of an issuer of clusters that are in use',
)
export const ACCESS_REVIEWS: Metric<[string, ReviewResult]> = table.counter(
  'access_reviews_total',
  ['cluster', 'result'],
  'SubjectAccessReviews sent upstream, for impersonation and for deletions of protected pods, by result',
)
export const LIST_GUARD: Metric<[string, ListOutcome]> = table.counter(
  'list_guard_total',
  ['cluster', 'result'],
  'Lists without a limit in clusters with spec.listGuard, by outcome',
)
export const LIST_SEATS: Metric<[string, string]> = table.counter(
  'flow_control_list_seats_total',
  ['cluster', 'schema'],
  'Seats of the lists that a flow control schema with cost admitted',
)
export const CLIENT_CONNECTIONS: Metric<['h2' | 'http/1.1']> = table.gauge(
  'client_connections',
  ['protocol'],
  'Open connections of clients',
)
export const CLIENTS_REFUSED: Metric<[]> = table.counter(
  'client_connections_refused_total',
  [],
  'Connections closed on arrival, because their address has too many',
)
export const CLIENTS_OFFERED: Metric<[string, 'passed' | 'unanswered' | 'refused']> = table.counter(
  'client_connections_offered_total',
  ['thread', 'result'],
  'Connections that a thread accepted and offered to another one with room, by outcome',
)
export const THREAD_WAITING: Metric<[string]> = table.gauge(
  'thread_waiting_bytes',
  ['thread'],
  'Bytes that were read from clients and endpoints, and wait for CPU time of the thread',
)
export const STALLS: Metric<[string, Step]> = table.counter(
  'event_loop_stalls_total',
  ['thread', 'step'],
  'Turns of the event loop that took at least as long as --stall-threshold, by cause',
)
export const STALL_SECONDS: Metric<[string, Step]> = table.counter(
  'event_loop_stall_seconds_total',
  ['thread', 'step'],
  'Seconds that these turns took',
)
export const CLIENTS_DRAINED: Metric<['age' | 'balance' | 'chance']> = table.counter(
  'client_connections_drained_total',
  ['reason'],
  'Connections whose client was asked to reconnect while the gateway keeps running',
)
export const PROXY_PROTOCOL: Metric<
  ['declared' | 'local' | 'plain' | 'untrusted' | 'invalid' | 'timeout' | 'overflow' | 'ended']
> = table.counter(
  'proxy_protocol_connections_total',
  ['outcome'],
  'Connections to ports with PROXY protocol, by outcome of the header',
)
export const HANDSHAKE_ERRORS: Metric<[]> = table.counter(
  'apiserver_tls_handshake_errors_total',
  [],
  'TLS handshakes that clients did not complete',
)
export const HANDSHAKES: Metric<['hello' | 'queued' | 'in-progress']> = table.gauge(
  'client_handshakes',
  ['stage'],
  'Connections of clients before the end of their TLS handshake',
)
/** The total so far, including dropped lines of threads that have died. */
export const LOG_LINES_DROPPED: Metric<['access' | 'audit' | 'control-audit']> = table.gauge(
  'log_lines_dropped',
  ['log'],
  'Log lines dropped because the reader was too slow',
  { merge: 'kept' },
)
export const AUDIT_WEBHOOK_EVENTS: Metric<['sent' | 'buffer-full' | 'too-large' | 'failed']> = table.counter(
  'audit_webhook_events_total',
  ['result'],
  'Audit events for the webhook: accepted, or why they were lost',
)

export const CERTIFICATE_EXPIRATION: Metric<[string, string]> = table.gauge(
  'certificate_expiration_timestamp_seconds',
  ['cluster', 'certificate'],
  'When a certificate expires, for a CA bundle the last one; without a cluster, the certificates of the gateway itself',
)
export const FILE_RELOADED: Metric<[string]> = table.gauge(
  'file_last_reload_successful',
  ['file'],
  '1 if the present content of a reloaded file is in force, 0 if it cannot be used',
)
export const LAST_GOOD_AGE: Metric<[string]> = table.gauge(
  'last_good_serving_age_seconds',
  ['state'],
  'Age of the state that is served from disk while its source is unavailable; 0 otherwise',
)
export const LAST_GOOD_WRITTEN: Metric<[string]> = table.gauge(
  'last_good_written_timestamp_seconds',
  ['state'],
  'When the last good state was written to disk; 0 = not yet by this process',
)
export const LAST_GOOD_BYTES: Metric<[string]> = table.gauge(
  'last_good_file_bytes',
  ['state'],
  'Size of the last good state as last written to disk',
)
export const LAST_GOOD_FAILURES: Metric<[string]> = table.counter(
  'last_good_write_failures_total',
  ['state'],
  'Last good states that could not be written to disk',
)
export const BUILD_INFO: Metric<[string, string, string, string, string]> = table.gauge(
  'build_info',
  ['version', 'git_commit', 'git_tree_state', 'build', 'node_version'],
  'Always 1; the labels name the build of the program and the version of Node',
)

// Fields of plain counter objects; recorder.ts maps each to one of these.
export const UPSTREAM_OPENED: Metric<[string, string]> = table.counter(
  'upstream_connections_opened_total',
  ['cluster', 'endpoint'],
  'Connections made to an endpoint',
  { knownEndpoints: true },
)
export const UPSTREAM_FAILED: Metric<[string, string]> = table.counter(
  'upstream_connect_errors_total',
  ['cluster', 'endpoint'],
  'Connections to an endpoint that could not be made',
  { knownEndpoints: true },
)
export const UPSTREAM_CLOSED: Metric<[string, string, string]> = table.counter(
  'upstream_connections_closed_total',
  ['cluster', 'endpoint', 'cause'],
  'Connections to an endpoint that ended, by cause',
  // Same endpoints as the surrounding metrics.
  { knownEndpoints: true, limit: 10 * MAX_TABLE_ROWS },
)
export const UPSTREAM_ENDED_BY_REQUESTS: Metric<[string, string]> = table.counter(
  'upstream_connections_ended_by_requests_total',
  ['cluster', 'endpoint'],
  'Connections to an endpoint that probably ended because of a request',
  { knownEndpoints: true },
)
export const HTTP2_ABUSE: Metric<[string, string]> = table.counter(
  'http2_abuse_total',
  ['side', 'kind'],
  "HTTP/2 connections and streams ended because of the peer's behavior, by kind",
)
export const HTTP2_OPENED: Metric<[string]> = table.counter(
  'http2_connections_opened_total',
  ['side'],
  'HTTP/2 connections begun',
)
export const HTTP2_CLOSED: Metric<[string]> = table.counter(
  'http2_connections_closed_total',
  ['side'],
  'HTTP/2 connections ended',
)
export const HTTP2_GOAWAY: Metric<[string, string]> = table.counter(
  'http2_goaway_total',
  ['side', 'direction'],
  'GOAWAY frames, by direction',
)
export const HTTP2_REFUSED: Metric<[string]> = table.counter(
  'http2_streams_refused_total',
  ['side'],
  'HTTP/2 streams answered with REFUSED_STREAM',
)
export const HTTP2_HEADS_NOT_SENT: Metric<[string]> = table.counter(
  'http2_heads_not_sent_total',
  ['side'],
  "Heads that were not sent because they exceed the peer's limit",
)
export const HTTP2_TIMEOUTS: Metric<[string, string]> = table.counter(
  'http2_timeouts_total',
  ['side', 'frame'],
  'HTTP/2 connections ended because the peer did not send a frame in time, by frame',
)

export const EARLY_ANSWERS: Metric<[string, string]> = table.counter(
  'early_answers_total',
  ['side', 'rest'],
  'Answers that were complete before the body of their request, by outcome of the rest of the body',
)

// Known only to the main thread: main-thread-series.ts.
export const THREAD_ANSWERS: Metric<[string]> = table.gauge(
  'thread_answers',
  ['thread'],
  '1 when the gateway thread answered this scrape; otherwise its metrics are from an earlier one',
)
export const THREAD_GENERATION: Metric<[string]> = table.gauge(
  'thread_config_generation',
  ['thread'],
  'Generation of the configuration that the gateway thread has in force',
)
export const THREAD_RESTARTS: Metric<[string]> = table.counter(
  'thread_restarts_total',
  ['thread'],
  'Number of times a gateway thread died and was replaced',
)
export const THREAD_CONNECTIONS: Metric<[string]> = table.gauge(
  'thread_client_connections',
  ['thread'],
  'Client connections of the gateway thread, including handshakes',
)
export const THREAD_BUSY: Metric<[string]> = table.counter(
  'thread_busy_seconds_total',
  ['thread'],
  'Seconds in which the event loop of the gateway thread was busy; its maximum is 1 a second',
)
export const THREAD_REQUEST_RATE: Metric<[string]> = table.gauge(
  'thread_request_rate',
  ['thread'],
  'HTTP/2 requests a second that clients of the gateway thread began, in the last five seconds that were counted',
)
export const USER_OVERFLOWS: Metric<[string, string]> = table.counter(
  'flow_control_user_overflows_total',
  ['cluster', 'schema'],
  'Requests under a per-user limit whose user shared an entry with others because the table was full',
)
export const REDIS_UP: Metric<[]> = table.gauge(
  'global_limit_redis_up',
  [],
  '1 when Redis answers; 0 when each replica keeps to its part of the shared limits',
)
export const LIVE_REPLICAS: Metric<[]> = table.gauge(
  'global_limit_replicas',
  [],
  'Live replicas; while Redis does not answer, as of its last answer',
)
export const GLOBAL_LIMIT_STATE: Metric<[string, string]> = table.gauge(
  'global_limit_state',
  ['cluster', 'schema'],
  '1 when the limit is shared through Redis, 0 when this replica keeps to its part of it',
)
export const GLOBAL_LIMIT_AT_HAND: Metric<[string, string]> = table.gauge(
  'global_limit_at_hand',
  ['cluster', 'schema'],
  'Tokens, or slots for requests in flight, that this replica holds of a limit shared by all replicas',
)
export const DEGRADE_MODE: Metric<[string, string, string]> = table.gauge(
  'degrade_mode',
  ['cluster', 'mode', 'shadow'],
  'Always 1; the degrade mode in force, and whether it is in shadow mode',
)
export const DEGRADE_EXPIRATION: Metric<[string]> = table.gauge(
  'degrade_expiration_timestamp_seconds',
  ['cluster'],
  'When the degrade mode in force ends by itself; 0 = never. Missing while the mode is Off',
)
export const AUTO_DEGRADE_PHASE: Metric<[string, string]> = table.gauge(
  'degrade_auto_phase',
  ['cluster', 'phase'],
  '1 for the phase that spec.degrade.auto is in: Normal, Suspect, Degraded or Unknown',
)
export const AUTO_DEGRADE_ACTIONS: Metric<[string, string]> = table.counter(
  'degrade_auto_actions_total',
  ['cluster', 'action'],
  'Actions of spec.degrade.auto: Entered, Shadow, Stricter, Overruled',
)
export const CLUSTER_NODES: Metric<[string, string]> = table.gauge(
  'cluster_nodes',
  ['cluster', 'state'],
  'Nodes that spec.degrade.auto considers: ready, unready, starting, leaving',
)
export const AUTOSCALER_HEALTHY: Metric<[string]> = table.gauge(
  'autoscaler_healthy',
  ['cluster'],
  '1 when the cluster-autoscaler writes its status, and finds its cluster and node groups healthy',
)
export const AUTOSCALER_LAST_UPDATED: Metric<[string]> = table.gauge(
  'autoscaler_last_updated_timestamp_seconds',
  ['cluster'],
  'When the cluster-autoscaler last wrote its status, by its own clock',
)
export const AUTOSCALER_UNREADABLE: Metric<[string]> = table.counter(
  'autoscaler_status_unreadable_total',
  ['cluster'],
  'Statuses of the cluster-autoscaler that could not be read',
)
export const AUTOSCALER_OMITTED_GROUPS: Metric<[string]> = table.gauge(
  'autoscaler_nodegroups_omitted',
  ['cluster'],
  'Node groups beyond the first 50, which have no metrics',
)
export const NODEGROUP_BACKOFF: Metric<[string, string]> = table.gauge(
  'autoscaler_nodegroup_backoff',
  ['cluster', 'group'],
  '1 while the cluster-autoscaler does not scale the node group up because an earlier scale-up failed',
)
export const NODEGROUP_TARGET: Metric<[string, string]> = table.gauge(
  'autoscaler_nodegroup_target',
  ['cluster', 'group'],
  'Size of the node group that the cluster-autoscaler has requested',
)
export const NODEGROUP_REGISTERED: Metric<[string, string]> = table.gauge(
  'autoscaler_nodegroup_registered',
  ['cluster', 'group'],
  'Nodes of the node group',
)
export const NODEGROUP_UNHEALTHY: Metric<[string, string]> = table.gauge(
  'autoscaler_nodegroup_unhealthy',
  ['cluster', 'group'],
  '1 while the cluster-autoscaler finds the node group unhealthy',
)
export const ENDPOINT_HEALTHY: Metric<[string, string]> = table.gauge(
  'endpoint_healthy',
  ['cluster', 'endpoint'],
  '1 when the endpoint takes new requests',
)
export const CREDENTIAL_VALID: Metric<[string]> = table.gauge(
  'upstream_credential_valid',
  ['cluster'],
  '1 when the cluster accepts the credential of the gateway and grants every right that it needs',
)
export const CONFIG_GENERATION: Metric<[]> = table.gauge(
  'config_generation',
  [],
  'Number of changes of the configuration in force',
)
export const CONFIG_HASH: Metric<[]> = table.gauge(
  'config_hash',
  [],
  'Hash of the UpstreamClusters in force, with their Secrets; equal in all replicas with the same objects',
)
export const CONFIG_SUCCESSFUL: Metric<[]> = table.gauge(
  'config_last_reload_successful',
  [],
  '1 when the configuration was last read without an error',
)
export const CONFIG_SUCCESS_TIME: Metric<[]> = table.gauge(
  'config_last_reload_success_timestamp_seconds',
  [],
  'When the configuration was last read without an error',
)
export const CONFIG_PROBLEMS: Metric<['error' | 'warning']> = table.gauge(
  'config_problems',
  ['severity'],
  'Problems in the configuration, by severity',
)
export const MEMORY_CEILING: Metric<[]> = table.gauge(
  'memory_ceiling_bytes',
  [],
  'Maximum memory of the process, computed from its settings; 0 = a setting is unlimited',
)
export const MEMORY_LIMIT: Metric<[]> = table.gauge(
  'memory_limit_bytes',
  [],
  'Memory that the process may take: --memory-limit, the limit of its control group, or half of the machine',
)
export const CONFIG_CLUSTERS: Metric<[]> = table.gauge('config_clusters', [], 'UpstreamClusters in force')
export const CONTROL_OIDC_TOKENS: Metric<[string]> = table.counter(
  'control_oidc_tokens_total',
  ['result'],
  'ID tokens that the embedded API server has checked: accepted, or why they were refused',
)
export const CONTROL_OIDC_FETCHES: Metric<[string]> = table.counter(
  'control_oidc_key_fetches_total',
  ['result'],
  'Reads of the keys of the OpenID provider',
)
export const CONTROL_OIDC_KEYS_TIME: Metric<[]> = table.gauge(
  'control_oidc_keys_success_timestamp_seconds',
  [],
  'When the keys of the OpenID provider were last read; 0 = never',
)
export const SERVER_ADDRESSES: Metric<[string, string]> = table.gauge(
  'server_addresses',
  ['cluster', 'server'],
  'Addresses of a server with resolve',
)
export const SERVER_LOOKUPS: Metric<[string, string, string]> = table.counter(
  'server_lookups_total',
  ['cluster', 'server', 'result'],
  'Look-ups of a server with resolve',
)
