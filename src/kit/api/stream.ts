// The seam between the request path and the wire: one request and its response, whatever the protocol. The spine and all of src/gateway/ know only
// this; HTTP/1.1 and HTTP/2 live below it in src/gateway/io/.

/**
 * Header fields in wire order: name, value, name, value, ... One flat array; names are lower-case; duplicates stay
 * separate. Pseudo-header fields (RFC 9113 section 8.3) come first and are present for HTTP/1.1 too, so that
 * `:method`, `:path` (the raw request target), `:authority` and `:scheme` are read the same way everywhere.
 * Values are latin1 strings, one character per byte (see RFC 9110 section 5.5).
 */
export type HeaderList = string[]

/**
 * Header fields shared by many requests, those of one identity: HTTP/2 encodes them once, as literals that enter no table (RFC 7541 section 6.2.3),
 * so that the bytes are the same on every connection.
 */
export interface SharedFields {
  readonly list: HeaderList
  /** The encoded form; cached by the first HTTP/2 connection that sends it. */
  encoded: EncodedFields | undefined
}

/** Header fields as HPACK literals. */
export interface EncodedFields {
  readonly octets: Uint8Array
  /** List size by RFC 9113 section 6.5.2: name, value and 32 for each field. */
  readonly listBytes: number
}

/** Why a stream ends early. */
export type ResetReason =
  /** The other side of the gateway went away: RST_STREAM CANCEL, or the HTTP/1.1 connection is destroyed. */
  | 'cancel'
  /** An error in the gateway or a peer: RST_STREAM INTERNAL_ERROR. */
  | 'internal'
  /** The peer did not process the request at all: safe to retry (RFC 9113 section 8.7). */
  | 'refused'
  /** The peer violated the protocol. */
  | 'protocol'
  /** The connection was lost, or closed before the message was complete. */
  | 'connection'
  /** Nothing was sent: the head exceeds the peer's limit (SETTINGS_MAX_HEADER_LIST_SIZE, RFC 9113 section 6.5.2). */
  | 'head-too-large'
  /** Nothing was sent: refused so that other sources get their share. */
  | 'overloaded'

/** A certificate that a peer presented, leaf first in `chain`. Plain data. */
export interface PeerCertificate {
  /** DER of the leaf and of every intermediate presented, leaf first. */
  readonly chain: readonly Buffer[]
  /** True if OpenSSL verified the chain in the handshake against the client CAs in force for this connection. */
  readonly verified: boolean
  /** OpenSSL's reason, if not verified. */
  readonly verifyError: string
}

/** The source of work, which is charged for it: shared resources are divided among sources. Immutable, and the same object for many requests. */
export interface Charge {
  /** A user of a cluster, or an address (IPv6: a /64 network); unique, and readable in responses and logs. */
  readonly source: string
  /** Weight of its share relative to others; 1 = the default. */
  readonly weight: number
  /** Whether the source is an authenticated user. */
  readonly known: boolean
}

/** Facts about one client connection, computed once. */
export interface Peer {
  /** Unique in the process: key of per-connection caches. */
  readonly id: number
  readonly protocol: 'h2' | 'http/1.1'
  /** SNI, lower-case, without trailing dot; '' if the client sent none. */
  readonly serverName: string
  /** Name of the UpstreamCluster selected by SNI; '' = none. */
  readonly tlsCluster: string
  /** Addresses from the client's point of view: behind a load balancer with PROXY protocol, those it declared. */
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
  /** Address of the load balancer that declared these addresses; '' = they are the connection's own. */
  readonly proxyAddress: string
  readonly certificate: PeerCertificate | undefined
  /** Its address: pays for unauthenticated and anonymous requests. */
  readonly addressCharge: Charge
  /** The source that is charged for the connection: its address, later the most recently authenticated user. */
  charge: Charge
  /** Accepts no more requests on this connection: GOAWAY, or `Connection: close` on the next response. Running ones finish. */
  drain(): boolean
  /** Per-connection memory of the request path: identity per cluster, nothing else. Dies with the connection. */
  readonly memo: Map<string, unknown>
}

/** Accounts for the memory of a queued response. */
export interface QueueMeter {
  /** @param bytes of memory in use now; 0 = nothing is queued, or the stream is over */
  onQueued(bytes: number): void
}

/** One request and its response; server and client side look alike. */
export interface Stream {
  /** Bytes passed to `body()` that the peer has not taken yet. */
  readonly queued: number
  /** Server side: the memory those bytes occupy. Default: the same number. */
  readonly memory?: number
  /** Server side: called whenever that memory changes. Default: none. */
  meter?: QueueMeter | undefined
  /** Server side: the response head (`:status` first; 1xx any number of times). Client side: sent by `open`. */
  headers(list: HeaderList, end: boolean): void
  /** Never blocks; check `queued`. Bytes that must wait are copied: `chunk` may come from an `onBody`. */
  body(chunk: Buffer, end: boolean): void
  /** Ends the message with trailers. */
  trailers(list: HeaderList): void
  /** The other side consumed this much of what `onBody` delivered: the window may be returned to the sender. */
  credit(bytes: number): void
  reset(reason: ResetReason): void
}

/** Events on a stream. Nothing is called after onReset. */
export interface StreamEvents {
  /** Client side: a response head, including 1xx (then `end` is false and another follows). Server side: unused. */
  onHeaders(list: HeaderList, end: boolean): void
  /** `chunk` is only valid during the call: the next read may overwrite it. */
  onBody(chunk: Buffer, end: boolean): void
  onTrailers(list: HeaderList): void
  /** `queued` was above LEAST_WATER_BYTES and has fallen: below HIGH_WATER_BYTES (for a response: ANSWER_WATER_BYTES), then further, and finally to 0. */
  onDrained(): void
  /** The message will not be completed. */
  onReset(reason: ResetReason): void
}

/** Queued bytes of a request above which its producer is to be paused. */
export const HIGH_WATER_BYTES: number = 256 * 1024

/** The same for a response: lower, since one may be hundreds of megabytes and a client may request many and read none. */
export const ANSWER_WATER_BYTES: number = 64 * 1024

/** The same for a response to a client that already has its share queued: about one write's worth. */
export const LEAST_WATER_BYTES: number = 16 * 1024

/** Called by a server for each request; returns the receiver of the request body. */
export type RequestHandler = (peer: Peer, stream: Stream, head: HeaderList, end: boolean) => StreamEvents
