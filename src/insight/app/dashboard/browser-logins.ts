// Logins of browsers at the admin listener, for the dashboard.

import { randomBytes } from 'node:crypto'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { CreateBrowserLogins } from '../../../admin/io/server/route.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import type { FailureCounts } from '../../../process/api/failure-counts.ts'
import { type LoginAttempts, loginSessions } from '../../admin/dashboard/sessions.ts'
import { dashboardFiles } from '../../io/dashboard/dashboard-files.ts'

const SESSION_ID_BYTES = 32

export const browserLogins: CreateBrowserLogins = ({ access, secure, failures }) =>
  loginSessions({
    access,
    files: dashboardFiles,
    secure,
    clock: systemClock,
    randomId: () => randomBytes(SESSION_ID_BYTES).toString('base64url'),
    attempts: createLoginAttempts(failures),
  })

// Limits login attempts: failed ones per IPv4 address or IPv6 /64 network, and in total. Guessing a token is hopeless anyway; this protects the
// objects' API server from requests about guesses. An address blocked for failures at any port also waits here; open sessions, and credentials sent
// with a request, are unaffected.

const MINUTE_S = 60
const OF_AN_ADDRESS = 5
const OF_ALL = 100
const ALL_ADDRESSES = 'all'

/** @param failures of the other ports; failures here are counted there by the code that checks the token. Default: none */
export function createLoginAttempts(failures?: Pick<FailureCounts, 'waitSeconds'>): LoginAttempts {
  const each = new RateLimiterMemory({ points: OF_AN_ADDRESS, duration: MINUTE_S })
  const all = new RateLimiterMemory({ points: OF_ALL, duration: MINUTE_S })
  // Pending attempts count as failed, so that concurrent ones cannot exceed the limit.
  const underway = new Map<string, number>()
  const count = (key: string, by: 1 | -1): number => {
    const before = underway.get(key) ?? 0
    if (before + by > 0) underway.set(key, before + by)
    else underway.delete(key)
    return before
  }
  const over = (source: string): void => {
    count(source, -1)
    count(ALL_ADDRESSES, -1)
  }
  return {
    async begin(address) {
      const source = addressSource(address)
      const [ofAddress, ofAll] = [count(source, 1), count(ALL_ADDRESSES, 1)]
      const [own, total] = await Promise.all([each.get(source), all.get(ALL_ADDRESSES)])
      const here = Math.max(waitOf(own, OF_AN_ADDRESS - ofAddress), waitOf(total, OF_ALL - ofAll))
      const wait = Math.max(here, failures?.waitSeconds(source) ?? 0)
      if (wait > 0) over(source)
      return wait
    },
    async ended(address, failed) {
      const source = addressSource(address)
      if (failed) await Promise.all([consume(each, source), consume(all, ALL_ADDRESSES)])
      over(source)
    },
  }
}

/** @param points left in addition to pending attempts */
function waitOf(state: RateLimiterRes | null, points: number): number {
  if ((state?.consumedPoints ?? 0) < points) return 0
  return Math.max(1, Math.ceil((state?.msBeforeNext ?? 0) / 1000))
}

/** It rejects with a result if nothing is left. */
async function consume(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error
  }
}
