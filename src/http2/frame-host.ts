// What the parts of a connection that read frames ask of it: the time, and what becomes of a peer that breaks the rules.

import type { AbuseKind } from './counters.ts'
import type { Http2Stream } from './stream.ts'

export interface FrameHost {
  readonly isServer: boolean
  /** When the bytes that are being read came. */
  readonly nowMs: number
  /** No more input is looked at. */
  readonly closed: boolean
  /** Whether a stream of this id has never been opened (RFC 9113 section 5.1, idle). */
  isIdle(id: number): boolean
  /** A connection error (RFC 9113 section 5.4.1). */
  fail(code: number, message: string): void
  /** What is legal in small amounts came in large ones: the connection ends. */
  abuse(kind: AbuseKind): void
  /** A stream error that the peer caused: it counts, so that it cannot make us reset streams without end. */
  blame(stream: Http2Stream, code: number): void
  /** The same on a stream that is over. */
  blameGone(id: number, code: number): void
}
