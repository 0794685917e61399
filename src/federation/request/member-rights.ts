// Whether a member would let the caller read: first as its UpstreamCluster has it (revocations, policies, the access list, the degrade mode), then as the
// cluster says. What it would refuse a client that comes to it is not shown here either.

import { askForRight, type Right, type RightQuestion } from '../../cache/request/rights.ts'
import type { Admission } from '../../gateway/core/admission/filter.ts'
import { PURE_FILTERS } from '../../gateway/core/admission/order.ts'
import { policyOf, refuseRevoked, selectPolicy } from '../../gateway/core/admission/steps.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { isRefusal } from '../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import { userInMember } from '../core/mapped-user.ts'
import type { KnownRights } from '../state/known-rights.ts'

/**
 * For all that a read asks of members: while one is frozen, the others' answer comes within two seconds. A quiet member takes up to 1.25 s to prove that
 * it is current.
 */
export const MEMBER_MS = 1_700

/** The read of one member: the request as the member would get it, with its own namespaces and names. */
export interface MemberRead extends Omit<RightQuestion, 'user'> {
  readonly trustsUsers: boolean
}

/** @param ms how long it is asked @returns unknown = the member does not say, and has not allowed it before */
export async function rightInMember(
  read: MemberRead,
  decision: Decision,
  known: KnownRights,
  ms: number,
): Promise<Right> {
  const user = admittedUser(read, decision)
  if (user === undefined) return 'denied'
  const { exchange } = decision
  const { right, query, isHeldBack } = await askForRight({ ...read, user }, exchange, ms)
  const key = JSON.stringify(query)
  const nowMs = exchange.gw.clock.monotonic()
  if (right === 'allowed') known.allowed(key, nowMs)
  if (right === 'denied') known.denied(key)
  // Otherwise a caller could keep a right that is taken away, by asking so much that the member is not asked.
  const mayRemember = right === 'unknown' && !isHeldBack
  return mayRemember && known.wasAllowed(key, nowMs) ? 'allowed' : right
}

/** The caller as the member knows it, if its UpstreamCluster would admit the request; undefined = it would not. */
export function admittedUser(read: AdmittedRead, decision: Decision): UserInfo | undefined {
  const user = userInMember(decision.caller.user, read.trustsUsers)
  return user !== undefined && isAdmitted(read, decision, user) ? user : undefined
}

type AdmittedRead = Pick<MemberRead, 'live' | 'trustsUsers' | 'info'>

/** By the rules of the member's own UpstreamCluster, as if the request had come to it. */
function isAdmitted({ live, info }: AdmittedRead, decision: Decision, user: UserInfo): boolean {
  const { compiled: cluster } = live
  const { requester, userAgent } = decision
  const { revoked } = cluster.authentication
  if (refuseRevoked(revoked, requester) !== undefined || refuseRevoked(revoked, { ...requester, user }) !== undefined)
    return false
  const matched = selectPolicy(cluster, info, user, userAgent)
  if (isRefusal(matched)) return false
  const policy = policyOf(cluster, matched)
  const asked: Admission = {
    ...admissionOf(decision),
    cluster,
    limits: live.flows,
    policy,
    rule: matched.rule,
    info,
    user,
  }
  return MEMBER_FILTERS.every((filter) => filter.check(asked) === undefined || filter.shadow(asked))
}

/** What they take of limits is taken of the federated cluster's. */
const MEMBER_FILTERS = [PURE_FILTERS['access-list'], PURE_FILTERS['dispatch-action'], PURE_FILTERS.degrade]

function admissionOf({
  userAgent,
  remoteAddress,
  isWatch,
  isUpgrade,
  moment,
}: Decision): Omit<Admission, 'cluster' | 'limits' | 'policy' | 'rule' | 'info' | 'user'> {
  return {
    userAgent,
    remoteAddress,
    isWatch,
    isUpgrade,
    list: undefined,
    moment,
    passed: 0,
    reserved: false,
    held: undefined,
    warnings: [],
    shadow: [],
  }
}
