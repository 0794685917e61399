// What the main thread asks gateway threads, and they ask it: by name, the types of argument and answer. Another call is a line here, and a
// handler at the end that answers: `#callHandlers` of thread/gateway-thread.ts, `handlers` of pool/pool.ts. Everything is plain data that can be
// cloned.

import type { EndpointDescription } from '../../gateway/io/upstream/upstreams.ts'
import type { MetricsSnapshot } from '../../gateway/metrics/recorder.ts'
import type { TrafficSketch } from '../../insight/core/top/traffic.ts'
import type { ProfileKind } from '../../insight/io/profile/profile.ts'
import type { ShareReport } from '../../kit/core/shares/shares-report.ts'
import type { LogLevel } from '../../kit/io/logs/log.ts'
import type {
  ProtectionRequest,
  ProtectionVerdict,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../protection/api/protection.ts'
import type { AnswerMessage, CallMessage } from './calls.ts'

/** Of the main thread. */
export interface MainCalls {
  /** How the thread is doing. */
  readonly report: { readonly argument: undefined; readonly answer: ThreadReport }
  /** Which log level is in force; sets it first when there is one. */
  readonly logLevel: { readonly argument: LogLevel | undefined; readonly answer: LogLevel }
  /** What the thread has counted since it was asked last; undefined = it counts nothing. */
  readonly top: { readonly argument: undefined; readonly answer: TrafficSketch | undefined }
  /** Who holds most of what requests share. */
  readonly shares: { readonly argument: undefined; readonly answer: readonly ShareReport[] }
  /** JSON of a profile of the thread that takes so many seconds. */
  readonly profile: {
    readonly argument: { readonly kind: ProfileKind; readonly seconds: number }
    readonly answer: string
  }
}

/** Of a gateway thread. */
export interface GatewayCalls {
  /** Deletions to be evaluated together; one verdict for each. */
  readonly protect: { readonly argument: readonly ProtectionRequest[]; readonly answer: readonly ProtectionVerdict[] }
  /** Replicas that are to be lowered. */
  readonly scaleDown: { readonly argument: ScaleDownQuestion; readonly answer: ScaleDownAnswer }
}

/** What a gateway thread gets of them. */
export type CallsToThread = CallMessage<MainCalls> | AnswerMessage<GatewayCalls>
/** What the main thread gets. */
export type CallsFromThread = CallMessage<GatewayCalls> | AnswerMessage<MainCalls>

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
