// The steps before the filters, as far as they are rules: the request path and `explain` take them in this order, and refuse with
// the same words.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledCluster, CompiledPolicy, CompiledRevocation } from '../cluster/compiled-cluster.ts'
import { type Revocable, revokedPart } from '../cluster/revocation.ts'
import type { PolicyMatch } from '../policy/match-index.ts'
import { matchPolicy } from '../policy/match-policy.ts'
import { noPolicyMessage, targetTooLongMessage } from '../policy/policy-messages.ts'
import { MAX_TARGET_LENGTH, parseRequestInfo, type RequestInfo } from '../request/request-info.ts'

/** Before anything of the target is looked at. */
export function refuseLongTarget({ length }: string): Refusal | undefined {
  return length > MAX_TARGET_LENGTH ? refuse('target-too-long', targetTooLongMessage(length)) : undefined
}

export function readRequestInfo(method: string, target: string): RequestInfo | Refusal {
  const info = parseRequestInfo(method, target)
  return 'failure' in info ? refuse(info.code === 400 ? 'bad-request' : 'request-info', info.failure) : info
}

/** Without or with an invalid credential: what was wrong is not told. */
export function refuseUnauthorized(): Refusal {
  return refuse('unauthorized', 'Unauthorized')
}

/**
 * Asked of whoever sends a request, after all that was remembered or waited for: what is revoked in the meantime counts.
 * @param revoked of the cluster as it is now
 */
export function refuseRevoked(revoked: CompiledRevocation | undefined, requester: Revocable): Refusal | undefined {
  if (revoked === undefined) return undefined
  const part = revokedPart(revoked, requester)
  return part === '' ? undefined : refuseRevokedPart(part)
}

/** Why is told to the operator, in the object, and not to whoever has the credential now. */
export function refuseRevokedPart(part: string): Refusal {
  return refuse('revoked', `Unauthorized: ${part}`, { rule: 'spec.authentication.revoked' })
}

/** The policy that decides about the request. */
export function selectPolicy(
  cluster: CompiledCluster,
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): PolicyMatch | Refusal {
  const matched = matchPolicy(cluster.policies, info, user, userAgent)
  return matched ?? refuse('no-policy', noPolicyMessage(user, info, cluster.name))
}

/** Of the same cluster as the match. */
export function policyOf(cluster: CompiledCluster, { policy }: PolicyMatch): CompiledPolicy {
  const found = cluster.policies[policy]
  if (found === undefined) throw new RangeError(`cluster "${cluster.name}" has no policy ${policy}`)
  return found
}
