// How often somebody may try to log in: failed attempts of an IPv4 address or IPv6 network of 64 bits, and of all together. Guessing a token is
// hopeless anyway; this keeps the API server of the objects from being asked about guesses.

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { LoginAttempts } from '../../admin/dashboard/sessions.ts'
import { addressSource } from '../../core/limits/call-source.ts'

const MINUTE_S = 60
const OF_AN_ADDRESS = 5
const OF_ALL = 100
const EVERYBODY = 'everybody'

export function createLoginAttempts(): LoginAttempts {
  const each = new RateLimiterMemory({ points: OF_AN_ADDRESS, duration: MINUTE_S })
  const all = new RateLimiterMemory({ points: OF_ALL, duration: MINUTE_S })
  return {
    async waitSeconds(address) {
      const [own, total] = await Promise.all([each.get(addressSource(address)), all.get(EVERYBODY)])
      return Math.max(waitOf(own, OF_AN_ADDRESS), waitOf(total, OF_ALL))
    },
    async failed(address) {
      await Promise.all([consume(each, addressSource(address)), consume(all, EVERYBODY)])
    },
  }
}

function waitOf(state: RateLimiterRes | null, points: number): number {
  return state === null || state.consumedPoints < points ? 0 : Math.max(1, Math.ceil(state.msBeforeNext / 1000))
}

/** It rejects with a result where nothing is left. */
async function consume(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error
  }
}
