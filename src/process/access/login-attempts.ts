// How often somebody may try to log in: failed attempts of an IPv4 address or IPv6 network of 64 bits, and of all together. Guessing a token is
// hopeless anyway; this keeps the API server of the objects from being asked about guesses. An address that is blocked for failures at any
// port waits here, too; sessions that are open, and credentials that come with a request, go on.

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { FailureCounts } from '../../apiserver/access/failed-credentials.ts'
import type { LoginAttempts } from '../../insight/admin/dashboard/sessions.ts'
import { addressSource } from '../../kit/core/shares/call-source.ts'

const MINUTE_S = 60
const OF_AN_ADDRESS = 5
const OF_ALL = 100
const EVERYBODY = 'everybody'

/** @param failures of the other ports; what fails here is counted there by who looks at the token. Default: none */
export function createLoginAttempts(failures?: Pick<FailureCounts, 'waitSeconds'>): LoginAttempts {
  const each = new RateLimiterMemory({ points: OF_AN_ADDRESS, duration: MINUTE_S })
  const all = new RateLimiterMemory({ points: OF_ALL, duration: MINUTE_S })
  // Attempts that are looked at now count as failed, so that many at once do not pass the count.
  const underway = new Map<string, number>()
  const count = (key: string, by: 1 | -1): number => {
    const before = underway.get(key) ?? 0
    if (before + by > 0) underway.set(key, before + by)
    else underway.delete(key)
    return before
  }
  const over = (source: string): void => {
    count(source, -1)
    count(EVERYBODY, -1)
  }
  return {
    async begin(address) {
      const source = addressSource(address)
      const [ofAddress, ofAll] = [count(source, 1), count(EVERYBODY, 1)]
      const [own, total] = await Promise.all([each.get(source), all.get(EVERYBODY)])
      const here = Math.max(waitOf(own, OF_AN_ADDRESS - ofAddress), waitOf(total, OF_ALL - ofAll))
      const wait = Math.max(here, failures?.waitSeconds(source) ?? 0)
      if (wait > 0) over(source)
      return wait
    },
    async ended(address, failed) {
      const source = addressSource(address)
      if (failed) await Promise.all([consume(each, source), consume(all, EVERYBODY)])
      over(source)
    },
  }
}

/** @param points that are left beside what is under way */
function waitOf(state: RateLimiterRes | null, points: number): number {
  if ((state?.consumedPoints ?? 0) < points) return 0
  return Math.max(1, Math.ceil((state?.msBeforeNext ?? 0) / 1000))
}

/** It rejects with a result where nothing is left. */
async function consume(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error
  }
}
