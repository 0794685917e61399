// Steps before the filters, as far as they are rules: the request path and `explain` take them in this order, and refuse with the same
// words.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledCluster, CompiledPolicy, CompiledRevocation } from '../cluster/compiled-cluster.ts'
import { type Revocable, revokedPart } from '../cluster/revocation.ts'
import { matchPolicy, type PolicyMatch } from '../policy/match-policy.ts'
import { noPolicyMessage, targetTooLongMessage } from '../policy/policy-messages.ts'
import { MAX_TARGET_LENGTH, parseRequestInfo, type RequestInfo } from '../request/request-info.ts'

/** Checked before the target is parsed. */
export function refuseLongTarget({ length }: string): Refusal | undefined {
  return length > MAX_TARGET_LENGTH ? refuse('target-too-long', targetTooLongMessage(length)) : undefined
}

export function readRequestInfo(method: string, target: string): RequestInfo | Refusal {
  const info = parseRequestInfo(method, target)
  return 'failure' in info ? refuse(info.code === 400 ? 'bad-request' : 'request-info', info.failure) : info
}

/** Missing or invalid credentials: the response does not say what was wrong. */
export function refuseUnauthorized(): Refusal {
  return refuse('unauthorized', 'Unauthorized')
}

/**
 * Checked for each requester, after cached results and waits: revocations made in the meantime count.
 * @param revoked of the cluster as it is now
 */
export function refuseRevoked(revoked: CompiledRevocation | undefined, requester: Revocable): Refusal | undefined {
  if (revoked === undefined) return undefined
  const part = revokedPart(revoked, requester)
  return part === '' ? undefined : refuseRevokedPart(part)
}

/** The reason is shown to the operator, in the object, but not to the current holder of the credential. */
export function refuseRevokedPart(part: string): Refusal {
  return refuse('revoked', `Unauthorized: ${part}`, { rule: 'spec.authentication.revoked' })
}

export function refuseEnded(): Refusal {
  return refuse('revoked', 'Unauthorized: the session of the token has ended at its provider; log in again', {
    rule: 'spec.authentication.jwt',
  })
}

/** Selects the policy that decides about the request. */
export function selectPolicy(
  cluster: CompiledCluster,
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): PolicyMatch | Refusal {
  const matched = matchPolicy(cluster.policies, info, user, userAgent)
  return matched ?? refuse('no-policy', noPolicyMessage(user, info, cluster.name))
}

/** The cluster must be the one that was matched. */
export function policyOf(cluster: CompiledCluster, { policy }: PolicyMatch): CompiledPolicy {
  const found = cluster.policies[policy]
  if (found === undefined) throw new RangeError(`cluster "${cluster.name}" has no policy ${policy}`)
  return found
}
