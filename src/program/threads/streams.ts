// What gateway threads stream to the main thread (`pool.subscribe`): by kind, the types of question and event. Another kind is a line here and a
// handler in `thread/gateway-thread.ts`. Everything is plain data that can be cloned.

import type { WrittenSpans } from '../../insight/core/traces/otlp.ts'
import type { TapQuestion, TapThreadEvent } from './tap-messages.ts'

/** Events until the subscriber has enough. */
export interface Streams {
  /** Requests that match. */
  readonly tap: { readonly question: TapQuestion; readonly event: TapThreadEvent }
  /** Spans of requests that are traced. */
  readonly traces: { readonly question: undefined; readonly event: WrittenSpans }
}

export type StreamKind = keyof Streams

/** Passes an event on, unless the subscriber has no room for it now: it is counted as dropped then, and the result is false. Cheap in that case. */
export type Emit<K extends StreamKind> = (event: Streams[K]['event']) => boolean

/** Begins to stream; returns what ends it. May throw: the thread is left out then. */
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
  /** So many more events may be sent. */
  | { readonly type: 'credit'; readonly id: number; readonly events: number }
  | { readonly type: 'unsubscribe'; readonly id: number }

export type FromStreams =
  /** It cannot begin. */
  | { readonly type: 'no-stream'; readonly id: number; readonly reason: string }
  /** At most one in a turn of the thread's event loop. `dropped`: since the last message, for want of credit. */
  | { readonly type: 'events'; readonly id: number; readonly events: readonly unknown[]; readonly dropped: number }
