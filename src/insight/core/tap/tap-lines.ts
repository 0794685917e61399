// The other lines of a tap's stream, beside those of requests: newline-delimited JSON, each with its `type`. A reader must ignore types
// and fields that it does not know.

import type { TapEvent } from './tap-event.ts'

export type TapLine =
  | TapEvent
  /** The first line of a stream. */
  | {
      readonly type: 'start'
      readonly replica: string
      /** RFC 3339: when the stream ends at the latest. */
      readonly until: string
      readonly maxRps: number
    }
  /** Events that matched and are not shown, since the last such line; at most one a second for each replica. */
  | {
      readonly type: 'dropped'
      readonly replica: string
      readonly count: number
      /** rate: above maxRps. reader: the reader of the stream is slower than its events. */
      readonly reason: DropReason
    }
  /** Sent by each replica every few seconds: what it has seen since the beginning, so that "no requests" differs from "none match". */
  | {
      readonly type: 'progress'
      readonly replica: string
      /** Requests evaluated, and those of them that match. */
      readonly seen: number
      readonly matched: number
    }
  /** The stream goes on without this replica. */
  | { readonly type: 'missing'; readonly replica: string; readonly message: string }
  /** The last line, where the end is in order. */
  | {
      readonly type: 'end'
      readonly replica: string
      readonly reason: TapEnd
      readonly shown: number
      readonly dropped: number
    }

export type DropReason = 'rate' | 'reader'

/** limit: as many as asked for. time: `for` is over. */
export type TapEnd = 'limit' | 'time'
