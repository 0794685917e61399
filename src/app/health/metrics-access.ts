// Who may read /metrics on the health listener: whoever is on this machine, whoever knows the token of a file, or whoever the API server
// that holds the objects allows it (TokenReview, then SubjectAccessReview of `get /metrics`), as kube-apiserver's own components do.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { MetricsAccess, MetricsRefusal } from '../../admin/health-server.ts'
import type { Logger } from '../../api/ports/ports.ts'
import { addressSource } from '../../core/limits/call-source.ts'
import { readBearerToken } from '../../core/request/websocket-token.ts'
import { createAccessReviewer } from '../../io/reviews/access-review.ts'
import { createTokenReviewer, type ReviewCall, type Unanswered } from '../../io/reviews/token-review.ts'
import { CallLimitError } from '../../io/upstream/kube-call.ts'
import { ReviewTurns } from './review-turns.ts'

/** A token that is revoked works for this much longer. */
const TOKEN_TTL_MS = 60_000
const INVALID_TTL_MS = 10_000
/** The reviewers' name for whose tokens these are. */
const REVIEWER = 'metrics'
const NEEDED = { path: '/metrics', verb: 'get' } as const
const PATHS = {
  token: '/apis/authentication.k8s.io/v1/tokenreviews',
  access: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
} as const

/** POST to the API server that holds the objects. */
export type PostReview = (path: string, body: string) => ReturnType<ReviewCall>

export const OPEN_ACCESS: MetricsAccess = () => Promise.resolve(undefined)

/** Nobody, until somebody says who. */
export const NO_ACCESS: MetricsAccess = () =>
  refusal(
    403,
    '/metrics is not shown to other machines: start with --metrics-token-file, or read it from --admin-listen',
  )

/** @param expected the token in force, asked each time */
export function tokenAccess(expected: () => string): MetricsAccess {
  return (authorization) => {
    const given = tokenOf(authorization)
    // Hashes have one length, so the time says nothing.
    const same = given !== undefined && timingSafeEqual(hash(given), hash(expected()))
    return same ? Promise.resolve(undefined) : refusal(401, 'needs the bearer token of --metrics-token-file')
  }
}

/** Cached for a while; what is sent is limited, and addresses take turns. */
export function reviewAccess(post: PostReview, monotonic: () => number, log: Logger): MetricsAccess {
  const tokens = createTokenReviewer(monotonic, () => undefined)
  const rights = createAccessReviewer(monotonic, () => undefined)
  const turns = new ReviewTurns(monotonic)
  let reported = ''
  const failed = ({ message, retryAfterSeconds }: Unanswered): Promise<MetricsRefusal> => {
    if (retryAfterSeconds > 0) return refusal(429, message, retryAfterSeconds)
    if (message !== reported)
      log.warn('nobody can be allowed /metrics: the API server does not review', { reason: message })
    reported = message
    return refusal(503, 'the API server that reviews tokens does not answer', 1)
  }
  return async (authorization, remoteAddress) => {
    const token = tokenOf(authorization)
    if (token === undefined) return refusal(401, 'needs a bearer token that the cluster of the objects knows')
    const source = addressSource(remoteAddress)
    const call =
      (path: string): ReviewCall =>
      async (body) => {
        const heldMs = await turns.take(source)
        if (heldMs > 0) throw new CallLimitError('too many tokens are being reviewed', Math.ceil(heldMs / 1000))
        return post(path, body).finally(() => turns.done(source))
      }
    const about = { cluster: REVIEWER, epoch: 0 }
    const ttl = { successTtlMs: TOKEN_TTL_MS, failureTtlMs: INVALID_TTL_MS }
    const who = await tokens.review({ ...about, ...ttl, token, audiences: [] }, call(PATHS.token))
    if (who.kind === 'unavailable') return failed(who)
    if (who.kind === 'rejected') return refusal(401, 'the cluster of the objects does not know this token')
    const may = await rights.review({ ...about, user: who.user, attributes: NEEDED }, call(PATHS.access))
    if (may.kind === 'unavailable') return failed(may)
    reported = ''
    if (may.kind === 'allowed') return undefined
    return refusal(403, `user ${JSON.stringify(who.user.name)} cannot get path "/metrics"`)
  }
}

function tokenOf(authorization: string): string | undefined {
  const read = readBearerToken(['authorization', authorization])
  return read.kind === 'token' ? read.token : undefined
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function refusal(code: MetricsRefusal['code'], message: string, retryAfterSeconds = 0): Promise<MetricsRefusal> {
  return Promise.resolve({ code, message, retryAfterSeconds })
}
