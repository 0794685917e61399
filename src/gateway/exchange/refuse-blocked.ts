// An address whose credentials have failed too often gets next to nothing without a valid one. Users behind the same address are not locked
// out: a valid client certificate, a token that the connection has shown before, or one that any thread has accepted lately, is looked at as
// ever. Of tokens that nobody has seen before a few are reviewed, so that whoever starts behind this address, a controller with a fresh
// token, gets in.

import { retryAfterBlock } from '../../core/limits/spread-retry-after.ts'
import { blockedAddressMessage } from '../../core/policy/traffic-messages.ts'
import { type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { tokenHashes } from '../../io/pki/credential-hashes.ts'
import type { TokenQuery } from '../../io/reviews/token-review.ts'
import type { Exchange } from './exchange.ts'

/** Without a credential, or with one that is wrong whatever is asked. @returns undefined = it may go on */
export function refuseBlocked(exchange: Exchange): Refusal | undefined {
  const blockedMs = blockedFor(exchange)
  return blockedMs === 0 ? undefined : refuseFor(exchange, blockedMs)
}

/** With a token. @returns undefined = it may go on; 'trial' = it may, and has taken something that is given back when it is accepted */
export function refuseBlockedToken(exchange: Exchange, query: TokenQuery): Refusal | 'trial' | undefined {
  const blockedMs = blockedFor(exchange)
  if (blockedMs === 0) return undefined
  const { gw, peer, monotonicMs } = exchange
  const hash = tokenHashes(query.token)[0]
  if (hash !== undefined && gw.failures?.isKnownToken(hash) === true) return undefined
  switch (gw.tokens.foresee(query)) {
    case 'authenticated':
    case 'running':
      return undefined
    case 'rejected':
      // A client that goes on with it must not take the place of another one's.
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
