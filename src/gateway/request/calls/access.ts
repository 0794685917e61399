// Authorize first: an unauthorized caller must not learn whether the object exists, have its body parsed, or use up
// shared resources.

import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { type AccessReviewAttributes, impersonationForbiddenMessage } from '../../core/identity/impersonate.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { AccessReviewResult } from '../../io/reviews/access-review.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Authenticated } from '../exchange/identity.ts'
import { refuseUnanswered, reviewCall } from './kube-review.ts'

type Right =
  | { readonly kind: 'allowed' }
  /** Or the caller has to retry. */
  | { readonly kind: 'denied'; readonly refusal: Refusal }
  /** Upstream did not answer; `why` is human-readable. */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * Reviews the right for the whole namespace first, which is cached; then for this object.
 * @param doing human-readable
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
      // The failure policy does not apply to a user that has exhausted its reviews.
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

/** Whether the caller may list pods of the namespace; false if unknown. */
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
