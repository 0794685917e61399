// Names and helps of all metrics that threads count. Names are kube-apiserver's where it has one, after `portcullis_`.

import { type Family, familyOf } from './exposition.ts'

export const REQUESTS: Family = familyOf(
  'portcullis_apiserver_request_total',
  'counter',
  'Requests, by the code that the client got; 0 = none',
)
export const DURATION: Family = familyOf(
  'portcullis_apiserver_request_duration_seconds',
  'histogram',
  'From the request head to the end of the answer; long-running requests are not in it',
)
export const RESPONSE_SIZES: Family = familyOf(
  'portcullis_apiserver_response_sizes',
  'histogram',
  'Bytes of the bodies of reads',
)
export const LONG_RUNNING: Family = familyOf(
  'portcullis_apiserver_longrunning_requests',
  'gauge',
  'Long-running requests open',
)
export const WATCHERS: Family = familyOf('portcullis_apiserver_registered_watchers', 'gauge', 'Watches open')
export const INFLIGHT: Family = familyOf(
  'portcullis_apiserver_current_inflight_requests',
  'gauge',
  'Requests running, long-running ones apart',
)
export const ADDED: Family = familyOf(
  'portcullis_added_latency_seconds',
  'histogram',
  'What the gateway added to the time until the response head: that time less what upstream took',
)
export const REFUSALS: Family = familyOf(
  'portcullis_refusals_total',
  'counter',
  'Requests that the gateway refused, by reason and by the rule or limit',
)
export const SHADOW: Family = familyOf(
  'portcullis_shadow_refusals_total',
  'counter',
  'Requests that would have been refused, were the rule not in shadow mode',
)
export const UPSTREAM: Family = familyOf(
  'portcullis_upstream_requests_total',
  'counter',
  'Requests answered by an endpoint, by code; 0 = broken off',
)
export const ADMITTED: Family = familyOf(
  'portcullis_flow_control_admitted_total',
  'counter',
  'Requests that a flow control schema let through',
)
export const REJECTED: Family = familyOf(
  'portcullis_flow_control_rejected_total',
  'counter',
  'Requests that a flow control schema refused with 429',
)
export const ABORTS: Family = familyOf(
  'portcullis_apiserver_request_aborts_total',
  'counter',
  'Requests broken off before the answer was complete',
)
export const EJECTIONS: Family = familyOf(
  'portcullis_endpoint_ejections_total',
  'counter',
  'How often an endpoint was taken out because requests to it failed',
)
export const RETRIES: Family = familyOf(
  'portcullis_upstream_retries_total',
  'counter',
  'Requests sent again to another endpoint, by cause',
)
export const UPSTREAM_CONNECTIONS: Family = familyOf(
  'portcullis_upstream_connections',
  'gauge',
  'Open connections to an endpoint, by class',
)
export const FLOW_INFLIGHT: Family = familyOf(
  'portcullis_flow_control_inflight_requests',
  'gauge',
  'Requests that hold a slot of a flow control schema',
)
export const TOKEN_REVIEWS: Family = familyOf(
  'portcullis_token_reviews_total',
  'counter',
  'TokenReviews sent upstream, by result',
)
export const TOKEN_CACHE: Family = familyOf(
  'portcullis_token_cache_lookups_total',
  'counter',
  'Bearer tokens looked up in the cache',
)
export const ACCESS_REVIEWS: Family = familyOf(
  'portcullis_access_reviews_total',
  'counter',
  'SubjectAccessReviews sent upstream for impersonation asked by clients, by result',
)
export const UPSTREAM_OPENED: Family = familyOf(
  'portcullis_upstream_connections_opened_total',
  'counter',
  'Connections made to an endpoint',
)
export const UPSTREAM_FAILED: Family = familyOf(
  'portcullis_upstream_connect_errors_total',
  'counter',
  'Connections to an endpoint that could not be made',
)
export const UPSTREAM_CLOSED: Family = familyOf(
  'portcullis_upstream_connections_closed_total',
  'counter',
  'Connections to an endpoint that ended, by cause',
)
export const CLIENT_CONNECTIONS: Family = familyOf(
  'portcullis_client_connections',
  'gauge',
  'Open connections of clients',
)
export const CLIENTS_REFUSED: Family = familyOf(
  'portcullis_client_connections_refused_total',
  'counter',
  'Connections closed as they came, because their address has too many',
)
export const HANDSHAKE_ERRORS: Family = familyOf(
  'portcullis_apiserver_tls_handshake_errors_total',
  'counter',
  'TLS handshakes that clients did not complete',
)
export const LOG_LINES_DROPPED: Family = familyOf(
  'portcullis_log_lines_dropped',
  'gauge',
  'Lines that a log dropped because its reader was too slow',
)
export const HTTP2_ABUSE: Family = familyOf(
  'portcullis_http2_abuse_total',
  'counter',
  'HTTP/2 connections and streams ended because of what the peer did, by kind',
)
export const HTTP2_OPENED: Family = familyOf(
  'portcullis_http2_connections_opened_total',
  'counter',
  'HTTP/2 connections begun',
)
export const HTTP2_CLOSED: Family = familyOf(
  'portcullis_http2_connections_closed_total',
  'counter',
  'HTTP/2 connections ended',
)
export const HTTP2_GOAWAY: Family = familyOf('portcullis_http2_goaway_total', 'counter', 'GOAWAY frames, by direction')
export const HTTP2_REFUSED: Family = familyOf(
  'portcullis_http2_streams_refused_total',
  'counter',
  'HTTP/2 streams answered with REFUSED_STREAM',
)
export const HTTP2_HEADS_NOT_SENT: Family = familyOf(
  'portcullis_http2_heads_not_sent_total',
  'counter',
  'Heads that were larger than the peer takes, and were not sent',
)
export const HTTP2_TIMEOUTS: Family = familyOf(
  'portcullis_http2_timeouts_total',
  'counter',
  'HTTP/2 connections ended because a frame of the peer did not come in time, by frame',
)
