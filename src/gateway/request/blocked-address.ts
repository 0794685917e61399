// An address with too many failed credentials is blocked unless it presents a valid one. Other users behind the same address are not locked
// out: a valid client certificate, a token seen before on the connection, or one accepted lately by any thread is checked as
// usual. A few tokens that are new to the gateway are still looked at, so that a client that starts behind this address, such as a
// controller with a fresh token, gets in.

import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { refuseUnauthorized } from '../core/admission/steps.ts'
import { retryAfterBlock } from '../core/limits/spread-retry-after.ts'
import { blockedAddressMessage } from '../core/policy/traffic-messages.ts'
import { tokenHashes } from '../io/reviews/credential-hashes.ts'
import type { TokenReviewer } from '../io/reviews/token-review.ts'
import type { Exchange } from './exchange/exchange.ts'

/** For a credential that is wrong for certain, without a review. */
export function refuseFailed(exchange: Exchange): Refusal {
  fail(exchange)
  return refuseBlocked(exchange) ?? refuseUnauthorized()
}

export function fail({ gw, peer }: Exchange): void {
  gw.failures?.failed(peer.addressCharge.source)
}

/** For requests without a credential, or with one that is certain to be wrong. @returns undefined = not blocked */
export function refuseBlocked(exchange: Exchange): Refusal | undefined {
  const blockedMs = blockedFor(exchange)
  return blockedMs === 0 ? undefined : refuseFor(exchange, blockedMs)
}

/**
 * For requests with a token.
 * @param foresee what is known of it
 * @returns undefined = not blocked; 'trial' = may try, taking a slot that is returned when the token is accepted
 */
export function refuseBlockedToken(
  exchange: Exchange,
  token: string,
  foresee: () => ReturnType<TokenReviewer['foresee']>,
): Refusal | 'trial' | undefined {
  const blockedMs = blockedFor(exchange)
  if (blockedMs === 0) return undefined
  const { gw, peer, monotonicMs } = exchange
  const hash = tokenHashes(token)[0]
  if (hash !== undefined && gw.failures?.isKnownToken(hash) === true) return undefined
  switch (foresee()) {
    case 'authenticated':
    case 'running':
      return undefined
    case 'rejected':
      // A client that keeps sending this token must not use up another client's slot.
      return refuseFor(exchange, blockedMs)
    case 'unknown': {
      const { source } = peer.addressCharge
      const isLookedAt = gw.budgets.unknownTokens.spend('', source, monotonicMs)
      return isLookedAt ? 'trial' : refuseFor(exchange, blockedMs)
    }
  }
}

export function trialPassed({ gw, peer }: Exchange): void {
  gw.budgets.unknownTokens.giveBack('', peer.addressCharge.source)
}

function blockedFor({ gw, peer, monotonicMs }: Exchange): number {
  return gw.failures?.blockedMs(peer.addressCharge.source, monotonicMs) ?? 0
}

function refuseFor({ gw, peer }: Exchange, blockedMs: number): Refusal {
  const { source } = peer.addressCharge
  const seconds = retryAfterBlock(blockedMs, gw.random())
  gw.events.limited('authentication-failures', false)
  return refuse('too-many-failures', blockedAddressMessage(source, seconds, Math.ceil(blockedMs / 1000)), {
    retryAfterSeconds: seconds,
    rule: 'authentication-failures',
  })
}
