// Authentication and authorization of requests by the API server that holds the objects (TokenReview, then SubjectAccessReview of the path), like
// kube-apiserver's own components. Results are cached; reviews are rate-limited, and addresses take turns.

import { CallTurns } from '../../../gateway/core/limits/call-turns.ts'
import { createAccessReviewer, type NonResourceAttributes } from '../../../gateway/io/reviews/access-review.ts'
import { createTokenReviewer, type ReviewCall, type Unanswered } from '../../../gateway/io/reviews/token-review.ts'
import { takeTurnIn } from '../../../gateway/request/calls/call-turn.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { addressCharge } from '../../../kit/core/shares/charge.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { AdminRefusal } from '../../io/server/route.ts'

/** A revoked token keeps working for up to this long. */
const TOKEN_TTL_MS = 60_000
const INVALID_TTL_MS = 10_000
/** Concurrent reviews. */
const MAX_REVIEWS = 8
/** Requests waiting for one; each occupies a connection of the listener. */
const MAX_WAITING = 32
const LONGEST_WAIT_MS = 2_000
/** Prometheus scrapes every few seconds, and results are cached. */
const REVIEW_RATE = { qps: 10, burst: 20 } as const
/** The reviewers' name for the owner of these tokens. */
const REVIEWER = 'own'
const PATHS = {
  token: '/apis/authentication.k8s.io/v1/tokenreviews',
  access: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
} as const

/** POSTs to the API server that holds the objects. */
export type PostReview = (path: string, body: string) => ReturnType<ReviewCall>

export interface AccessReviews {
  /** The token's user. Never rejects. */
  who(token: string, remoteAddress: string): Promise<UserInfo | AdminRefusal>
  /** undefined = allowed. Never rejects. */
  may(user: UserInfo, attributes: NonResourceAttributes, remoteAddress: string): Promise<AdminRefusal | undefined>
}

/** @param what access that is refused while the API server does not respond: for the log */
export function accessReviews(post: PostReview, monotonic: () => number, log: Logger, what: string): AccessReviews {
  const tokens = createTokenReviewer(monotonic, () => undefined)
  const rights = createAccessReviewer(monotonic, () => undefined)
  // Made-up tokens cannot crowd out the reviews of others: addresses take turns.
  const turns = new CallTurns(MAX_REVIEWS, MAX_WAITING)
  const world = { clock: { monotonic }, random: Math.random }
  let reported = ''
  const failed = ({ message, retryAfterSeconds }: Unanswered): AdminRefusal => {
    if (retryAfterSeconds > 0) return { code: 429, message, retryAfterSeconds }
    if (message !== reported) {
      log.warn(`access to ${what} cannot be granted: the API server does not answer reviews`, { reason: message })
    }
    reported = message
    return { code: 503, message: 'the API server that reviews tokens does not answer', retryAfterSeconds: 1 }
  }
  const callOf = (path: string, remoteAddress: string): ReviewCall => {
    const charge = addressCharge(remoteAddress)
    return async (body) => {
      const done = await takeTurnIn(world, turns, charge, LONGEST_WAIT_MS, {
        rate: () => REVIEW_RATE,
        message: (_, seconds) => tooManyReviews(charge.source, seconds),
      })
      return post(path, body).finally(done)
    }
  }
  const about = { cluster: REVIEWER, epoch: 0 }
  return {
    async who(token, remoteAddress) {
      const ttl = { successTtlMs: TOKEN_TTL_MS, failureTtlMs: INVALID_TTL_MS }
      const call = callOf(PATHS.token, remoteAddress)
      const who = await tokens.review({ ...about, ...ttl, token, audiences: [] }, call)
      if (who.kind === 'unavailable') return failed(who)
      if (who.kind === 'rejected') return refusal(401, 'the cluster that holds the objects does not accept this token')
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

function tooManyReviews(source: string, seconds: number): string {
  const limit = `${REVIEW_RATE.qps} a second are sent, shared fairly among addresses`
  return `too many reviews of tokens and rights because of ${source}: ${limit}; retry in ${seconds} s`
}

export function refusal(code: AdminRefusal['code'], message: string): AdminRefusal {
  return { code, message, retryAfterSeconds: 0 }
}
