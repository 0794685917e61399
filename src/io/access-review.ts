// SubjectAccessReviews for client-sent impersonation (kubectl --as): may the requestor act as somebody else?

import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { UserInfo } from '../api/user.ts'
import type { AccessReviewAttributes } from '../core/impersonate.ts'
import type { ReviewCall } from './token-review.ts'

export type AccessVerdict =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'denied'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly message: string }

export interface AccessQuery {
  readonly cluster: string
  readonly epoch: number
  readonly user: UserInfo
  readonly attributes: AccessReviewAttributes
}

export interface AccessReviewer {
  review(query: AccessQuery, call: ReviewCall): Promise<AccessVerdict>
}

/** Short: a right that was taken away must not work on for minutes. */
const ALLOWED_TTL_MS = 30_000
const DENIED_TTL_MS = 10_000
const MAX_REMEMBERED = 8192

/** @param onReviewed what upstream answered, for metrics */
export function createAccessReviewer(
  monotonic: () => number,
  onReviewed: (cluster: string, verdict: AccessVerdict['kind']) => void,
): AccessReviewer {
  const remembered = new LRUCache<string, { verdict: AccessVerdict; untilMs: number }>({ max: MAX_REMEMBERED })
  const running = new Map<string, Promise<AccessVerdict>>()

  const ask = async (key: string, query: AccessQuery, call: ReviewCall): Promise<AccessVerdict> => {
    const verdict = await askUpstream(query, call)
    onReviewed(query.cluster, verdict.kind)
    if (verdict.kind !== 'unavailable') {
      const ttl = verdict.kind === 'allowed' ? ALLOWED_TTL_MS : DENIED_TTL_MS
      remembered.set(key, { verdict, untilMs: monotonic() + ttl })
    }
    return verdict
  }

  return {
    async review(query, call) {
      const key = createHash('sha256')
        .update(JSON.stringify([query.cluster, query.epoch, query.user, query.attributes]))
        .digest('base64')
      const known = remembered.get(key)
      if (known !== undefined && known.untilMs > monotonic()) return known.verdict
      const joined = running.get(key)
      if (joined !== undefined) return await joined
      const asked = ask(key, query, call).finally(() => running.delete(key))
      running.set(key, asked)
      return await asked
    },
  }
}

async function askUpstream(query: AccessQuery, call: ReviewCall): Promise<AccessVerdict> {
  const { user, attributes } = query
  const review = {
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    spec: { user: user.name, groups: user.groups, uid: user.uid, extra: user.extra, resourceAttributes: attributes },
  }
  try {
    const answer = await call(JSON.stringify(review))
    if (answer.status !== 200 && answer.status !== 201) {
      return { kind: 'unavailable', message: `SubjectAccessReview was answered with ${answer.status}` }
    }
    const status: unknown = Reflect.get(JSON.parse(answer.body) as object, 'status')
    if (typeof status !== 'object' || status === null) return { kind: 'unavailable', message: 'answer without status' }
    // Both at once contradicts the API; kube-apiserver's webhook authorizer takes it as a no.
    const denied: unknown = Reflect.get(status, 'denied')
    if (Reflect.get(status, 'allowed') === true && denied !== true) return { kind: 'allowed' }
    const reason: unknown = Reflect.get(status, 'reason')
    return { kind: 'denied', reason: typeof reason === 'string' ? reason : '' }
  } catch (error) {
    return { kind: 'unavailable', message: error instanceof Error ? error.message : 'SubjectAccessReview failed' }
  }
}
