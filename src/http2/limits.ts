// Limits and deadlines of a connection for its peer. One table for both sides.

import { ANSWER_WATER_BYTES, HIGH_WATER_BYTES } from '../kit/api/stream.ts'

export interface Http2Limits {
  /** SETTINGS_MAX_CONCURRENT_STREAMS; a stream above it is refused. Server side only. */
  readonly maxConcurrentStreams: number
  /** SETTINGS_MAX_HEADER_LIST_SIZE, bytes (name, value and 32 for each field). Above it: 431, or the stream is reset. */
  readonly maxHeaderListBytes: number
  /**
   * Octets of a header block beyond the largest list. A block with too large a list is read to its end, so that the
   * table stays in sync and the other streams go on; an even larger one ends the connection.
   */
  readonly blockSlackBytes: number
  /** SETTINGS_HEADER_TABLE_SIZE. */
  readonly headerTableBytes: number
  /** SETTINGS_INITIAL_WINDOW_SIZE, at least 65,535: bytes that the peer may send on a stream before they are consumed. */
  readonly streamWindowBytes: number
  /**
   * Growth of that window as bytes are consumed: until then each update gives back twice as much. An unread body stays small,
   * and a long one isn't limited by the round-trip time.
   */
  readonly streamWindowGrowthBytes: number
  /** Bytes queued on a stream above which their producer is paused. */
  readonly highWaterBytes: number
  /** Receive window of the connection, at least 65,535. */
  readonly connectionWindowBytes: number
  /** Granted initially, at least 65,535; the peer gets the rest once it is authenticated. Default: all. */
  readonly initialConnectionWindowBytes?: number
  /**
   * When the connection window is returned: when the bytes were consumed (memory is bounded by the window, but
   * one unread stream can block the others), or on arrival (no stream blocks another; memory is bounded by
   * the streams' windows).
   */
  readonly connectionCredit: 'when-taken' | 'at-once'
  /** SETTINGS_MAX_FRAME_SIZE. */
  readonly maxFrameBytes: number
  /** Deadline for the peer's preface and SETTINGS, and for completing a header block. */
  readonly headTimeoutMs: number
  /** Deadline for the acknowledgement of our SETTINGS. */
  readonly settingsTimeoutMs: number
  /** After this long without a byte from the peer a PING is sent; only while a stream is open. */
  readonly pingIntervalMs: number
  /** If no byte from the peer arrives by then, the connection counts as dead. */
  readonly pingTimeoutMs: number
  /** Bytes of response heads and control frames that a peer may leave unread. */
  readonly maxBacklogBytes: number
}

export interface ServerLimits extends Http2Limits {
  readonly initialConnectionWindowBytes: number
  /** If no stream was opened by then, the connection is drained. */
  readonly firstRequestMs: number
  /** Bytes of a request body still accepted after its response is complete. */
  readonly lateBodyBytes: number
  /** How long they are accepted. */
  readonly lateBodyMs: number
  /** A connection is drained this long after its last stream. PINGs do not keep it open. */
  readonly idleTimeoutMs: number
}

export const SERVER_LIMITS: ServerLimits = {
  maxConcurrentStreams: 250,
  maxHeaderListBytes: 1024 * 1024,
  blockSlackBytes: 64 * 1024,
  headerTableBytes: 4096,
  // Same as kube-apiserver's (apiserver/pkg/server/secure_serving.go).
  streamWindowBytes: 256 * 1024,
  streamWindowGrowthBytes: 0,
  highWaterBytes: ANSWER_WATER_BYTES,
  connectionWindowBytes: 4 * 1024 * 1024,
  // The protocol's default, without an update (RFC 9113 section 6.9.2).
  initialConnectionWindowBytes: 65_535,
  connectionCredit: 'when-taken',
  maxFrameBytes: 16_384,
  headTimeoutMs: 10_000,
  settingsTimeoutMs: 30_000,
  pingIntervalMs: 60_000,
  pingTimeoutMs: 30_000,
  firstRequestMs: 30_000,
  // Above kube-apiserver's limit of 3 MiB for a body (apiserver/pkg/server/config.go, MaxRequestBodyBytes).
  lateBodyBytes: 4 * 1024 * 1024,
  lateBodyMs: 10_000,
  // Longer than the 90 s after which client-go closes idle connections, so that the client closes first.
  idleTimeoutMs: 120_000,
  maxBacklogBytes: 4 * 1024 * 1024,
}

export const CLIENT_SIDE_LIMITS: Http2Limits = {
  maxConcurrentStreams: 0,
  // Also over HTTP/1.1 (io/upstream/http1/answer-reader.ts). A kube-apiserver's own heads are below 1 KiB; few of the servers behind it send 64 KiB.
  maxHeaderListBytes: 256 * 1024,
  // Go's server does not honour our SETTINGS_MAX_HEADER_LIST_SIZE, and a kube-apiserver passes on heads of up to 10 MiB that
  // pods and services send (net/http, Transport.MaxResponseHeaderBytes) to users who share the connection with others.
  blockSlackBytes: 12 * 1024 * 1024,
  headerTableBytes: 4096,
  // A response held until it is complete (gateway/request/held-answer.ts) arrives without an update.
  streamWindowBytes: 80 * 1024,
  streamWindowGrowthBytes: 432 * 1024,
  highWaterBytes: HIGH_WATER_BYTES,
  connectionWindowBytes: 16 * 1024 * 1024,
  connectionCredit: 'at-once',
  maxFrameBytes: 16_384,
  headTimeoutMs: 5_000,
  settingsTimeoutMs: 10_000,
  // client-go's own numbers (HTTP2_READ_IDLE_TIMEOUT_SECONDS, HTTP2_PING_TIMEOUT_SECONDS).
  pingIntervalMs: 30_000,
  pingTimeoutMs: 15_000,
  maxBacklogBytes: 64 * 1024 * 1024,
}
