// An address whose credentials have failed too often gets nothing without a valid one. Users behind the same address are not locked out: a
// valid client certificate, a token that the connection has shown before, or one that any thread has accepted lately, is looked at as ever.

import { retryAfterBlock } from '../../core/limits/spread-retry-after.ts'
import { tooManyFailuresMessage } from '../../core/policy/traffic-messages.ts'
import { type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { tokenHashes } from '../../io/pki/credential-hashes.ts'
import type { Exchange } from './exchange.ts'

/** @param token that has to be asked for; undefined = there is none. @returns undefined = it may go on */
export function refuseBlocked({ gw, peer, monotonicMs }: Exchange, token?: string): Refusal | undefined {
  const { failures } = gw
  if (failures === undefined) return undefined
  const { source } = peer.addressCharge
  const blockedMs = failures.blockedMs(source, monotonicMs)
  if (blockedMs === 0) return undefined
  const hash = token === undefined ? undefined : tokenHashes(token)[0]
  if (hash !== undefined && failures.isKnownToken(hash)) return undefined
  const seconds = retryAfterBlock(blockedMs, gw.random())
  gw.events.limited('authentication-failures', false)
  return refuse('too-many-failures', tooManyFailuresMessage(source, seconds), {
    retryAfterSeconds: seconds,
    rule: 'authentication-failures',
  })
}
