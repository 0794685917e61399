// Impersonation requested by the client (kubectl --as): each item is authorized by a SubjectAccessReview sent as the gateway,
// then the requester's identity is replaced (apiserver/pkg/endpoints/filters/impersonation).

import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import {
  type AccessReviewAttributes,
  type ClientImpersonation,
  impersonatedUser,
  impersonationForbiddenMessage,
  impersonationReviews,
  readImpersonation,
} from '../core/identity/impersonate.ts'
import type { AccessReviewResult } from '../io/reviews/access-review.ts'
import type { LiveCluster } from '../state/clusters.ts'
import { REVIEW_TIMEOUT_MS, refuseUnanswered, reviewCall } from './calls/kube-review.ts'
import type { Exchange } from './exchange/exchange.ts'
import { type Authenticated, authenticated } from './exchange/identity.ts'

const COULD_NOT = 'impersonation could not be authorized'

/** The identity to act as; unchanged if the client requests no impersonation. */
export function impersonate(
  exchange: Exchange,
  live: LiveCluster,
  requester: Authenticated,
): Authenticated | Refusal | Promise<Authenticated | Refusal> {
  const wanted = exchange.head.impersonates ? readImpersonation(exchange.list) : undefined
  if (wanted === undefined) return requester
  if (isRefusal(wanted)) return wanted
  return reviewed(exchange, live, requester, wanted)
}

/** Reviews one by one, user first, until the first denial: a requester without the right costs one review, whatever it asks for. */
async function reviewed(
  exchange: Exchange,
  live: LiveCluster,
  requester: Authenticated,
  wanted: ClientImpersonation,
): Promise<Authenticated | Refusal> {
  const { clock } = exchange.gw
  const endsAtMs = clock.monotonic() + REVIEW_TIMEOUT_MS
  for (const { asked, meant } of questions(requester, wanted)) {
    const timeoutMs = endsAtMs - clock.monotonic()
    const verdict = await ask(exchange, live, requester, asked, timeoutMs)
    if (verdict.kind === 'unavailable') return refuseUnanswered(exchange.gw, live, 'access-review', COULD_NOT, verdict)
    if (verdict.kind === 'denied')
      return refuse('impersonation-forbidden', impersonationForbiddenMessage(requester.user, meant, verdict.reason))
  }
  return authenticated(impersonatedUser(wanted), requester.kind === 'anonymous' ? 'anonymous' : 'token')
}

/**
 * An anonymous requester is unverified, and must not cause a review for each name it makes up: it may impersonate
 * users of any name, or none. That is a single review for all such requests.
 */
function questions(requester: Authenticated, wanted: ClientImpersonation): readonly Question[] {
  const all = impersonationReviews(wanted).map((attributes) => ({ asked: attributes, meant: attributes }))
  const [first] = all
  if (requester.kind !== 'anonymous' || first === undefined) return all
  return [{ asked: { ...first.asked, namespace: '', name: '' }, meant: first.meant }, ...all]
}

interface Question {
  readonly asked: AccessReviewAttributes
  /** What a denial is about. */
  readonly meant: AccessReviewAttributes
}

function ask(
  { gw, charge, gone }: Exchange,
  live: LiveCluster,
  requester: Authenticated,
  attributes: AccessReviewAttributes,
  timeoutMs: number,
): AccessReviewResult | Promise<AccessReviewResult> {
  if (gone || timeoutMs <= 0) return NO_TIME
  const { user } = requester
  const query = { cluster: live.compiled.name, epoch: live.identityEpoch, user, attributes }
  return gw.access.review(query, reviewCall(gw, live, 'access-review', charge, timeoutMs))
}

const NO_TIME: AccessReviewResult = {
  kind: 'unavailable',
  message: `the client has gone, or the access reviews took more than ${REVIEW_TIMEOUT_MS} ms`,
  retryAfterSeconds: 0,
}
