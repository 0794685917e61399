// What the main thread asks of a thread for a tap, and what the thread streams.

import { ThreadStream } from '../../../kit/core/topics/streams.ts'
import type { TapFilter } from './tap-filter.ts'

/** A tap requested by the main thread. */
export interface TapQuestion {
  readonly filter: TapFilter
  /** Events per second that the thread may send. */
  readonly maxRps: number
  /** This replica's name. */
  readonly replica: string
}

/** A line of the stream, or counts. */
export type TapThreadEvent = string | TapCounts

/** Requests that match. */
export const TAPPED = new ThreadStream<TapQuestion, TapThreadEvent>('tap')

/** Since the tap began. */
export interface TapCounts {
  /** Requests evaluated, each at its end. */
  readonly seen: number
  /** Matching events, shown or not. */
  readonly matched: number
  /** How many of these were above the rate. */
  readonly aboveRate: number
  /** And events for which the reader had no room. */
  readonly unread: number
}
