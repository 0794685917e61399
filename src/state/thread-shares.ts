// What the requests of one thread share: its part of what the settings allow the process.

import { SharedItems, SharedResource } from '../core/shares/shared-resource.ts'

/** Of the process; 0 = unlimited. */
export interface ShareSettings {
  readonly maxRequestsInflight: number
  readonly maxWatches: number
  readonly threads: number
}

/** A long-running request. */
export interface EndableRequest {
  /** As RunningRequest.finish. */
  finish(): void
}

export class ThreadShares {
  /** Requests that are not long-running. */
  readonly inflight: SharedResource
  readonly watches: SharedItems<EndableRequest>

  constructor({ maxRequestsInflight, maxWatches, threads }: ShareSettings) {
    this.inflight = new SharedResource('requests-inflight', Math.ceil(maxRequestsInflight / threads))
    this.watches = new SharedItems('watches', Math.ceil(maxWatches / threads))
  }
}
