// Builds the 429 for a source that has used up its share: which limit, whose share, how much is held, and when to retry.

import type { Charge } from '../../api/stream.ts'
import { type Refusal, refuse } from '../refusal/refusal.ts'
import type { ShareLimit } from './shared-resource.ts'
import type { Shares } from './shares.ts'

/** Spread, so that callers refused together do not come back together. */
const MOST_RETRY_SECONDS = 4

const UNITS: Readonly<Record<ShareLimit, string>> = {
  'requests-inflight': 'requests in flight',
  watches: 'watches and other long-running requests',
  'buffered-bytes': 'buffered bytes',
  'late-bodies': 'bytes of bodies whose answer is complete',
  'answer-bytes': "bytes of upstream's answers to the gateway",
  'followed-bytes': 'bytes of objects that the gateway follows',
}
/** No setting changes these. */
const FIXED: ReadonlySet<ShareLimit> = new Set(['answer-bytes'])

/** @param random at least 0, less than 1 */
export function refuseShare(limit: ShareLimit, shares: Shares, charge: Charge, random: number): Refusal {
  const retryAfterSeconds = 1 + Math.floor(random * MOST_RETRY_SECONDS)
  const message = shareMessage(limit, shares, charge, retryAfterSeconds)
  return refuse('share-exceeded', message, { retryAfterSeconds, rule: limit })
}

function shareMessage(limit: ShareLimit, shares: Shares, charge: Charge, retryAfterSeconds: number): string {
  const { source, weight } = charge
  const held = shares.heldBy(source)
  const whose = charge.known ? '' : ' of unauthenticated clients'
  const share = Math.max(1, Math.floor(shares.shareOf(source, weight)))
  const why =
    held >= share
      ? `${source} has ${held} of ${shares.capacity} ${UNITS[limit]}${whose}, and its fair share under contention is ${share}`
      : `all ${shares.capacity} ${UNITS[limit]}${whose} and the reserve are taken, by ${shares.holders} sources; ${source} has ${held}`
  const setting = FIXED.has(limit) ? '' : ` (--max-${limit})`
  return `${why}${setting}; retry in ${retryAfterSeconds} s`
}
