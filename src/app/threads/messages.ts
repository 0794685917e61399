// What the main thread and the gateway threads say to each other. Everything is plain data that can be cloned, apart
// from memory that stays shared. No request waits for the main thread but a deletion of a pod that may be protected: a
// thread serves with what it has.

import type { ProtectionRequest, ProtectionVerdict, Reservation } from '../../api/ports/protection.ts'
import type { ListenAddress } from '../../core/cluster/listen-address.ts'
import type { ServingPair } from '../../io/listener/tls-contexts.ts'
import type { MetricsSnapshot } from '../../io/metrics/recorder.ts'
import type { EndpointDescription } from '../../io/upstream/upstreams.ts'
import type { ClusterHandle } from '../../state/clusters.ts'
import type { ThreadPlace } from '../../state/thread-place.ts'
import type { Config } from '../config/config.ts'

/** What a thread is born with. */
export interface ThreadData {
  readonly place: ThreadPlace
  readonly config: Config
  readonly serving: ServingPair
  readonly accessLog: boolean
  readonly auditLog: boolean
  /** One word: characters of log lines that the main thread has taken so far, modulo 2^32. */
  readonly linesTaken: Int32Array<SharedArrayBuffer>
}

export type ToThread =
  /** A cluster that is new or has changed; in force with the next `commit`. */
  | { readonly type: 'cluster'; readonly handle: ClusterHandle }
  /** Puts what came since the last one in force, and drops clusters. Answered by `applied`. */
  | { readonly type: 'commit'; readonly generation: number; readonly removed: readonly string[] }
  /** Opens the ports; answered by `listening` or `failed`. */
  | { readonly type: 'listen'; readonly addresses: readonly ListenAddress[] }
  /** Answered by `report`. */
  | { readonly type: 'report'; readonly id: number }
  /** In which namespaces pods may have a protector; undefined = in any. */
  | { readonly type: 'protected-namespaces'; readonly namespaces: readonly string[] | undefined }
  /** What a cluster says against the gateway's own credential; '' = nothing any more. */
  | { readonly type: 'credential-fault'; readonly cluster: string; readonly fault: string }
  /** The answer to `protect`, one for each request. */
  | { readonly type: 'verdicts'; readonly id: number; readonly verdicts: readonly ProtectionVerdict[] }
  /** No new connections, running requests finish, watches end spread over the drain time. Answered by `drained`. */
  | { readonly type: 'drain' }
  /** Ends all requests and connections now. */
  | { readonly type: 'abort' }
  /** Closes everything; answered by `ended`, the last message. */
  | { readonly type: 'end' }

export type FromThread =
  /** Ready for messages. */
  | { readonly type: 'online' }
  | { readonly type: 'applied'; readonly generation: number }
  /** Ports in the order of the addresses. */
  | { readonly type: 'listening'; readonly ports: readonly number[] }
  /** An address cannot be listened on. */
  | { readonly type: 'failed'; readonly address: ListenAddress; readonly message: string; readonly code: string }
  /** Unasked too, every few seconds, so that little is lost with a thread; `id` is 0 then. */
  | { readonly type: 'report'; readonly id: number; readonly report: ThreadReport }
  | { readonly type: 'lines'; readonly lines: ThreadLines }
  /** Deletions to be judged together. Answered by `verdicts`. */
  | { readonly type: 'protect'; readonly id: number; readonly requests: readonly ProtectionRequest[] }
  /** Deletions that upstream has refused, or that were not sent. */
  | { readonly type: 'release'; readonly reservations: readonly Reservation[] }
  | { readonly type: 'drained' }
  | { readonly type: 'ended' }

/** How a thread is doing. */
export interface ThreadReport {
  readonly metrics: MetricsSnapshot
  /** Requests that run. */
  readonly running: number
  /** Connections of clients. */
  readonly clients: number
  readonly tokensRemembered: number
  readonly upstreams: readonly EndpointDescription[]
}

/** What one turn of a thread's event loop has to tell; at most one message per turn. */
export interface ThreadLines {
  readonly log: readonly LogCall[]
  readonly access: readonly string[]
  readonly audit: readonly string[]
  /** Endpoints to which a connection broke: to be probed soon. */
  readonly broken: readonly BrokenEndpoint[]
  /** Clusters that may have refused the gateway itself: to be asked soon. */
  readonly refusing: readonly string[]
  /** Characters in all of it, about: what `linesTaken` is to be moved on by. */
  readonly size: number
}

export interface LogCall {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | undefined
}

export interface BrokenEndpoint {
  readonly cluster: string
  readonly endpoint: string
}
