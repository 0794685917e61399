// The other lines of a tap's stream, besides requests: newline-delimited JSON, each with its `type`. A reader must ignore unknown types and
// fields.

import type { TapEvent } from './tap-event.ts'

export type TapLine =
  | TapEvent
  /** The first line of a stream. */
  | {
      readonly type: 'start'
      readonly replica: string
      /** RFC 3339: the latest end of the stream. */
      readonly until: string
      readonly maxRps: number
    }
  /** Matching events dropped since the last such line; sent at most once a second per replica. */
  | {
      readonly type: 'dropped'
      readonly replica: string
      readonly count: number
      /** rate: above maxRps. reader: the reader can't keep up. */
      readonly reason: DropReason
    }
  /** Sent by each replica every few seconds: its totals so far, so that "no requests" differs from "none match". */
  | {
      readonly type: 'progress'
      readonly replica: string
      /** Requests evaluated, and how many of them matched. */
      readonly seen: number
      readonly matched: number
    }
  /** The stream continues without this replica. */
  | { readonly type: 'missing'; readonly replica: string; readonly message: string }
  /** The last line of a stream that ended normally. */
  | {
      readonly type: 'end'
      readonly replica: string
      readonly reason: TapEnd
      readonly shown: number
      readonly dropped: number
    }

export type DropReason = 'rate' | 'reader'

/** limit: the requested number was reached. time: `for` has elapsed. */
export type TapEnd = 'limit' | 'time'
