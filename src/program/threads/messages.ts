// The messages between the main thread and the gateway threads. Everything is plain data that can be cloned, except shared memory. No request waits
// for the main thread except a deletion of a pod that may be protected, and a scale-down that is checked: a thread serves with what it has.

import type { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import type { AuditPolicy } from '../../audit/core/policy.ts'
import type { ListSize } from '../../gateway/api/list-request.ts'
import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import type { MetricsChanges } from '../../gateway/metrics/recorder.ts'
import type { ClusterHandle } from '../../gateway/state/clusters.ts'
import type { ThreadPlace } from '../../gateway/state/thread-place.ts'
import type { ListenAddress } from '../../kit/core/listen-address.ts'
import type { TopicMessage } from '../../kit/core/topics/topics.ts'
import type { Config } from '../../process/config/config.ts'
import type { Block } from '../../process/failures/address-failures.ts'
import type { FromStreams, ToStreams } from './streams.ts'
import type { CallsFromThread, CallsToThread } from './thread-calls.ts'

/** Start data of a thread. */
export interface ThreadData {
  readonly place: ThreadPlace
  readonly config: Config
  readonly serving: ServingPair
  readonly accessLog: boolean
  readonly auditLog: boolean
  /** What the audit log records; undefined = every request, at level Metadata. */
  readonly auditPolicy: AuditPolicy | undefined
  /** One word: characters of log lines consumed by the main thread so far, modulo 2^32. */
  readonly linesTaken: Int32Array<SharedArrayBuffer>
  /** Memory of KnownTokens. */
  readonly knownTokens: Int32Array<SharedArrayBuffer>
  /** Memory of ConnectionPlaces. */
  readonly connectionPlaces: Int32Array<SharedArrayBuffer>
}

export type ToThread =
  | CallsToThread
  | ToStreams
  /** New or changed clusters; in force with the next `commit`. */
  | { readonly type: 'clusters'; readonly handles: readonly ClusterHandle[] }
  /** Puts the clusters since the last commit in force, and drops removed ones. Answered by `applied`. */
  | { readonly type: 'commit'; readonly generation: number; readonly removed: readonly string[] }
  /** Replaces the gateway's own certificate for new connections. */
  | { readonly type: 'serving'; readonly serving: ServingPair }
  /** Replaces the audit policy for requests authenticated from now on. */
  | { readonly type: 'audit-policy'; readonly policy: AuditPolicy }
  /** Opens the ports; answered by `listening` or `failed`. */
  | { readonly type: 'listen'; readonly addresses: readonly ListenAddress[] }
  /** A line to another thread, which gets the other end. */
  | { readonly type: 'line'; readonly thread: number; readonly port: MessagePort }
  /** An unread connection to an inherited socket, with a place taken in this thread; `listener` is the index of its address in `listen`. */
  | { readonly type: 'connection'; readonly listener: number; readonly socket: Socket }
  /** The open listeners of the process. */
  | { readonly type: 'own-listeners'; readonly addresses: readonly ListenAddress[] }
  /** A message of one subject to all threads. */
  | TopicMessage
  /** Sources blocked after too many failures. */
  | { readonly type: 'blocked'; readonly blocks: readonly Block[] }
  /** Why a cluster rejects the gateway's own credential; '' = it no longer does. */
  | { readonly type: 'credential-fault'; readonly cluster: string; readonly fault: string }
  /** What other threads have learned about list sizes of a cluster. */
  | { readonly type: 'list-sizes'; readonly cluster: string; readonly sizes: readonly ListSize[] }
  /** From now on each HTTP/1.1 response is the last of its connection; everything else continues. */
  | { readonly type: 'leave' }
  /** No new connections, running requests finish, watches end spread over the drain time. Answered by `drained`. */
  | { readonly type: 'drain' }
  /** Aborts all requests and connections. */
  | { readonly type: 'abort' }
  /** Closes everything; answered by `ended`, the last message. */
  | { readonly type: 'end' }

export type FromThread =
  | CallsFromThread
  | FromStreams
  /** Ready for messages. */
  | { readonly type: 'online' }
  | { readonly type: 'applied'; readonly generation: number }
  /** Ports, in the order of the addresses. */
  | { readonly type: 'listening'; readonly ports: readonly number[] }
  /** An address cannot be opened for listening. */
  | { readonly type: 'failed'; readonly address: ListenAddress; readonly message: string; readonly code: string }
  /** What has changed since the last one. Every few seconds, so that little is lost if a thread dies, and before each answer to `report`. */
  | { readonly type: 'metrics'; readonly metrics: MetricsChanges }
  | { readonly type: 'lines'; readonly lines: ThreadLines }
  /** List sizes of a cluster, learned from responses. */
  | { readonly type: 'lists-learned'; readonly cluster: string; readonly sizes: readonly ListSize[] }
  /** A message of one subject to the main thread. */
  | TopicMessage
  /** Failed credentials and handshakes, by source. */
  | { readonly type: 'failures'; readonly failures: readonly FailedSource[] }
  | { readonly type: 'drained' }
  | { readonly type: 'ended' }

/** Failures of an address, or IPv6 network. */
export interface FailedSource {
  readonly source: string
  readonly count: number
}

/** The log lines and events of one turn of a thread's event loop; at most one message per turn. */
export interface ThreadLines {
  readonly log: readonly LogCall[]
  readonly access: readonly string[]
  readonly audit: readonly string[]
  /** Endpoints to which a connection broke: to be probed soon. */
  readonly broken: readonly BrokenEndpoint[]
  /** Clusters that may have refused the gateway itself: check its permissions soon. */
  readonly refusing: readonly string[]
  /** Clusters with requests that wait for the first check of an endpoint: check them soon. */
  readonly awaited: readonly string[]
  /** Approximate number of characters in it: `linesTaken` advances by this. */
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
