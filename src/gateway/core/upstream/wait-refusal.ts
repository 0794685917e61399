// Builds the refusal for a request that waited for an upstream stream and got none: which limit, whose, and when to retry.

import type { Charge } from '../../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'

/** Limits on waiting requests: their number, buffered bytes, time; lists and watches after connections to a cluster broke. */
export type WaitLimit = 'upstream-requests' | 'upstream-bytes' | 'upstream-wait' | 'relists'

/** Why a request was not sent, when the endpoint is not the cause. */
export interface WaitRefusal {
  readonly limit: WaitLimit
  /** How many of the same source wait. */
  readonly waiting: number
  /** How many of its requests are in flight, as far as that is counted. */
  readonly held: number
  /** Estimated seconds until it would be served; 0 = soon. */
  readonly likelySeconds: number
}

/** Spread, so that callers refused together do not come back together; over at least this time. */
const LEAST_SPREAD_SECONDS = 4
/** The longest Retry-After. */
const LONGEST_RETRY_SECONDS = 30

/** @param random at least 0, less than 1 */
export function refuseWaiting(cluster: string, charge: Charge, why: WaitRefusal, random: number): Refusal {
  const spread = Math.min(LONGEST_RETRY_SECONDS, Math.max(LEAST_SPREAD_SECONDS, why.likelySeconds))
  const retryAfterSeconds = 1 + Math.floor(random * spread)
  const message = `${messageOf(cluster, charge.source, why)}; retry in ${retryAfterSeconds} s`
  return refuse('share-exceeded', message, { retryAfterSeconds, rule: why.limit })
}

function messageOf(cluster: string, source: string, { limit, waiting, held }: WaitRefusal): string {
  const whose = `${source} has ${held} in flight and ${waiting} waiting`
  switch (limit) {
    case 'upstream-requests':
      return `too many requests wait for a stream to cluster "${cluster}": ${whose}, at least its fair share`
    case 'upstream-bytes':
      return `requests that wait for a stream to cluster "${cluster}" buffer too much of their bodies: ${whose}, at least its fair share`
    case 'upstream-wait':
      return `no stream to cluster "${cluster}" became free in time: ${whose}`
    case 'relists':
      return `lists and watches of cluster "${cluster}" are admitted gradually since its connections broke: ${whose}`
  }
}
