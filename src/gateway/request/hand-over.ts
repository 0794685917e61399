// A request that a cluster with members hands over to one of them: how it looks there. The member is a cluster like any other for it, and nothing that
// was found out for the cluster before counts there, except who sent it.

import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { readRequestInfo, refuseRevoked } from '../core/admission/steps.ts'
import { handsOver } from '../core/cluster/compiled-cluster.ts'
import type { Decision, HandOver, Requested } from './exchange/decision.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Authenticated, authenticated } from './exchange/identity.ts'

/** The record says from here on that the member serves it. Its sender stays charged, and holds what it has taken. */
export function servedInMember(
  exchange: Exchange,
  decision: Decision,
  { member, user, target, renamed }: HandOver,
): (Requested & { readonly requester: Authenticated }) | Refusal {
  const { gw, record } = exchange
  const live = gw.clusters.get(member)
  // A member has servers: it hands nothing over itself.
  if (live === undefined || live.compiled.federation !== undefined)
    return refuse('member-unavailable', `there is no cluster "${member}" that has servers`, { rule: member })
  const { compiled: cluster } = live
  const { filters, requester: sender } = decision
  // With the sender's credential, so that a member can revoke that, too, and a logout ends the request.
  const requester = authenticated(user, sender.kind, sender.hashes)
  if (isRefusal(requester)) return requester
  const { origin } = sender
  // Who is logged in at the member is told where each of its users comes from.
  requester.origin = origin && { ...origin, by: `federation:${decision.cluster.name}` }
  const info = readRequestInfo(record.method, target)
  if ('refused' in info) return info
  exchange.target = target
  record.federation = decision.cluster.name
  record.cluster = member
  record.clusterLogMode = cluster.logMode
  const refused =
    refuseNotHandedOver(exchange, decision, member, requester) ??
    refuseRevoked(cluster.authentication.revoked, requester)
  if (refused !== undefined) return refused
  if (renamed !== undefined) {
    exchange.head.fields = renamed.fields
    if (renamed.body !== undefined) exchange.setRead(renamed.body)
    exchange.answerChange = renamed.answer
  }
  return { filters, live, cluster, info, requester, cameBy: decision }
}

/** As things are now: time may have passed since it was decided. */
export function refuseNotHandedOver(
  { gw }: Exchange,
  { live, cluster }: Decision,
  member: string,
  requester: Authenticated,
): Refusal | undefined {
  if (!handsOver(gw.clusters.get(cluster.name)?.compiled, member)) {
    const message = `cluster "${member}" has just stopped accepting requests of the users of "${cluster.name}"`
    return refuse('member-unavailable', message, { rule: member })
  }
  return refuseRevoked(live.compiled.authentication.revoked, requester)
}
