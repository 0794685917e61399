// For each alert of deploy/prometheus/rules.yaml: series that make it fire, the labels that it then has, and series that must not.
// promtool's notation: `1x9` is 1, ten times; `0+2x9` grows by 2 a minute.

export interface AlertCase {
  /** Series -> values. */
  readonly fires: Readonly<Record<string, string>>
  /** Labels of the alert, besides alertname and severity. */
  readonly as: Readonly<Record<string, string>>
  /** Close to it, or the same for too short a time. */
  readonly silent: Readonly<Record<string, string>>
}

/** Minutes of the worlds in which the cases are. */
export const MINUTES = 125
const ON = `1x${MINUTES}`
const OFF = `0x${MINUTES}`
const grows = (perMinute: number): string => `0+${perMinute}x${MINUTES}`
const is = (value: number): string => `${value}x${MINUTES}`
/** 1, but for the last minute. */
const onAtTheEnd = `0x${MINUTES - 1} 1`
const DAY = 86_400

const requests = (cluster: string): string => `portcullis_apiserver_request_total{cluster="${cluster}",code="200"}`
const refusals = (cluster: string, reason: string): string =>
  `portcullis_refusals_total{cluster="${cluster}",reason="${reason}"}`
const added = (cluster: string, part: string): string =>
  `portcullis_added_latency_seconds_${part.replace('{', `{cluster="${cluster}",`)}`
const flow = (what: string, schema: string): string => `portcullis_flow_control_${what}{cluster="f",schema="${schema}"}`
const healthy = (cluster: string, endpoint: string): string =>
  `portcullis_endpoint_healthy{cluster="${cluster}",endpoint="${endpoint}",instance="i"}`
const expires = (certificate: string): string =>
  `portcullis_certificate_expiration_timestamp_seconds{cluster="",certificate="${certificate}"}`
const reviewed = (cell: string, status: string): string =>
  `portcullis_webhook_request_count{cell="${cell}",status="${status}",cause="DeletePod"}`
const skew = (cell: string, bound: string): string =>
  `portcullis_cell_clock_skew_seconds{cell="${cell}",bound="${bound}"}`
const hash = (job: string, instance: string): string => `portcullis_config_hash{job="${job}",instance="${instance}"}`
const keyReads = (issuer: string, result: string): string =>
  `portcullis_issuer_key_fetches_total{instance="i",issuer="${issuer}",result="${result}"}`
const lookUps = (server: string, result: string): string =>
  `portcullis_server_lookups_total{cluster="l",server="${server}",result="${result}"}`

/** 1,200 requests a minute, of which so many fail; no-endpoint and others are a cluster's own, rate-limited is no failure. */
function failing(cluster: string, perMinute: number): Record<string, string> {
  return {
    [requests(cluster)]: grows(1200),
    [refusals(cluster, 'upstream-failed')]: grows(perMinute),
    [refusals(cluster, 'rate-limited')]: grows(600),
  }
}

function delayed(cluster: string, perMinute: number): Record<string, string> {
  return {
    [added(cluster, 'bucket{le="0.025"}')]: grows(1200 - perMinute),
    [added(cluster, 'count{}').replace(',}', '}')]: grows(1200),
  }
}

/** Without PortcullisAbsent, which fires where there is nothing. */
export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  PortcullisErrorBudgetBurnFast: {
    fires: failing('errors-fast', 24),
    as: { cluster: 'errors-fast' },
    // One failure among few requests is not an incident.
    silent: {
      ...failing('errors-some', 0.5),
      [requests('errors-few')]: grows(0.2),
      [refusals('errors-few', 'internal')]: OFF,
    },
  },
  PortcullisErrorBudgetBurnSlow: {
    fires: failing('errors-slow', 4.8),
    as: { cluster: 'errors-slow' },
    silent: failing('errors-within', 1),
  },
  PortcullisLatencyBudgetBurnFast: {
    fires: delayed('late-fast', 240),
    as: { cluster: 'late-fast' },
    silent: delayed('late-some', 6),
  },
  PortcullisLatencyBudgetBurnSlow: {
    fires: delayed('late-slow', 48),
    as: { cluster: 'late-slow' },
    silent: delayed('late-within', 11),
  },
  PortcullisNoEndpoint: {
    fires: { [healthy('gone', 'https://1')]: OFF },
    as: { cluster: 'gone', instance: 'i' },
    silent: { [healthy('well', 'https://1')]: ON },
  },
  PortcullisUpstreamFailing: {
    fires: {
      'portcullis_upstream_requests_total{cluster="u",code="500"}': grows(10),
      'portcullis_upstream_requests_total{cluster="u",code="200"}': grows(90),
    },
    as: { cluster: 'u' },
    silent: {
      'portcullis_upstream_requests_total{cluster="u",code="500"}': grows(1),
      'portcullis_upstream_requests_total{cluster="u",code="404"}': grows(50),
      'portcullis_upstream_requests_total{cluster="u",code="200"}': grows(49),
    },
  },
  PortcullisInternalErrors: {
    fires: { [refusals('bug', 'internal')]: grows(1) },
    as: { cluster: 'bug' },
    silent: { [refusals('bug', 'internal')]: is(7), [refusals('bug', 'no-policy')]: grows(9) },
  },
  PortcullisReviewsFail: {
    fires: {
      'portcullis_access_reviews_total{cluster="r",result="error"}': grows(60),
      [requests('r')]: grows(60),
    },
    as: { cluster: 'r' },
    silent: { 'portcullis_token_reviews_total{cluster="r",result="denied"}': grows(60), [requests('r')]: grows(60) },
  },
  PortcullisDegradeLeftOn: {
    fires: { 'portcullis_degrade_mode{cluster="d",mode="ReadOnly",shadow="false"}': ON },
    as: { cluster: 'd', mode: 'ReadOnly' },
    silent: {
      'portcullis_degrade_mode{cluster="d",mode="Freeze",shadow="true"}': ON,
      'portcullis_degrade_mode{cluster="e",mode="Off",shadow="false"}': ON,
      'portcullis_degrade_mode{cluster="f",mode="Freeze",shadow="false"}': `${'_ '.repeat(60)}1x64`,
    },
  },
  PortcullisDegradedAutomatically: {
    fires: { 'portcullis_degrade_auto_phase{cluster="d",phase="Degraded"}': ON },
    as: { cluster: 'd' },
    silent: { 'portcullis_degrade_auto_phase{cluster="d",phase="Suspect"}': ON },
  },
  PortcullisLimitSaturated: {
    fires: { [flow('inflight_requests', 'full')]: is(39), [flow('limit', 'full')]: is(40) },
    as: { cluster: 'f', schema: 'full' },
    silent: { [flow('inflight_requests', 'some')]: is(30), [flow('limit', 'some')]: is(40) },
  },
  PortcullisLimitRefuses: {
    fires: { [flow('rejected_total', 'tight')]: grows(60), [flow('admitted_total', 'tight')]: grows(600) },
    as: { cluster: 'f', schema: 'tight' },
    silent: {
      [flow('rejected_total', 'wide')]: grows(20),
      [flow('admitted_total', 'wide')]: grows(600),
      [flow('rejected_total', 'rare')]: grows(1),
    },
  },
  PortcullisListsRefused: {
    fires: { 'portcullis_list_guard_total{cluster="g",result="refused"}': grows(60) },
    as: { cluster: 'g' },
    silent: { 'portcullis_list_guard_total{cluster="g",result="shadow"}': grows(60) },
  },
  PortcullisRedisAway: {
    fires: { 'portcullis_global_limit_redis_up{instance="i"}': OFF },
    as: { instance: 'i' },
    silent: { 'portcullis_global_limit_redis_up{instance="i"}': ON },
  },
  PortcullisClientAbuse: {
    fires: { 'portcullis_http2_abuse_total{side="client",kind="rapid-reset"}': grows(60) },
    as: { kind: 'rapid-reset' },
    silent: { 'portcullis_http2_abuse_total{side="upstream",kind="rapid-reset"}': grows(60) },
  },
  PortcullisConnectionsRefused: {
    fires: { portcullis_client_connections_refused_total: grows(1) },
    as: {},
    silent: { portcullis_client_connections_refused_total: is(5) },
  },
  PortcullisReplicasDisagree: {
    fires: { [hash('p', 'i')]: is(7), [hash('p', 'j')]: is(8) },
    as: { job: 'p' },
    // Two installations have nothing to do with each other.
    silent: { [hash('p', 'i')]: is(7), [hash('p', 'j')]: is(7), [hash('q', 'k')]: is(9) },
  },
  PortcullisThreadBehind: {
    fires: {
      'portcullis_config_generation{instance="i",job="p"}': is(9),
      'portcullis_thread_config_generation{instance="i",job="p",thread="0"}': is(9),
      'portcullis_thread_config_generation{instance="i",job="p",thread="1"}': is(8),
    },
    as: { instance: 'i', job: 'p' },
    silent: {
      'portcullis_config_generation{instance="i",job="p"}': is(9),
      'portcullis_thread_config_generation{instance="i",job="p",thread="0"}': is(9),
    },
  },
  PortcullisThreadSilent: {
    fires: { 'portcullis_thread_answers{thread="1",instance="i"}': OFF },
    as: { thread: '1', instance: 'i' },
    silent: { 'portcullis_thread_answers{thread="1",instance="i"}': ON },
  },
  PortcullisThreadDied: {
    fires: { 'portcullis_thread_restarts_total{thread="1",instance="i"}': grows(1) },
    as: { thread: '1', instance: 'i' },
    silent: { 'portcullis_thread_restarts_total{thread="1",instance="i"}': is(2) },
  },
  PortcullisThreadBusy: {
    fires: { 'portcullis_thread_busy_seconds_total{thread="1",instance="i"}': grows(58) },
    as: { thread: '1', instance: 'i' },
    silent: { 'portcullis_thread_busy_seconds_total{thread="1",instance="i"}': grows(48) },
  },
  PortcullisEventLoopLag: {
    fires: { 'portcullis_nodejs_eventloop_lag_p99_seconds{instance="i"}': is(0.4) },
    as: { instance: 'i' },
    silent: { 'portcullis_nodejs_eventloop_lag_p99_seconds{instance="i"}': is(0.02) },
  },
  PortcullisThreadStalls: {
    fires: { 'portcullis_event_loop_stall_seconds_total{thread="0",step="decide",instance="i"}': grows(1) },
    as: { thread: '0', step: 'decide', instance: 'i' },
    silent: { 'portcullis_event_loop_stall_seconds_total{thread="0",step="decide",instance="i"}': grows(0.1) },
  },
  PortcullisFileDescriptors: {
    fires: {
      'portcullis_process_open_fds{instance="i"}': is(900),
      'portcullis_process_max_fds{instance="i"}': is(1000),
    },
    as: { instance: 'i' },
    silent: {
      'portcullis_process_open_fds{instance="i"}': is(500),
      'portcullis_process_max_fds{instance="i"}': is(1000),
    },
  },
  PortcullisConfigProblems: {
    fires: { 'portcullis_config_problems{severity="error"}': is(2) },
    as: { severity: 'warning' },
    silent: { 'portcullis_config_problems{severity="warning"}': is(2) },
  },
  PortcullisLastGoodState: {
    fires: { 'portcullis_last_good_serving_age_seconds{state="objects",instance="i"}': is(600) },
    as: { state: 'objects', instance: 'i' },
    silent: { 'portcullis_last_good_serving_age_seconds{state="objects",instance="i"}': OFF },
  },
  PortcullisLastGoodNotWritten: {
    fires: { 'portcullis_last_good_write_failures_total{state="objects",instance="i"}': grows(1) },
    as: { state: 'objects', instance: 'i' },
    silent: { 'portcullis_last_good_write_failures_total{state="objects",instance="i"}': is(1) },
  },
  PortcullisCertificateExpiresSoon: {
    fires: { [expires('serving')]: is(6 * DAY) },
    as: { certificate: 'serving' },
    silent: { [expires('control-ca')]: is(60 * DAY) },
  },
  PortcullisCertificateExpires: {
    fires: { [expires('control-serving')]: is(20 * DAY) },
    as: { certificate: 'control-serving' },
    silent: { [expires('control-serving')]: is(31 * DAY) },
  },
  PortcullisFileNotInForce: {
    fires: { 'portcullis_file_last_reload_successful{file="tls-cert-file",instance="i"}': OFF },
    as: { file: 'tls-cert-file', instance: 'i' },
    silent: { 'portcullis_file_last_reload_successful{file="tls-cert-file",instance="i"}': ON },
  },
  PortcullisCredentialInvalid: {
    fires: { 'portcullis_upstream_credential_valid{cluster="c",instance="i"}': OFF },
    as: { cluster: 'c', instance: 'i' },
    silent: { 'portcullis_upstream_credential_valid{cluster="c",instance="i"}': ON },
  },
  PortcullisOidcKeysStale: {
    fires: { 'portcullis_control_oidc_keys_success_timestamp_seconds{instance="i"}': OFF },
    as: { instance: 'i' },
    silent: { 'portcullis_control_oidc_keys_success_timestamp_seconds{instance="i"}': grows(60) },
  },
  PortcullisIssuerAway: {
    fires: { [keyReads('https://away', 'error')]: grows(12), [keyReads('https://away', 'success')]: is(1) },
    as: { instance: 'i', issuer: 'https://away' },
    // It was away for a moment.
    silent: {
      [keyReads('https://back', 'error')]: `0x${MINUTES - 10} 4x10`,
      [keyReads('https://back', 'success')]: `0+1x${MINUTES}`,
    },
  },
  PortcullisEndpointDown: {
    fires: { [healthy('half', 'https://1')]: OFF, [healthy('half', 'https://2')]: ON },
    as: { cluster: 'half', endpoint: 'https://1' },
    silent: { [healthy('half', 'https://1')]: `1x${MINUTES - 3} 0x3`, [healthy('half', 'https://2')]: ON },
  },
  PortcullisWatchesRestart: {
    fires: { 'portcullis_upstream_connections_closed_total{cluster="w",endpoint="e",cause="loss"}': grows(6) },
    as: { cluster: 'w' },
    silent: { 'portcullis_upstream_connections_closed_total{cluster="w",endpoint="e",cause="age"}': grows(6) },
  },
  PortcullisLookupsFail: {
    fires: { [lookUps('a', 'error')]: grows(2) },
    as: { cluster: 'l', server: 'a' },
    silent: { [lookUps('b', 'error')]: grows(1), [lookUps('b', 'found')]: grows(1) },
  },
  PortcullisAutoscalerUnhealthy: {
    fires: { 'portcullis_autoscaler_healthy{cluster="c"}': OFF },
    as: { cluster: 'c' },
    silent: { 'portcullis_autoscaler_healthy{cluster="c"}': ON },
  },
  PortcullisReadCacheNotServing: {
    fires: { 'portcullis_cache_serving{cluster="c",resource="pods"}': OFF },
    as: { cluster: 'c', resource: 'pods' },
    silent: { 'portcullis_cache_serving{cluster="c",resource="pods"}': ON },
  },
  PortcullisProtectionBlind: {
    fires: {
      'portcullis_ppr_following{instance="i"}': OFF,
      'portcullis_ppr_source_list_length{instance="i"}': ON,
    },
    as: { instance: 'i' },
    // No UpstreamCluster asks for protection.
    silent: {
      'portcullis_ppr_following{instance="i"}': OFF,
      'portcullis_ppr_source_list_length{instance="i"}': OFF,
    },
  },
  PortcullisDeletionsUnevaluated: {
    fires: { [reviewed('blind', 'Error')]: grows(1) },
    as: { cell: 'blind' },
    silent: { [reviewed('blind', 'AdmittedAll')]: grows(1) },
  },
  PortcullisDeletionsRefused: {
    fires: { [reviewed('busy', 'Rejected')]: grows(1) },
    as: { cell: 'busy' },
    silent: { [reviewed('busy', 'Rejected')]: '0x70 0+1x54', [reviewed('calm', 'Rejected')]: is(3) },
  },
  PortcullisCellSilent: {
    fires: {
      'portcullis_aggregator_next_event_pool_current_size{cell="still"}': is(3),
      'portcullis_aggregator_next_event_pool_drain_count_count{cell="still"}': is(8),
    },
    as: { cell: 'still' },
    silent: {
      'portcullis_aggregator_next_event_pool_current_size{cell="still"}': is(3),
      'portcullis_aggregator_next_event_pool_drain_count_count{cell="still"}': grows(8),
    },
  },
  PortcullisLeaders: {
    fires: {
      'portcullis_leader{cluster_class="core",elector_name="two",identity="a"}': ON,
      'portcullis_leader{cluster_class="core",elector_name="two",identity="b"}': ON,
    },
    as: { cluster_class: 'core', elector_name: 'two' },
    silent: {
      'portcullis_leader{cluster_class="core",elector_name="one",identity="a"}': ON,
      'portcullis_leader{cluster_class="core",elector_name="one",identity="b"}': OFF,
    },
  },
  PortcullisPodProtectorMalformed: {
    fires: { portcullis_ppr_malformed: ON },
    as: {},
    silent: { portcullis_ppr_malformed: onAtTheEnd },
  },
  PortcullisBelowMinimum: {
    fires: { portcullis_generator_monitor_workloads_proportion_available_workloads: is(0.9) },
    as: {},
    silent: { portcullis_generator_monitor_workloads_proportion_available_workloads: ON },
  },
  PortcullisProtectorsDangle: {
    fires: { 'portcullis_generator_action{resource="deployments",action="Dangling"}': grows(1) },
    as: { resource: 'deployments' },
    silent: { 'portcullis_generator_action{resource="deployments",action="Sync"}': grows(1) },
  },
  PortcullisClockSkew: {
    fires: { [skew('behind', 'most')]: is(-9), [skew('behind', 'least')]: is(-10) },
    as: { cell: 'behind' },
    silent: { [skew('near', 'most')]: is(4), [skew('near', 'least')]: is(3) },
  },
  PortcullisAuditLinesDropped: {
    fires: { 'portcullis_log_lines_dropped{log="audit"}': grows(1) },
    as: { log: 'audit' },
    silent: { 'portcullis_log_lines_dropped{log="audit"}': is(4) },
  },
  PortcullisAuditWebhookEventsLost: {
    fires: { 'portcullis_audit_webhook_events_total{result="failed"}': grows(1) },
    as: { result: 'failed' },
    silent: { 'portcullis_audit_webhook_events_total{result="sent"}': grows(60) },
  },
  PortcullisSessionsNotRecorded: {
    fires: { 'portcullis_session_recordings_total{cluster="unrecorded",result="incomplete"}': grows(1) },
    as: { cluster: 'unrecorded', result: 'incomplete' },
    silent: { 'portcullis_session_recordings_total{cluster="recorded",result="complete"}': grows(60) },
  },
  PortcullisRecordingsNotUploaded: {
    fires: { portcullis_session_recording_upload_oldest_seconds: is(2000) },
    as: {},
    silent: { portcullis_session_recording_upload_oldest_seconds: is(1700) },
  },
  PortcullisTracesLost: {
    fires: { 'portcullis_tracing_spans_total{result="failed"}': grows(60) },
    as: {},
    silent: { 'portcullis_tracing_spans_total{result="exported"}': grows(60) },
  },
  PortcullisLogLinesDropped: {
    fires: { 'portcullis_log_lines_dropped{log="access"}': grows(1) },
    as: { log: 'access' },
    silent: { 'portcullis_log_lines_dropped{log="access"}': is(4) },
  },
}

/** They come with others: a cluster that fails for ever spends its budget slowly, too; one without endpoints has one that is down. */
export const ALSO_FIRE: readonly (readonly [alert: string, labels: Readonly<Record<string, string>>])[] = [
  ['PortcullisErrorBudgetBurnSlow', { cluster: 'errors-fast' }],
  ['PortcullisLatencyBudgetBurnSlow', { cluster: 'late-fast' }],
  ['PortcullisEndpointDown', { cluster: 'gone', endpoint: 'https://1' }],
]
