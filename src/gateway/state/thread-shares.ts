// Resources shared by the requests of one thread: its part of the process limits.

import { SharedItems, SharedResource, type ShareLimit } from '../../kit/core/shares/shared-resource.ts'
import type { Shares } from '../../kit/core/shares/shares.ts'
import { reportShares, type ShareReport } from '../../kit/core/shares/shares-report.ts'
import { WaitingAnswers } from '../../kit/core/shares/waiting-answers.ts'

/** Limit of late bodies (those whose response is complete), reserved before they arrive: for users; others have a separate part on top. */
export const LATE_BODIES_BYTES: number = 32 * 1024 * 1024

/** Per process; 0 = unlimited. */
interface ShareSettings {
  readonly maxRequestsInflight: number
  readonly maxWatches: number
  readonly maxBufferedBytes: number
  readonly threads: number
}

/** A long-running request. */
export interface EndableRequest {
  /** See RunningRequest.finish. */
  finish(): void
}

/** What is reported of a resource. */
interface Divided {
  readonly limit: ShareLimit
  readonly known: Shares
  readonly unknown: Shares
}

export class ThreadShares {
  /** Requests that are not long-running. */
  readonly inflight: SharedResource
  readonly watches: SharedItems<EndableRequest>

  /** Large heads and bodies of requests, and responses queued for their clients. */
  readonly buffered: SharedResource
  readonly answers: WaitingAnswers
  /** Bodies that continue after their response is complete. */
  readonly lateBodies: SharedResource = new SharedResource('late-bodies', LATE_BODIES_BYTES)

  constructor({ maxRequestsInflight, maxWatches, maxBufferedBytes, threads }: ShareSettings) {
    this.buffered = new SharedResource('buffered-bytes', Math.ceil(maxBufferedBytes / threads))
    this.answers = new WaitingAnswers(this.buffered, setImmediate)
    this.inflight = new SharedResource('requests-inflight', Math.ceil(maxRequestsInflight / threads))
    this.watches = new SharedItems('watches', Math.ceil(maxWatches / threads))
  }

  /** Top holders of each resource. */
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
