// What insight asks the gateway threads for, and what they stream to it. The program's pool of threads implements it, with calls and streams of its own
// beside these.

import type { IdentitySeen } from '../../../gateway/api/identity-seen.ts'
import type { TapQuestion, TapThreadEvent } from '../../core/tap/tap-messages.ts'
import type { TrafficSketch } from '../../core/top/traffic.ts'

/** Argument and answer of each call: plain data that can be cloned. */
export interface InsightCalls {
  /** The thread's counts since the last call; undefined = it counts nothing. */
  readonly top: { readonly argument: undefined; readonly answer: TrafficSketch | undefined }
  /** The users that the thread has seen lately. The argument is the name of one; '' = all. */
  readonly sessions: { readonly argument: string; readonly answer: readonly IdentitySeen[] }
}

/** Question and event of each stream. */
export interface InsightStreams {
  /** Requests that match. */
  readonly tap: { readonly question: TapQuestion; readonly event: TapThreadEvent }
}

export interface InsightThreads {
  /** One answer per thread; threads that are gone, fail or take too long are omitted. Never rejects. */
  askThreads<K extends keyof InsightCalls>(
    name: K,
    argument: InsightCalls[K]['argument'],
    options?: { readonly timeoutMs: number },
  ): Promise<readonly { readonly thread: number; readonly answer: InsightCalls[K]['answer'] }[]>
  /** Subscribes to a stream of all threads, including later ones, until the returned function is called. */
  subscribe<K extends keyof InsightStreams>(
    kind: K,
    question: InsightStreams[K]['question'],
    options: {
      /** The thread may send as many more events once the result has resolved. */
      onEvents(events: readonly InsightStreams[K]['event'][], dropped: number, thread: number): Promise<void>
      /** Events of one thread that may be in transit or waiting. */
      readonly credit: number
    },
  ): () => void
}
