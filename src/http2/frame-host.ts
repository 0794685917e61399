// The interface of a connection for its frame-reading parts: the time, and error handling.

import type { AbuseKind } from './counters.ts'
import type { Http2Stream } from './stream.ts'

export interface FrameHost {
  readonly isServer: boolean
  /** When the current bytes arrived. */
  readonly nowMs: number
  /** Whether input is ignored. */
  readonly closed: boolean
  /** Whether a stream of this id has never been opened (RFC 9113 section 5.1, idle). */
  isIdle(id: number): boolean
  /** A connection error (RFC 9113 section 5.4.1). */
  fail(code: number, message: string): void
  /** A budget is exhausted: the connection ends. @param why also sent to the peer. Default: no details */
  abuse(kind: AbuseKind, why?: string): void
  /** A stream error caused by the peer: counted, so that it can't make us reset streams without end. */
  blame(stream: Http2Stream, code: number): void
  /** The same on a closed stream. */
  blameGone(id: number, code: number): void
}
