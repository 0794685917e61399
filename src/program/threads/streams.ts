// The messages of streams from gateway threads to the main thread (`pool.subscribe`), which know no subject (kit/core/topics/streams.ts).

import type { AskedStream } from '../../kit/core/topics/streams.ts'

/** The main thread's messages. */
export interface Subscribed extends AskedStream {
  readonly type: 'subscribe'
  readonly id: number
  /** Events that may be sent before `credit`. */
  readonly credit: number
}

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
