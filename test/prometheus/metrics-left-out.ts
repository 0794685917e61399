// Metrics that no dashboard and no alert uses, and why; those that the busy gateway of the test does not have; and names that promtool faults.

/** Pattern of the names, without `portcullis_` -> why nothing shows them. */
export const NOT_SHOWN: Readonly<Record<string, string>> = {
  '(process_cpu_(user|system)_seconds_total|process_(virtual_memory|heap)_bytes|process_start_time_seconds|heartbeat)':
    'process_cpu_seconds_total and process_resident_memory_bytes say it better; for debugging one process',
  'nodejs_(active_.*|version_info|gc_duration_seconds|heap_s.*_bytes|eventloop_lag_.*)':
    'about the main thread, which serves no requests: one number for its delay and one for its memory are shown',
  thread_waiting_bytes: 'for debugging memory; limited_total says who waits',
  last_good_file_bytes: 'its size does not matter while it can be written',
  control_oidc_tokens_total: 'logins at the API server of the objects: for debugging them',
  id_tokens_total: 'why a token is not accepted: for debugging a login',
  'autoscaler_(last_updated_timestamp_seconds|status_unreadable_total)': 'autoscaler_healthy is 0 for both',
  'scale_up_guard_.*': 'for one cluster at a time, in the status of the guard: kubectl get scaleupguard',
  'access_grant(s|_changes_total)': 'who has access is in portcullis access list, and each use in the audit log',
  'generator_monitor_workloads_.*': "Podseidon's, for its own dashboards; the sums that matter are shown",
  'leader_(event|heartbeat)': 'PortcullisLeaders looks at leader',
  'aggregator_next_event_pool_(current_latency|drain_period|drain_object_latency)':
    "Podseidon's; PortcullisCellSilent looks at the size of the pool and whether it drains",
  '(aggregator|ppr)_index_error': 'PortcullisPodProtectorMalformed says the same of what is there now',
  aggregator_update_trigger_spin: 'for debugging the trigger',
  webhook_http_error: 'calls by strangers; the log has their address',
  'cache_(objects|watchers|upstream_watches)':
    'for looking closer at the read cache: its reads, bytes and age are shown',
  session_recording_dir_bytes: 'PortcullisSessionsNotRecorded says when it is too much',
  healthck_failure: 'who asks for health is told which check fails',
  upstream_connections_ended_by_requests_total: 'the log says whose requests, each time',
  early_answers_total: 'for finding out why a client reports a reset instead of its answer',
  limited_total: 'whose share it was is in the access log; what was refused is shown as refusals',
  client_handshakes: 'for debugging a storm; what is closed is shown',
  memory_limit_bytes: 'the ceiling is shown; a start says how much there is',
  degrade_unchecked_total: 'the log says why, each time',
  'kube_client_request_(size_bytes|retries_total)|kube_client_response_size_bytes': 'for debugging such calls',
}

/** The busy gateway has none of it: more replicas with CRDs, a webhook, an API server that is away. Name -> its labels. */
export const NOT_MADE_HERE: Readonly<Record<string, readonly string[]>> = {
  id_tokens_total: ['cluster', 'result'],
  leader: ['cluster_class', 'elector_name', 'identity'],
  generator_action: ['group', 'version', 'resource', 'action'],
  aggregator_next_event_pool_current_size: ['cell'],
  aggregator_next_event_pool_drain_count: ['cell'],
}

/** promtool check metrics: Podseidon's counters, without `_total`. Its dashboards and alerts, and ours, have these names. */
export const PROMTOOL_EXCEPTIONS: ReadonlySet<string> = new Set([
  'aggregator_index_error',
  'aggregator_update_trigger_spin',
  'generator_action',
  'healthck_failure',
  'leader_event',
  'ppr_index_error',
  'ppr_source_list_error',
  'webhook_http_error',
])
