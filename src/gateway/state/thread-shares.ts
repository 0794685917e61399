// What the requests of one thread share: its part of what the settings allow the process.

import { SharedItems, SharedResource, type ShareLimit } from '../../kit/core/shares/shared-resource.ts'
import type { Shares } from '../../kit/core/shares/shares.ts'
import { reportShares, type ShareReport } from '../../kit/core/shares/shares-report.ts'
import { WaitingAnswers } from '../../kit/core/shares/waiting-answers.ts'

/** What bodies may still bring whose answer is complete, before any of it has come: of users; others have a part of their own on top. */
export const LATE_BODIES_BYTES: number = 32 * 1024 * 1024

/** Of the process; 0 = unlimited. */
export interface ShareSettings {
  readonly maxRequestsInflight: number
  readonly maxWatches: number
  readonly maxBufferedBytes: number
  readonly threads: number
}

/** A long-running request. */
export interface EndableRequest {
  /** As RunningRequest.finish. */
  finish(): void
}

/** What of it is reported. */
interface Divided {
  readonly limit: ShareLimit
  readonly known: Shares
  readonly unknown: Shares
}

export class ThreadShares {
  /** Requests that are not long-running. */
  readonly inflight: SharedResource
  readonly watches: SharedItems<EndableRequest>

  /** Large heads and bodies of requests, and answers that wait for their clients. */
  readonly buffered: SharedResource
  readonly answers: WaitingAnswers
  /** What is taken of bodies whose answer is complete. */
  readonly lateBodies: SharedResource = new SharedResource('late-bodies', LATE_BODIES_BYTES)

  constructor({ maxRequestsInflight, maxWatches, maxBufferedBytes, threads }: ShareSettings) {
    this.buffered = new SharedResource('buffered-bytes', Math.ceil(maxBufferedBytes / threads))
    this.answers = new WaitingAnswers(this.buffered, setImmediate)
    this.inflight = new SharedResource('requests-inflight', Math.ceil(maxRequestsInflight / threads))
    this.watches = new SharedItems('watches', Math.ceil(maxWatches / threads))
  }

  /** Who holds most of each. */
  report(): ShareReport[] {
    const { inflight, watches, buffered } = this
    const all: readonly Divided[] = [
      inflight,
      buffered,
      { limit: watches.limit, known: watches.known.shares, unknown: watches.unknown.shares },
    ]
    return all.flatMap(({ limit, known, unknown }) => [
      reportShares(limit, true, known),
      reportShares(limit, false, unknown),
    ])
  }
}
