// Whether the caller may read: asked of the cluster for exactly this request, since an authorizer may allow less than all of a resource.

import type { AccessReviewAttributes } from '../../gateway/core/identity/impersonate.ts'
import { reviewCall } from '../../gateway/request/calls/kube-review.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { ReadRequest } from '../core/requests/read-request.ts'

/** As long as delegating API servers keep it (apiserver/pkg/server/options/authorization.go). */
export const ALLOWED_MS = 10_000
const REVIEW_MS = 3_000

/** 'unknown' = the cluster did not say. */
export type Right = 'allowed' | 'denied' | 'unknown'

export async function rightTo(request: ReadRequest, decision: Decision): Promise<Right> {
  const { exchange, live, caller, info } = decision
  const { gw, charge } = exchange
  const { fieldSelector, labelSelector } = request.kind === 'get' ? NO_SELECTORS : request
  const attributes: AccessReviewAttributes = {
    verb: info.verb,
    group: info.apiGroup,
    version: info.apiVersion,
    resource: info.resource,
    subresource: '',
    namespace: info.namespace,
    name: info.name,
    ...(fieldSelector !== '' && { fieldSelector: { rawSelector: fieldSelector } }),
    ...(labelSelector !== '' && { labelSelector: { rawSelector: labelSelector } }),
  }
  const query = {
    cluster: live.compiled.name,
    epoch: live.identityEpoch,
    user: caller.user,
    attributes,
    allowedMs: ALLOWED_MS,
  }
  const { kind } = await gw.access.review(query, reviewCall(gw, live, 'access-review', charge, REVIEW_MS))
  return kind === 'unavailable' ? 'unknown' : kind
}

const NO_SELECTORS = { fieldSelector: '', labelSelector: '' }
