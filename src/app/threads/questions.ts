// What the main thread asks gateway threads (`pool.askThreads`), and what they stream to it (`pool.subscribe`): by kind, the types of question and
// answer. Another kind is a line here and a handler in `answers.ts`. Everything is plain data that can be cloned.

import type { ShareReport } from '../../core/shares/shares-report.ts'
import type { TrafficSketch } from '../../core/top/traffic.ts'
import type { WrittenSpans } from '../../core/traces/otlp.ts'
import type { LogLevel } from '../../io/logs/log.ts'
import type { ProfileKind } from '../../io/profile/profile.ts'
import type { TapQuestion, TapThreadEvent } from './tap-messages.ts'

/** One answer each. */
export interface Questions {
  /** Which log level is in force; sets it first when there is one. */
  readonly logLevel: { readonly question: LogLevel | undefined; readonly answer: LogLevel }
  /** What the thread has counted since it was asked last; undefined = it counts nothing. */
  readonly top: { readonly question: undefined; readonly answer: TrafficSketch | undefined }
  /** Who holds most of what requests share. */
  readonly shares: { readonly question: undefined; readonly answer: readonly ShareReport[] }
  /** JSON of a profile of the thread that takes so many seconds. */
  readonly profile: {
    readonly question: { readonly kind: ProfileKind; readonly seconds: number }
    readonly answer: string
  }
}

/** Events until the subscriber has enough. */
export interface Streams {
  /** Requests that match. */
  readonly tap: { readonly question: TapQuestion; readonly event: TapThreadEvent }
  /** Spans of requests that are traced. */
  readonly traces: { readonly question: undefined; readonly event: WrittenSpans }
}

export type QuestionKind = keyof Questions
export type StreamKind = keyof Streams

/** How a thread answers. May throw: the thread is left out then. */
export type QuestionHandlers = {
  readonly [K in QuestionKind]: (
    question: Questions[K]['question'],
  ) => Questions[K]['answer'] | Promise<Questions[K]['answer']>
}

/** Passes an event on, unless the subscriber has no room for it now: it is counted as dropped then, and the result is false. Cheap in that case. */
export type Emit<K extends StreamKind> = (event: Streams[K]['event']) => boolean

/** Begins to stream; returns what ends it. */
export type StreamHandlers = {
  readonly [K in StreamKind]: (question: Streams[K]['question'], emit: Emit<K>) => () => void
}

/** The main thread's messages. */
export interface Asked<K extends QuestionKind = QuestionKind> {
  readonly type: 'ask'
  readonly id: number
  readonly kind: K
  readonly question: Questions[K]['question']
}

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

export type ToAnswering =
  | Asked
  | Subscribed
  /** So many more events may be sent. */
  | { readonly type: 'credit'; readonly id: number; readonly events: number }
  | { readonly type: 'unsubscribe'; readonly id: number }

export type FromAnswering =
  | { readonly type: 'answer'; readonly id: number; readonly answer: unknown }
  /** It cannot be answered. */
  | { readonly type: 'no-answer'; readonly id: number; readonly reason: string }
  /** At most one in a turn of the thread's event loop. `dropped`: since the last message, for want of credit. */
  | { readonly type: 'events'; readonly id: number; readonly events: readonly unknown[]; readonly dropped: number }
