// States of a request: each has what is valid in it, and no more.

import type { Stream } from '../../../kit/api/stream.ts'
import type { WatchFrames } from '../../core/request/watch-frames.ts'

/** The upstream half, as seen by the client half. */
export interface UpstreamHalf {
  /** Takes the request body; undefined for an upgrade, whose sockets are joined. */
  readonly stream: Stream | undefined
  /** Cancel: the client is gone. */
  cancel(): void
  /** The endpoint stops counting this request. */
  leave(): void
}

/** Before anything was sent, and after everything. */
interface WithoutUpstream {
  readonly phase: 'deciding' | 'reading' | 'over'
  readonly upstream: undefined
}

export const DECIDING: WithoutUpstream = { phase: 'deciding', upstream: undefined }
export const READING: WithoutUpstream = { phase: 'reading', upstream: undefined }
export const OVER: WithoutUpstream = { phase: 'over', upstream: undefined }

export class Sending {
  readonly phase = 'sending'
  /** Replaced on a retry. */
  upstream: UpstreamHalf
  /** Decides again on a 409 from upstream, which is not passed on then; undefined = passed on. */
  readonly onConflict: (() => void) | undefined
  /** End the watch as soon as its answer has begun. */
  finishing = false

  constructor(upstream: UpstreamHalf, onConflict: (() => void) | undefined) {
    this.upstream = upstream
    this.onConflict = onConflict
  }
}

export class Answering {
  readonly phase = 'answering'
  readonly upstream: UpstreamHalf
  /** Tracks where watch events end; undefined = not a watch. */
  readonly frames: WatchFrames | undefined
  /** Bytes taken from upstream but not yet by the client: window still to be given back. */
  owedToUpstream = 0
  /** End the watch at the next event boundary. */
  finishing: boolean

  constructor({ upstream, finishing }: Sending, frames: WatchFrames | undefined) {
    this.upstream = upstream
    this.frames = frames
    this.finishing = finishing
  }
}

export class Upgrading {
  phase: 'upgrading' | 'upgraded' = 'upgrading'
  /** Replaced on a retry. */
  upstream: UpstreamHalf

  constructor(upstream: UpstreamHalf) {
    this.upstream = upstream
  }
}

export type ExchangeState = WithoutUpstream | Sending | Answering | Upgrading
