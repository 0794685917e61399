// SubjectAccessReviews: may a client impersonate another user (kubectl --as), or read one of the gateway's own paths?

import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { AccessReviewAttributes } from '../../core/identity/impersonate.ts'
import { field } from './read-answer.ts'
import { type ReviewCall, reviewUnavailable } from './token-review.ts'

export type AccessReviewResult =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'denied'; readonly reason: string }
  /** `retryAfterSeconds`: above 0 if the gateway itself held the review back. */
  | { readonly kind: 'unavailable'; readonly message: string; readonly retryAfterSeconds: number }

interface AccessQuery {
  readonly cluster: string
  readonly epoch: number
  readonly user: UserInfo
  readonly attributes: AccessReviewAttributes | NonResourceAttributes
  /** For how long an earlier "allowed" counts, milliseconds. Default: 30 s, the longest. */
  readonly allowedMs?: number
}

/** For a path that is not an object's. */
export interface NonResourceAttributes {
  readonly path: string
  readonly verb: string
}

export interface AccessReviewer {
  review(query: AccessQuery, call: ReviewCall): Promise<AccessReviewResult>
}

/** Short, so that a revoked permission stops working soon. */
const ALLOWED_TTL_MS = 30_000
const DENIED_TTL_MS = 10_000
/** Per result: made-up reviews that are denied must not evict others' allowed ones. */
const MAX_REMEMBERED = 8192
/** Characters of upstream's reason, which is cached and shown to the client. */
const MAX_REASON = 1024

interface Remembered {
  readonly verdict: AccessReviewResult
  /** Monotonic milliseconds. */
  readonly fromMs: number
  readonly untilMs: number
}

/** @param onReviewed called with upstream's result, for metrics */
export function createAccessReviewer(
  monotonic: () => number,
  onReviewed: (cluster: string, verdict: AccessReviewResult['kind']) => void,
): AccessReviewer {
  const allowed = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED })
  const denied = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED })
  const running = new Map<string, Promise<AccessReviewResult>>()

  const ask = async (key: string, query: AccessQuery, call: ReviewCall): Promise<AccessReviewResult> => {
    // The right may be gone by the time that the answer arrives.
    const fromMs = monotonic()
    const verdict = await askUpstream(query, call)
    if (verdict.kind === 'unavailable') {
      if (verdict.retryAfterSeconds === 0) onReviewed(query.cluster, 'unavailable')
      return verdict
    }
    onReviewed(query.cluster, verdict.kind)
    const isAllowed = verdict.kind === 'allowed'
    const untilMs = fromMs + (isAllowed ? ALLOWED_TTL_MS : DENIED_TTL_MS)
    const [now, before] = isAllowed ? [allowed, denied] : [denied, allowed]
    before.delete(key)
    now.set(key, { verdict, fromMs, untilMs })
    return verdict
  }

  const isFresh = ({ verdict, fromMs, untilMs }: Remembered, allowedMs = ALLOWED_TTL_MS): boolean => {
    const nowMs = monotonic()
    return nowMs < untilMs && (verdict.kind !== 'allowed' || nowMs < fromMs + allowedMs)
  }

  return {
    async review(query, call) {
      const key = createHash('sha256')
        .update(JSON.stringify([query.cluster, query.epoch, query.user, query.attributes]))
        .digest('base64')
      const known = allowed.get(key) ?? denied.get(key)
      if (known !== undefined && isFresh(known, query.allowedMs)) return known.verdict
      const joined = running.get(key)
      if (joined !== undefined) return await joined
      const asked = ask(key, query, call).finally(() => running.delete(key))
      running.set(key, asked)
      return await asked
    },
  }
}

async function askUpstream(query: AccessQuery, call: ReviewCall): Promise<AccessReviewResult> {
  const { user, attributes } = query
  const review = {
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    spec: {
      user: user.name,
      groups: user.groups,
      uid: user.uid,
      extra: user.extra,
      ...('path' in attributes ? { nonResourceAttributes: attributes } : { resourceAttributes: attributes }),
    },
  }
  try {
    const answer = await call(JSON.stringify(review))
    if (answer.status !== 200 && answer.status !== 201) {
      return reviewUnavailable(`SubjectAccessReview was answered with ${answer.status}`)
    }
    return readAccess(JSON.parse(answer.body))
  } catch (error) {
    return reviewUnavailable(error)
  }
}

export function readAccess(answer: unknown): AccessReviewResult {
  const status = field(answer, 'status')
  if (typeof status !== 'object' || status === null) return reviewUnavailable('answer without status')
  // Having both contradicts the API; kube-apiserver's webhook authorizer treats it as denied.
  if (field(status, 'allowed') === true && field(status, 'denied') !== true) return { kind: 'allowed' }
  const reason = field(status, 'reason')
  return { kind: 'denied', reason: typeof reason === 'string' ? shortened(reason) : '' }
}

/** Copied: a substring would keep the whole string alive. */
function shortened(reason: string): string {
  if (reason.length <= MAX_REASON) return reason
  return Buffer.from(reason.slice(0, MAX_REASON), 'utf16le').toString('utf16le')
}
