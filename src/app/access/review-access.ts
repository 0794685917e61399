// Who sends a request, and whether they may, as the API server that holds the objects says (TokenReview, then SubjectAccessReview of the
// path), as kube-apiserver's own components do. Answers are remembered for a while; what is sent is limited, and addresses take turns.

import type { AccessRefusal } from '../../admin/route.ts'
import type { UserInfo } from '../../api/kube/user.ts'
import type { Logger } from '../../api/ports/ports.ts'
import { CallLimitError } from '../../core/answers/call-errors.ts'
import { addressSource } from '../../core/limits/call-source.ts'
import { spreadRetryAfter } from '../../core/limits/spread-retry-after.ts'
import { createAccessReviewer, type NonResourceAttributes } from '../../io/reviews/access-review.ts'
import { createTokenReviewer, type ReviewCall, type Unanswered } from '../../io/reviews/token-review.ts'
import { REVIEW_RATE, ReviewTurns } from './review-turns.ts'

/** A token that is revoked works for this much longer. */
const TOKEN_TTL_MS = 60_000
const INVALID_TTL_MS = 10_000
/** The reviewers' name for whose tokens these are. */
const REVIEWER = 'own'
const PATHS = {
  token: '/apis/authentication.k8s.io/v1/tokenreviews',
  access: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
} as const

/** POST to the API server that holds the objects. */
export type PostReview = (path: string, body: string) => ReturnType<ReviewCall>

export interface AccessReviews {
  /** Whose token it is. Never rejects. */
  who(token: string, remoteAddress: string): Promise<UserInfo | AccessRefusal>
  /** undefined = they may. Never rejects. */
  may(user: UserInfo, attributes: NonResourceAttributes, remoteAddress: string): Promise<AccessRefusal | undefined>
}

/** @param what nobody can be allowed while the API server does not answer: for the log */
export function accessReviews(post: PostReview, monotonic: () => number, log: Logger, what: string): AccessReviews {
  const tokens = createTokenReviewer(monotonic, () => undefined)
  const rights = createAccessReviewer(monotonic, () => undefined)
  const turns = new ReviewTurns(monotonic)
  let reported = ''
  const failed = ({ message, retryAfterSeconds }: Unanswered): AccessRefusal => {
    if (retryAfterSeconds > 0) return { code: 429, message, retryAfterSeconds }
    if (message !== reported) {
      log.warn(`nobody can be allowed ${what}: the API server does not review`, { reason: message })
    }
    reported = message
    return { code: 503, message: 'the API server that reviews tokens does not answer', retryAfterSeconds: 1 }
  }
  const callOf = (path: string, remoteAddress: string): ReviewCall => {
    const source = addressSource(remoteAddress)
    return async (body) => {
      const heldMs = await turns.take(source)
      if (heldMs > 0) throw tooManyReviews(source, heldMs)
      return post(path, body).finally(() => turns.done(source))
    }
  }
  const about = { cluster: REVIEWER, epoch: 0 }
  return {
    async who(token, remoteAddress) {
      const ttl = { successTtlMs: TOKEN_TTL_MS, failureTtlMs: INVALID_TTL_MS }
      const call = callOf(PATHS.token, remoteAddress)
      const who = await tokens.review({ ...about, ...ttl, token, audiences: [] }, call)
      if (who.kind === 'unavailable') return failed(who)
      if (who.kind === 'rejected') return refusal(401, 'the cluster of the objects does not know this token')
      return who.user
    },
    async may(user, attributes, remoteAddress) {
      const may = await rights.review({ ...about, user, attributes }, callOf(PATHS.access, remoteAddress))
      if (may.kind === 'unavailable') return failed(may)
      reported = ''
      if (may.kind === 'allowed') return undefined
      const { verb, path } = attributes
      return refusal(403, `user ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}`)
    },
  }
}

function tooManyReviews(source: string, heldMs: number): CallLimitError {
  const seconds = spreadRetryAfter(heldMs, Math.random())
  const limit = `${REVIEW_RATE.qps} a second are sent, and every address has a share`
  const message = `too many reviews of tokens and rights because of ${source}: ${limit}; come back in ${seconds} s`
  return new CallLimitError(message, seconds)
}

export function refusal(code: AccessRefusal['code'], message: string): AccessRefusal {
  return { code, message, retryAfterSeconds: 0 }
}
