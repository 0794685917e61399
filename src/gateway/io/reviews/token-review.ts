// Bearer tokens: reviewed by a healthy kube-apiserver of the cluster (TokenReview), one call for concurrent lookups, with caching.

import { hash, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { CallLimitError } from '../../../kube/core/answers/call-errors.ts'
import type { CredentialOrigin } from '../../api/identity-seen.ts'
import type { Vouched } from './issuer-tokens.ts'
import { field } from './read-answer.ts'

/** Makes the call; throwing means "no response", never "no". */
export type ReviewCall = (body: string) => Promise<{ status: number; body: string }>

export type TokenReviewResult =
  /** `untilMs`: end of the result's validity, monotonic milliseconds. */
  | {
      readonly kind: 'authenticated'
      readonly user: UserInfo
      readonly untilMs: number
      /** Set if an issuer vouches for the token. Default: the cluster has reviewed it */
      readonly origin?: CredentialOrigin
    }
  | { readonly kind: 'rejected' }
  | Unanswered

/** No result. */
export interface Unanswered {
  readonly kind: 'unavailable'
  readonly message: string
  /** 0 = the review was sent, or there is no endpoint for it; otherwise the gateway itself held it back. */
  readonly retryAfterSeconds: number
}

/** Source of a token's result. */
export type TokenLookup = 'hit' | 'vouched' | 'limited' | TokenReviewResult['kind']

export interface TokenQuery {
  readonly cluster: string
  /** Changes when the cluster's servers, credentials or audiences change: older results are then invalid. */
  readonly epoch: number
  readonly token: string
  readonly audiences: readonly string[]
  readonly successTtlMs: number
  readonly failureTtlMs: number
}

export interface TokenReviewer {
  /** @param vouch asked before the call: undefined = it does not know the user. Default: nothing is asked */
  review(
    query: TokenQuery,
    call: ReviewCall,
    vouch?: () => Vouched | undefined | Promise<Vouched | undefined>,
  ): TokenReviewResult | Promise<TokenReviewResult>
  /** What `review` would do: use the cache, wait for a pending review, or send one. */
  foresee(query: TokenQuery): 'authenticated' | 'rejected' | 'running' | 'unknown'
  /** Counts a result that the caller had cached itself. */
  reused(cluster: string): void
  size(): number
}

interface Remembered {
  readonly verdict: TokenReviewResult
  readonly untilMs: number
}

/** Accepted tokens; per result: made-up tokens must not evict valid ones. */
const MAX_REMEMBERED = 50_000
/** Rejected tokens: sending made-up ones gains nothing from having them cached. */
const MAX_REJECTED = 16_384
/** Approximate bytes of users of accepted tokens: one with a thousand groups takes as much as a hundred others. */
export const MAX_REMEMBERED_BYTES: number = 32 * 1024 * 1024
/** Size of an entry without its user: key, times, cache links. */
const ENTRY_BYTES = 512
/** Overhead of a text, beyond its characters. */
const TEXT_BYTES = 32

/** @param monotonic milliseconds; @param onLookup called with the source of the result, for metrics; `limited` = no review was sent */
export function createTokenReviewer(
  monotonic: () => number,
  onLookup: (cluster: string, outcome: TokenLookup) => void,
): TokenReviewer {
  // Random: cache keys reveal nothing about tokens. A prefix instead of an HMAC, whose object costs twice as much as the hashing: no hash leaves the
  // process, so none can be extended.
  const secret = randomBytes(32).toString('base64')
  const accepted = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED, maxSize: MAX_REMEMBERED_BYTES })
  const rejected = new LRUCache<string, Remembered>({ max: MAX_REJECTED })
  const running = new Map<string, Promise<TokenReviewResult>>()

  const keyOf = (query: TokenQuery): string => {
    const { cluster, epoch, token, audiences } = query
    // Every part is preceded by its length, so that no two queries yield the same bytes.
    let text = `${secret}${cluster.length}:${cluster}${epoch}:${token.length}:${token}`
    for (const audience of audiences) text += `${audience.length}:${audience}`
    return hash('sha256', text, 'base64')
  }

  const remembered = (key: string): TokenReviewResult | undefined => {
    const known = accepted.get(key) ?? rejected.get(key)
    return known !== undefined && known.untilMs > monotonic() ? known.verdict : undefined
  }

  /** @param ttlMs how long it may be remembered */
  const accept = (key: string, user: UserInfo, ttlMs: number, origin?: CredentialOrigin): TokenReviewResult => {
    const untilMs = monotonic() + ttlMs
    const verdict: TokenReviewResult = { kind: 'authenticated', user, untilMs, ...(origin && { origin }) }
    rejected.delete(key)
    if (ttlMs > 0) accepted.set(key, { verdict, untilMs }, { size: bytesOf(user) })
    else accepted.delete(key)
    return verdict
  }

  const acceptAnswer = (key: string, query: TokenQuery, answer: TokenReviewResult): TokenReviewResult => {
    onLookup(query.cluster, answer.kind === 'unavailable' && answer.retryAfterSeconds > 0 ? 'limited' : answer.kind)
    if (answer.kind === 'authenticated') return accept(key, answer.user, query.successTtlMs)
    if (answer.kind === 'rejected') {
      accepted.delete(key)
      rejected.delete(key)
      const { failureTtlMs: ttl } = query
      if (ttl > 0) rejected.set(key, { verdict: answer, untilMs: monotonic() + ttl })
    }
    return answer
  }

  const acceptVouched = (key: string, { cluster, successTtlMs }: TokenQuery, { user, forMs, origin }: Vouched) => {
    onLookup(cluster, 'vouched')
    return accept(key, user, Math.min(successTtlMs, forMs), origin)
  }

  /** Waits at least once, so that it is among the running ones before it is over. */
  const ask = async (
    key: string,
    query: TokenQuery,
    call: ReviewCall,
    vouched: Promise<Vouched | undefined> | undefined,
  ): Promise<TokenReviewResult> => {
    try {
      const late = vouched && (await vouched)
      if (late !== undefined) return acceptVouched(key, query, late)
      return acceptAnswer(key, query, await askUpstream(query, call))
    } finally {
      running.delete(key)
    }
  }

  return {
    size: () => accepted.size + rejected.size,
    foresee(query) {
      const key = keyOf(query)
      const kind = remembered(key)?.kind
      if (kind === 'authenticated' || kind === 'rejected') return kind
      return running.has(key) ? 'running' : 'unknown'
    },
    reused: (cluster) => onLookup(cluster, 'hit'),
    review(query, call, vouch) {
      const key = keyOf(query)
      const known = remembered(key)
      if (known !== undefined) {
        onLookup(query.cluster, 'hit')
        return known
      }
      const joined = running.get(key)
      if (joined !== undefined) return joined
      const vouched = vouch?.()
      if (vouched !== undefined && !(vouched instanceof Promise)) return acceptVouched(key, query, vouched)
      const asked = ask(key, query, call, vouched)
      running.set(key, asked)
      return asked
    },
  }
}

