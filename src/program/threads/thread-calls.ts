// Calls between the main thread and gateway threads, in both directions: argument and answer types by name. Another call needs a line here, and a
// handler at the answering end: `#callHandlers` of thread/gateway-thread.ts, `handlers` of pool/pool.ts. Everything is plain data that can be cloned.

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

/** Made by the main thread. */
export interface MainCalls {
  /** The thread's state. */
  readonly report: { readonly argument: undefined; readonly answer: ThreadReport }
  /** The log level in force, after setting it if one is given. */
  readonly logLevel: { readonly argument: LogLevel | undefined; readonly answer: LogLevel }
  /** The thread's counts since the last call; undefined = it counts nothing. */
  readonly top: { readonly argument: undefined; readonly answer: TrafficSketch | undefined }
  /** The largest holders of shared resources. */
  readonly shares: { readonly argument: undefined; readonly answer: readonly ShareReport[] }
  /** JSON of a profile of the thread, taken over this many seconds. */
  readonly profile: {
    readonly argument: { readonly kind: ProfileKind; readonly seconds: number }
    readonly answer: string
  }
}

/** Made by a gateway thread. */
export interface GatewayCalls {
  /** Deletions to be evaluated together; one verdict for each. */
  readonly protect: { readonly argument: readonly ProtectionRequest[]; readonly answer: readonly ProtectionVerdict[] }
  /** Replicas about to be lowered. */
  readonly scaleDown: { readonly argument: ScaleDownQuestion; readonly answer: ScaleDownAnswer }
}

/** Messages received by a gateway thread. */
export type CallsToThread = CallMessage<MainCalls> | AnswerMessage<GatewayCalls>
/** Messages received by the main thread. */
export type CallsFromThread = CallMessage<GatewayCalls> | AnswerMessage<MainCalls>

/** A thread's state. */
export interface ThreadReport {
  readonly metrics: MetricsSnapshot
  /** Running requests. */
  readonly running: number
  /** Client connections. */
  readonly clients: number
  readonly tokensRemembered: number
  readonly upstreams: readonly EndpointDescription[]
}
