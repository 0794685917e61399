// Whether the caller may read: asked of the cluster for exactly this request, since an authorizer may allow less than all of a resource.

import type { AccessReviewAttributes } from '../../gateway/core/identity/impersonate.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import { reviewCall } from '../../gateway/request/calls/kube-review.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import type { LiveCluster } from '../../gateway/state/clusters.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import type { ReadRequest } from '../core/requests/read-request.ts'

/** As long as delegating API servers keep it (apiserver/pkg/server/options/authorization.go). */
const ALLOWED_MS = 10_000
const REVIEW_MS = 3_000

/** 'unknown' = the cluster did not say. */
export type Right = 'allowed' | 'denied' | 'unknown'

/** May this user do it there? */
export interface RightQuestion {
  readonly live: LiveCluster
  readonly user: UserInfo
  readonly info: RequestInfo
  /** As sent; '' = everything. */
  readonly fieldSelector: string
  readonly labelSelector: string
}

export async function rightTo(request: ReadRequest, decision: Decision): Promise<Right> {
  const { exchange, live, caller, info } = decision
  const { fieldSelector, labelSelector } = request.kind === 'get' ? NO_SELECTORS : request
  const question = { live, user: caller.user, info, fieldSelector, labelSelector }
  return (await askForRight(question, exchange, REVIEW_MS)).right
}

interface AskedRight {
  readonly right: Right
  /** What was asked, by which the answer can be remembered. */
  readonly query: object
  /** The cluster was not asked: the caller has asked too much of it. */
  readonly isHeldBack: boolean
}

/** @param ms how long it is waited for */
export async function askForRight(
  { live, user, info, fieldSelector, labelSelector }: RightQuestion,
  { gw, charge }: Pick<Exchange, 'gw' | 'charge'>,
  ms: number,
): Promise<AskedRight> {
  const attributes: AccessReviewAttributes = {
    verb: info.verb,
    group: info.apiGroup,
    version: info.apiVersion,
    resource: info.resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name,
    ...(fieldSelector !== '' && { fieldSelector: { rawSelector: fieldSelector } }),
    ...(labelSelector !== '' && { labelSelector: { rawSelector: labelSelector } }),
  }
  const query = { cluster: live.compiled.name, epoch: live.identityEpoch, user, attributes, allowedMs: ALLOWED_MS }
  const found = await gw.access.review(query, reviewCall(gw, live, 'access-review', charge, ms))
  if (found.kind !== 'unavailable') return { right: found.kind, query, isHeldBack: false }
  return { right: 'unknown', query, isHeldBack: found.retryAfterSeconds > 0 }
}

const NO_SELECTORS = { fieldSelector: '', labelSelector: '' }
