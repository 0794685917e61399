// Impersonation that the client asks for (kubectl --as): each item is authorised by a SubjectAccessReview sent as the gateway,
// then the requestor's identity is replaced (apiserver/pkg/endpoints/filters/impersonation).

import {
  impersonatedUser,
  impersonationForbiddenMessage,
  impersonationReviews,
  readImpersonation,
} from '../core/impersonate.ts'
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { type Authenticated, authenticated } from './identity.ts'
import { reviewCall } from './kube-review.ts'

const ACCESS_REVIEW_PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews'

/** The identity to act as; the one given when the client asks for no other. */
export function impersonate(
  { gw, head, list }: Exchange,
  live: LiveCluster,
  requestor: Authenticated,
): Authenticated | Refusal | Promise<Authenticated | Refusal> {
  const wanted = head.impersonates ? readImpersonation(list) : undefined
  if (wanted === undefined) return requestor
  if (isRefusal(wanted)) return wanted
  return reviewed(gw, live, requestor, wanted)
}

async function reviewed(
  gw: Gateway,
  live: LiveCluster,
  requestor: Authenticated,
  wanted: Parameters<typeof impersonationReviews>[0],
): Promise<Authenticated | Refusal> {
  const call = reviewCall(gw, live, ACCESS_REVIEW_PATH)
  const cluster = live.compiled.name
  const reviews = impersonationReviews(wanted)
  const verdicts = await Promise.all(
    reviews.map((attributes) =>
      gw.access.review({ cluster, epoch: live.identityEpoch, user: requestor.user, attributes }, call),
    ),
  )
  for (const [i, verdict] of verdicts.entries()) {
    const attributes = reviews[i]
    if (verdict.kind === 'allowed' || attributes === undefined) continue
    if (verdict.kind === 'unavailable') {
      gw.log.warn('access review failed', { cluster, reason: verdict.message })
      return refuse(
        'authentication-unavailable',
        `impersonation could not be authorized: cluster "${cluster}" does not answer`,
      )
    }
    return refuse('impersonation-forbidden', impersonationForbiddenMessage(requestor.user, attributes, verdict.reason))
  }
  return authenticated(impersonatedUser(wanted), requestor.kind === 'anonymous' ? 'anonymous' : 'token')
}
