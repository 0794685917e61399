// Phases of a request with their transitions, which docs/architecture.md draws and a test compares; and its states: each has what is valid in
// it, and no more.

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

export const PHASES = [
  // Nothing has been sent upstream; at most one flow-control window of the body is held.
  'deciding',
  // Nothing has been sent upstream; the whole body is read, because the decision depends on it.
  'reading',
  // No part of a response has reached the client; a body that is not too long is kept.
  'sending',
  // The response head is out.
  'answering',
  // An upgrade, before and after the two sockets are joined.
  'upgrading',
  'upgraded',
  'over',
] as const

export type Phase = (typeof PHASES)[number]

/** Code instead of a table: called three times per request, and comparing constants is cheapest. */
export function canBecome(from: Phase, to: Phase): boolean {
  switch (from) {
    case 'deciding':
      return to === 'sending' || to === 'over' || to === 'reading' || to === 'upgrading'
    case 'reading':
      return to === 'sending' || to === 'over'
    case 'sending':
      return to === 'answering' || to === 'over' || to === 'reading'
    case 'answering':
      return to === 'over'
    case 'upgrading':
      return to === 'upgraded' || to === 'over'
    case 'upgraded':
      return to === 'over'
    case 'over':
      return false
  }
}

/** Returns `to`. @throws if there is no such transition: a bug */
export function nextPhase(from: Phase, to: Phase): Phase {
  if (!canBecome(from, to)) throw new Error(`a request that is ${from} cannot become ${to}`)
  return to
}
