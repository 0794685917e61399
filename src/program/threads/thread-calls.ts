// Calls between the main thread and gateway threads, in both directions: argument and answer types by name. Another call needs a line here (one of the
// admin listener, in admin/app/inside/admin-threads.ts), and a handler at the answering end: `#callHandlers` of thread/gateway-thread.ts, `handlers` of
// pool/pool.ts; a call of one subject is a question instead. Everything is plain data that can be cloned.

import type { AdminCalls } from '../../admin/app/inside/admin-threads.ts'
import type { PoolDescription } from '../../gateway/io/upstream/upstreams.ts'
import type { AnsweredQuestion, AskedQuestion } from '../../kit/core/topics/questions.ts'
import type { LogLevel } from '../../kit/io/logs/log.ts'
import type { AnswerMessage, CallMessage } from './calls.ts'

/** Made by the main thread. */
export interface MainCalls extends AdminCalls {
  /** The thread's state; its counts come before the answer, in a message of their own. */
  readonly report: { readonly argument: undefined; readonly answer: ThreadReport }
  /** Its connections to each endpoint, of which there can be thousands. */
  readonly upstreams: { readonly argument: undefined; readonly answer: readonly PoolDescription[] }
  /** A question of one subject (kit/core/topics/questions.ts). */
  readonly ask: { readonly argument: AskedQuestion; readonly answer: AnsweredQuestion }
  /** The log level in force, after setting it if one is given. */
  readonly logLevel: { readonly argument: LogLevel | undefined; readonly answer: LogLevel }
}

/** Made by a gateway thread. */
export interface GatewayCalls {
  /** A question of one subject (kit/core/topics/questions.ts). */
  readonly ask: { readonly argument: AskedQuestion; readonly answer: AnsweredQuestion }
}

/** Messages received by a gateway thread. */
export type CallsToThread = CallMessage<MainCalls> | AnswerMessage<GatewayCalls>
/** Messages received by the main thread. */
export type CallsFromThread = CallMessage<GatewayCalls> | AnswerMessage<MainCalls>

/** A thread's state. */
export interface ThreadReport {
  /** Running requests. */
  readonly running: number
  /** Client connections. */
  readonly clients: number
  readonly tokensRemembered: number
}
