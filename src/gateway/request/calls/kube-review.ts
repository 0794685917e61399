// The gateway's own review calls to a cluster.

import type { Charge } from '../../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { REVIEW } from '../../../kube/core/answers/answer-limits.ts'
import { KubeCallError } from '../../../kube/core/answers/call-errors.ts'
import type { ReviewCall } from '../../io/reviews/token-review.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Gateway } from '../exchange/gateway.ts'
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
