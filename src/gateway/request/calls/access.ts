// Whether the caller may do it at all, asked before anything else is done for the request: who may not must neither learn
// whether the object exists, nor have its body parsed, nor spend what others need.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { type AccessReviewAttributes, impersonationForbiddenMessage } from '../../core/identity/impersonate.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { AccessReviewResult } from '../../io/reviews/access-review.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Authenticated } from '../exchange/identity.ts'
import { refuseUnanswered, reviewCall } from './kube-review.ts'

export type Right =
  | { readonly kind: 'allowed' }
  /** Or he is to come again. */
  | { readonly kind: 'denied'; readonly refusal: Refusal }
  /** Upstream gave no answer; why, for people. */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * First whether it may be done to any object of the namespace, which is remembered; then to this one.
 * @param doing for people
 */
export async function reviewRight(
  exchange: Exchange,
  live: LiveCluster,
  caller: Authenticated,
  info: RequestInfo,
  doing = 'delete it',
): Promise<Right> {
  const any: AccessReviewAttributes = {
    verb: info.verb,
    group: info.apiGroup,
    resource: info.resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: '',
  }
  const named = { ...any, name: info.name }
  let verdict = await ask(exchange, live, caller, any)
  if (verdict.kind === 'denied' && info.name !== '') verdict = await ask(exchange, live, caller, named)
  switch (verdict.kind) {
    case 'allowed':
      return verdict
    case 'unavailable':
      // A user that has exhausted its reviews is not let pass by the failure policy.
      if (verdict.retryAfterSeconds > 0)
        return { kind: 'denied', refusal: refuseUnanswered(exchange.gw, live, 'access-review', '', verdict) }
      return { kind: 'unknown', why: `the caller's right to ${doing} could not be verified: ${verdict.message}` }
    case 'denied': {
      const message = impersonationForbiddenMessage(caller.user, named, verdict.reason)
      return {
        kind: 'denied',
        refusal: refuse('protection-forbidden', message, { object: { kind: info.resource, name: info.name } }),
      }
    }
  }
}

/** Whether the caller may list the pods of the namespace. False when that is not known. */
export async function mayList(
  exchange: Exchange,
  live: LiveCluster,
  caller: Authenticated,
  namespace: string,
): Promise<boolean> {
  const list = { verb: 'list', group: '', resource: 'pods', subresource: '', namespace, name: '' }
  return (await ask(exchange, live, caller, list)).kind === 'allowed'
}

function ask(
  { gw, charge }: Exchange,
  live: LiveCluster,
  caller: Authenticated,
  attributes: AccessReviewAttributes,
): Promise<AccessReviewResult> {
  const query = { cluster: live.compiled.name, epoch: live.identityEpoch, user: caller.user, attributes }
  return gw.access.review(query, reviewCall(gw, live, 'access-review', charge))
}