/** Approximate size of a cached user. */
function bytesOf({ name, uid, groups, extra }: UserInfo): number {
  let bytes = ENTRY_BYTES + textBytes(name) + textBytes(uid)
  for (const group of groups) bytes += textBytes(group)
  for (const [key, values] of Object.entries(extra)) {
    bytes += textBytes(key)
    for (const value of values) bytes += textBytes(value)
  }
  return bytes
}

function textBytes(text: string): number {
  return TEXT_BYTES + 2 * text.length
}

async function askUpstream(query: TokenQuery, call: ReviewCall): Promise<TokenReviewResult> {
  const review = {
    kind: 'TokenReview',
    apiVersion: 'authentication.k8s.io/v1',
    spec: { token: query.token, ...(query.audiences.length > 0 ? { audiences: query.audiences } : {}) },
  }
  try {
    const answer = await call(JSON.stringify(review))
    if (answer.status !== 200 && answer.status !== 201) {
      return reviewUnavailable(`TokenReview was answered with ${answer.status}`)
    }
    return readVerdict(JSON.parse(answer.body), query.audiences)
  } catch (error) {
    return reviewUnavailable(error)
  }
}

/** @param cause a message, or what a `ReviewCall` threw */
export function reviewUnavailable(cause: unknown): Unanswered {
  const message = errorMessage(cause)
  return {
    kind: 'unavailable',
    message,
    retryAfterSeconds: cause instanceof CallLimitError ? cause.retryAfterSeconds : 0,
  }
}

/** Only `authenticated === true` with a user name is an identity (CVE-2023-48312 class). */
export function readVerdict(answer: unknown, audiences: readonly string[]): TokenReviewResult {
  const status = field(answer, 'status')
  if (field(status, 'authenticated') !== true) return { kind: 'rejected' }
  // A server that does not know audiences returns none: we reject its result.
  if (audiences.length > 0 && !strings(field(status, 'audiences')).some((one) => audiences.includes(one))) {
    return { kind: 'rejected' }
  }
  const user = field(status, 'user')
  const name = field(user, 'username')
  if (typeof name !== 'string' || name === '') return { kind: 'rejected' }
  const uid = field(user, 'uid')
  // Keys as the cluster returns them, including upper case: identityHeaders escapes what a field name cannot contain.
  const extra: [string, readonly string[]][] = []
  const rawExtra = field(user, 'extra')
  if (typeof rawExtra === 'object' && rawExtra !== null) {
    for (const [key, values] of Object.entries(rawExtra)) extra.push([key, strings(values)])
  }
  return {
    kind: 'authenticated',
    untilMs: 0,
    user: {
      name,
      uid: typeof uid === 'string' ? uid : '',
      groups: strings(field(user, 'groups')),
      extra: Object.fromEntries(extra),
    },
  }
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}
