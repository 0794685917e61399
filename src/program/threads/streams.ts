// Streams from gateway threads to the main thread (`pool.subscribe`): question and event types by kind. Another kind needs a line here (or
// in insight/app/threads/insight-threads.ts) and a handler in `thread/gateway-thread.ts`. Everything is plain data that can be cloned.

import type { InsightStreams } from '../../insight/app/threads/insight-threads.ts'
import type { WrittenSpans } from '../../insight/core/traces/otlp.ts'

/** Events until the subscription ends. */
export interface Streams extends InsightStreams {
  /** Spans of traced requests. */
  readonly traces: { readonly question: undefined; readonly event: WrittenSpans }
}

export type StreamKind = keyof Streams

/** Passes an event on, unless the subscriber has no room for it now: it is then counted as dropped, and the result is false. Cheap in that case. */
export type Emit<K extends StreamKind> = (event: Streams[K]['event']) => boolean

/** Starts a stream; returns a function that ends it. May throw: the thread is then omitted. */
export type StreamHandlers = {
  readonly [K in StreamKind]: (question: Streams[K]['question'], emit: Emit<K>) => () => void
}

/** The main thread's messages. */
export type Subscribed<K extends StreamKind = StreamKind> = {
  [Kind in K]: {
    readonly type: 'subscribe'
    readonly id: number
    readonly kind: Kind
    readonly question: Streams[Kind]['question']
    /** Events that may be sent before `credit`. */
    readonly credit: number
  }
}[K]

export type ToStreams =
  | Subscribed
  /** This many more events may be sent. */
  | { readonly type: 'credit'; readonly id: number; readonly events: number }
  | { readonly type: 'unsubscribe'; readonly id: number }

export type FromStreams =
  /** The stream cannot begin. */
  | { readonly type: 'no-stream'; readonly id: number; readonly reason: string }
  /** At most one per turn of the thread's event loop. `dropped`: since the last message, for want of credit. */
  | { readonly type: 'events'; readonly id: number; readonly events: readonly unknown[]; readonly dropped: number }
