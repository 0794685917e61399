// Access grants in force for the sender of a request: their groups are added to its own.

import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { CompiledCluster } from '../core/cluster/compiled-cluster.ts'
import { grantEndedMessage, grantedUser } from '../core/identity/access-grants.ts'
import { type HeldGrant, isInForce } from '../state/access-grants.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Authenticated, authenticated } from './exchange/identity.ts'

/** Identities with the groups of grants, by the authenticated identity. */
const known = new WeakMap<Authenticated, Authenticated | Refusal>()

/**
 * The sender, with the groups of grants if there are any for it. A request that impersonates another user gets none: grants cover neither impersonation nor
 * the other user. Nor does a request to a federated cluster, which would take the groups along to members that no approver has seen.
 */
export function withGrants(
  exchange: Exchange,
  cluster: CompiledCluster,
  requester: Authenticated,
): Authenticated | Refusal {
  const { gw, head } = exchange
  if (gw.grants.isEmpty || requester.kind === 'anonymous' || head.impersonates) return requester
  if (cluster.federation !== undefined) return requester
  const held = gw.grants.of(cluster.name, requester.user, exchange.nowMs, exchange.monotonicMs)
  if (held === undefined) return requester
  exchange.record.accessGrant = held.map(({ grant }) => grant.name).join(', ')
  const before = known.get(requester)
  if (before !== undefined && !('refused' in before) && isSame(before.grants, held)) return before
  const user = grantedUser(
    requester.user,
    held.map(({ grant }) => grant),
  )
  const granted = authenticated(user, requester.kind, requester.hashes, held)
  if (!('refused' in granted)) granted.origin = requester.origin
  known.set(requester, granted)
  return granted
}

/** For a request that had to wait. */
export function refuseEndedGrant(exchange: Exchange, { grants }: Authenticated): Refusal | undefined {
  for (const one of grants) {
    if (!isInForce(one, exchange.nowMs, exchange.monotonicMs)) {
      return refuse('grant-ended', grantEndedMessage(one.grant.name), { rule: one.grant.name })
    }
  }
  return undefined
}

function isSame(a: readonly HeldGrant[], b: readonly HeldGrant[]): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i])
}
