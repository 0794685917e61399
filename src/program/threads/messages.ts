// The messages between the main thread and the gateway threads. Everything is plain data that can be cloned, except
// memory that stays shared. No request waits for the main thread except a deletion of a pod that may be protected, and a scale-down that
// is checked: a thread serves with what it has.

import type { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import type { ListSize } from '../../gateway/api/list-request.ts'
import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import type { ClusterHandle } from '../../gateway/state/clusters.ts'
import type { ThreadPlace } from '../../gateway/state/thread-place.ts'
import type { AuditPolicy } from '../../insight/core/audit/policy.ts'
import type { ListenAddress } from '../../kit/core/listen-address.ts'
import type { Config } from '../../process/config/config.ts'
import type { Block } from '../../process/failures/address-failures.ts'
import type { Reservation } from '../../protection/api/protection.ts'
import type { GuardInForce } from '../../scale-up-guard/core/guard/guards-in-force.ts'
import type { ScaleDownReport } from '../../scaling/api/scale-down.ts'
import type { CompiledScaleDownPolicy } from '../../scaling/core/victim-choice/policy.ts'
import type { FromStreams, ToStreams } from './streams.ts'
import type { CallsFromThread, CallsToThread, ThreadReport } from './thread-calls.ts'

/** What a thread is started with. */
export interface ThreadData {
  readonly place: ThreadPlace
  readonly config: Config
  readonly serving: ServingPair
  readonly accessLog: boolean
  readonly auditLog: boolean
  /** What is in the audit log; undefined = every request, at level Metadata. */
  readonly auditPolicy: AuditPolicy | undefined
  /** One word: characters of log lines that the main thread has taken so far, modulo 2^32. */
  readonly linesTaken: Int32Array<SharedArrayBuffer>
  /** Memory of KnownTokens. */
  readonly knownTokens: Int32Array<SharedArrayBuffer>
  /** Memory of ConnectionPlaces. */
  readonly connectionPlaces: Int32Array<SharedArrayBuffer>
}

export type ToThread =
  | CallsToThread
  | ToStreams
  /** A cluster that is new or has changed; in force with the next `commit`. */
  | { readonly type: 'cluster'; readonly handle: ClusterHandle }
  /** Puts the clusters since the last commit in force, and drops others. Answered by `applied`. */
  | { readonly type: 'commit'; readonly generation: number; readonly removed: readonly string[] }
  /** Another certificate of the gateway's own, for new connections. */
  | { readonly type: 'serving'; readonly serving: ServingPair }
  /** Another audit policy, for requests that are identified from now on. */
  | { readonly type: 'audit-policy'; readonly policy: AuditPolicy }
  /** Opens the ports; answered by `listening` or `failed`. */
  | { readonly type: 'listen'; readonly addresses: readonly ListenAddress[] }
  /** A line to another thread, which gets the other end. */
  | { readonly type: 'line'; readonly thread: number; readonly port: MessagePort }
  /** A connection to an inherited socket, from which nothing was read, and which has a place in this thread; `listener` is the place of its address in `listen`. */
  | { readonly type: 'connection'; readonly listener: number; readonly socket: Socket }
  /** The listeners of the process, as far as they are open. */
  | { readonly type: 'own-listeners'; readonly addresses: readonly ListenAddress[] }
  /** In which namespaces pods may have a protector; undefined = in any. */
  | { readonly type: 'protected-namespaces'; readonly namespaces: readonly string[] | undefined }
  /** Node groups that are backed off, from now on: all of them. */
  | { readonly type: 'scale-up-guards'; readonly guards: readonly GuardInForce[] }
  /** All ScaleDownPolicies that are in force. */
  | { readonly type: 'scale-down-policies'; readonly policies: readonly CompiledScaleDownPolicy[] }
  /** Sources of which too much has failed. */
  | { readonly type: 'blocked'; readonly blocks: readonly Block[] }
  /** Why a cluster refuses the gateway's own credential; '' = it no longer does. */
  | { readonly type: 'credential-fault'; readonly cluster: string; readonly fault: string }
  /** What other threads have learned of the size of a cluster's lists. */
  | { readonly type: 'list-sizes'; readonly cluster: string; readonly sizes: readonly ListSize[] }
  /** Each answer over HTTP/1.1 is the last of its connection; all else goes on. */
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
  /** Ports in the order of the addresses. */
  | { readonly type: 'listening'; readonly ports: readonly number[] }
  /** An address cannot be listened on. */
  | { readonly type: 'failed'; readonly address: ListenAddress; readonly message: string; readonly code: string }
  /** Every few seconds, so that little is lost with a thread. */
  | { readonly type: 'report'; readonly report: ThreadReport }
  | { readonly type: 'lines'; readonly lines: ThreadLines }
  /** What answers have shown of the size of a cluster's lists. */
  | { readonly type: 'lists-learned'; readonly cluster: string; readonly sizes: readonly ListSize[] }
  /** What came of a scale-down that has a policy. */
  | { readonly type: 'scaled-down'; readonly report: ScaleDownReport }
  /** Deletions that upstream has refused, or that were not sent. */
  | { readonly type: 'release'; readonly reservations: readonly Reservation[] }
  /** Credentials and handshakes that have failed, by source. */
  | { readonly type: 'failures'; readonly failures: readonly FailedSource[] }
  | { readonly type: 'drained' }
  | { readonly type: 'ended' }

/** What has failed of an address, or IPv6 network. */
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
  /** Clusters that may have refused the gateway itself: their rights are to be checked soon. */
  readonly refusing: readonly string[]
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
