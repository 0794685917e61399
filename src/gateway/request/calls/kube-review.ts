// The gateway's own review calls to a cluster, and what the caller may do by them. Authorize first: an unauthorized caller must not learn whether
// the object exists, have its body parsed, or use up shared resources.

import type { Charge } from '../../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { REVIEW } from '../../../kube/core/answers/answer-limits.ts'
import { KubeCallError } from '../../../kube/core/answers/call-errors.ts'
import { type AccessReviewAttributes, impersonationForbiddenMessage } from '../../core/identity/impersonate.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import type { AccessReviewResult } from '../../io/reviews/access-review.ts'
import type { ReviewCall } from '../../io/reviews/token-review.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../exchange/gateway.ts'
import type { Authenticated } from '../exchange/identity.ts'
import { callAsGateway } from './call-as-gateway.ts'

/** Same as kube-apiserver's webhook authenticator: a review that takes longer has failed. */
export const REVIEW_TIMEOUT_MS = 10_000

const PATHS = {
  'token-review': '/apis/authentication.k8s.io/v1/tokenreviews',
  'access-review': '/apis/authorization.k8s.io/v1/subjectaccessreviews',
} as const

/**
 * @param charge the source that causes the call: fairly queued with others
 * @throws {KubeCallError} inside the returned call, when no endpoint answered or may be asked
 */
export function reviewCall(
  gw: Gateway,
  live: LiveCluster,
  kind: keyof typeof PATHS,
  charge: Charge,
  timeoutMs: number = REVIEW_TIMEOUT_MS,
): ReviewCall {
  // The body contains a client's token.
  if (kind === 'token-review' && live.compiled.endpoints.some(({ scheme }) => scheme === 'http')) {
    return () => Promise.reject(new KubeCallError('the servers are http://, and no token is sent in clear'))
  }
  return (body) =>
    callAsGateway(gw, live, { kind, charge, method: 'POST', path: PATHS[kind], body, timeoutMs, limits: REVIEW })
}

/** A review that failed: no answer in time, or the gateway throttled it. */
interface NoAnswer {
  readonly message: string
  /** 0 = it was sent, or there was no endpoint to send it to. */
  readonly retryAfterSeconds: number
}

/** @param what what could not be done without the answer, human-readable */
export function refuseUnanswered(
  gw: Gateway,
  live: LiveCluster,
  kind: keyof typeof PATHS,
  what: string,
  { message, retryAfterSeconds }: NoAnswer,
): Refusal {
  const { name } = live.compiled
  if (retryAfterSeconds > 0) return refuse('too-many-reviews', message, { retryAfterSeconds, rule: kind })
  gw.log.warn(`${kind.replace('-', ' ')} failed`, { cluster: name, reason: message })
  return refuse('authentication-unavailable', `${what}: cluster "${name}" does not answer`)
}

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
  let verdict = await accessVerdict(exchange, live, caller, any)
  if (verdict.kind === 'denied' && info.name !== '') verdict = await accessVerdict(exchange, live, caller, named)
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
  return (await accessVerdict(exchange, live, caller, list)).kind === 'allowed'
}

/** Whether the user may do this, by a SubjectAccessReview of the cluster. Verdicts are remembered for a short time. */
export function accessVerdict(
  { gw, charge }: Exchange,
  live: LiveCluster,
  { user }: Authenticated,
  attributes: AccessReviewAttributes,
  timeoutMs: number = REVIEW_TIMEOUT_MS,
): Promise<AccessReviewResult> {
  const query = { cluster: live.compiled.name, epoch: live.identityEpoch, user, attributes }
  return gw.access.review(query, reviewCall(gw, live, 'access-review', charge, timeoutMs))
}
