// The seam between the request path and the wire: one request and its response, whatever the protocol underneath.
// The spine and everything in src/gateway/request/ know only this; HTTP/1.1 and HTTP/2 live below it in src/gateway/io/.

/**
 * Header fields in wire order: name, value, name, value, ... One flat array; names are lower-case; duplicates stay
 * separate. Pseudo-header fields (RFC 9113 section 8.3) come first and are present for HTTP/1.1 too, so that
 * `:method`, `:path` (the raw request target), `:authority` and `:scheme` are read the same way everywhere.
 * Values are latin1 strings, one character per byte (see RFC 9110 section 5.5).
 */
export type HeaderList = string[]

/**
 * Header fields that many requests share, those of one identity: HTTP/2 encodes them once, as literals that enter no
 * table (RFC 7541 section 6.2.3), so that the bytes are the same on every connection.
 */
export interface SharedFields {
  readonly list: HeaderList
  /** The encoded form; made by the first HTTP/2 connection that sends it. */
  encoded: EncodedFields | undefined
}

/** Header fields as HPACK literals. */
export interface EncodedFields {
  readonly octets: Uint8Array
  /** Size of the list as RFC 9113 section 6.5.2 counts it: name, value and 32 for each field. */
  readonly listBytes: number
}

/** Why a stream ends before its time. */
export type ResetReason =
  /** The other side of the gateway went away: RST_STREAM CANCEL, or the HTTP/1.1 connection is destroyed. */
  | 'cancel'
  /** The gateway or a peer broke: RST_STREAM INTERNAL_ERROR. */
  | 'internal'
  /** The peer did not process the request at all: safe to send again (RFC 9113 section 8.7). */
  | 'refused'
  /** The peer broke the protocol. */
  | 'protocol'
  /** The connection was lost, or closed before the message was complete. */
  | 'connection'
  /** Nothing was sent: the head is larger than the peer takes (SETTINGS_MAX_HEADER_LIST_SIZE, RFC 9113 section 6.5.2). */
  | 'head-too-large'
  /** Nothing was sent: others have to get a share of what it waited for. */
  | 'overloaded'

/** A certificate that a peer presented, leaf first in `chain`. Plain data. */
export interface PeerCertificate {
  /** DER of the leaf and of every intermediate presented, leaf first. */
  readonly chain: readonly Buffer[]
  /** True when OpenSSL verified the chain in the handshake against the client CAs in force for this connection. */
  readonly verified: boolean
  /** OpenSSL's reason, when not verified. */
  readonly verifyError: string
}

/** Who pays for work: what is shared is divided among sources. Immutable, and the same object for many requests. */
export interface Charge {
  /** A user of a cluster, or an address (IPv6: a network of 64 bits); unique, and readable in answers and logs. */
  readonly source: string
  /** How large its share is beside those of others; 1 = as everybody's. */
  readonly weight: number
  /** Whether it is a user who was authenticated. */
  readonly known: boolean
}

/** Facts of one client connection, computed once. */
export interface Peer {
  /** Unique in the process: keys of per-connection caches. */
  readonly id: number
  readonly protocol: 'h2' | 'http/1.1'
  /** SNI, lower-case, without trailing dot; '' when the client sent none. */
  readonly serverName: string
  /** Name of the UpstreamCluster that SNI named; '' when it named none. */
  readonly tlsCluster: string
  /** As the client sees them: behind a load balancer with PROXY protocol those that it declared. */
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
  /** Of the load balancer that declared these addresses; '' = they are those of the connection. */
  readonly proxyAddress: string
  readonly certificate: PeerCertificate | undefined
  /** Its address: pays for what has not been authenticated, and for anonymous requests. */
  readonly addressCharge: Charge
  /** Who pays for the connection: its address, and once a request was authenticated the user of the last such one. */
  charge: Charge
  /** No more requests on this connection: GOAWAY, or `Connection: close` on the next answer. Running ones finish. */
  drain(): boolean
  /** Per-connection memory of the request path: identity per cluster, and no more. Dies with the connection. */
  readonly memo: Map<string, unknown>
}

/** Counts the memory of an answer that waits. */
export interface QueueMeter {
  /** @param bytes of memory that it takes now; 0 = nothing waits, or the stream is over */
  onQueued(bytes: number): void
}

/** One request and its response; the server side and the client side look alike. */
export interface Stream {
  /** Bytes given to `body()` that the peer has not taken yet. */
  readonly queued: number
  /** Server side: the memory that those bytes take. Default: as many bytes. */
  readonly memory?: number
  /** Server side: told whenever that memory has changed. Default: nobody. */
  meter?: QueueMeter | undefined
  /** Server side: the response head (`:status` first; 1xx any number of times). Client side: sent by `open`. */
  headers(list: HeaderList, end: boolean): void
  /** Never blocks; look at `queued`. What has to wait is copied: `chunk` may be of an `onBody`. */
  body(chunk: Buffer, end: boolean): void
  /** Ends the message with trailers. */
  trailers(list: HeaderList): void
  /** The other side took this much of what `onBody` brought: the window may be given back to the sender. */
  credit(bytes: number): void
  reset(reason: ResetReason): void
}

/** What happens on a stream. After onReset nothing more is called. */
export interface StreamEvents {
  /** Client side: a response head, 1xx included (then `end` is false and another follows). Server side: not used. */
  onHeaders(list: HeaderList, end: boolean): void
  /** `chunk` is valid during the call: the next read may overwrite it. */
  onBody(chunk: Buffer, end: boolean): void
  onTrailers(list: HeaderList): void
  /**
   * `queued` was above LEAST_WATER_BYTES and has fallen: below HIGH_WATER_BYTES (of an answer: ANSWER_WATER_BYTES), then further, and at
   * last to 0.
   */
  onDrained(): void
  /** The message will not be completed. */
  onReset(reason: ResetReason): void
}

/** Bytes of a request queued on a stream above which a producer is to be paused. */
export const HIGH_WATER_BYTES: number = 256 * 1024

/** The same of an answer: less, since one may be hundreds of megabytes and its client asks for many and takes none. */
export const ANSWER_WATER_BYTES: number = 64 * 1024

/** The same of an answer to somebody who already has a share of what may wait: about what goes into one write. */
export const LEAST_WATER_BYTES: number = 16 * 1024

/** Called by a server for each request; returns what is to hear of the request body. */
export type RequestHandler = (peer: Peer, stream: Stream, head: HeaderList, end: boolean) => StreamEvents
