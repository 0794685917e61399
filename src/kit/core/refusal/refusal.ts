// Why a request is not forwarded: the closed set of reasons, and the one table that says how each is answered.

import { Buffer } from 'node:buffer'
import type { HeaderList } from '../../api/stream.ts'

interface RefusalRow {
  readonly code: number
  /** metav1.Status.reason. */
  readonly statusReason: string
  /**
   * Whether Retry-After may be sent. Only where the gateway itself throttles: client-go resends any verb, ten times, on a 429 or 5xx that
   * carries it (client-go/rest/with_retry.go), so a policy refusal or a 5xx must not.
   */
  readonly retryAfter: boolean
}

const ROWS = {
  'bad-request': { code: 400, statusReason: 'BadRequest', retryAfter: false },
  'headers-too-large': { code: 431, statusReason: 'RequestHeaderFieldsTooLarge', retryAfter: false },
  'target-too-long': { code: 414, statusReason: 'URITooLong', retryAfter: false },
  'request-info': { code: 500, statusReason: 'InternalError', retryAfter: false },
  'unknown-cluster': { code: 404, statusReason: 'NotFound', retryAfter: false },
  misdirected: { code: 421, statusReason: 'MisdirectedRequest', retryAfter: false },
  unauthorized: { code: 401, statusReason: 'Unauthorized', retryAfter: false },
  revoked: { code: 401, statusReason: 'Unauthorized', retryAfter: false },
  'authentication-unavailable': { code: 503, statusReason: 'ServiceUnavailable', retryAfter: false },
  // Nothing was sent upstream, so any verb may be retried.
  'too-many-reviews': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'impersonation-invalid': { code: 400, statusReason: 'BadRequest', retryAfter: false },
  'impersonation-forbidden': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  // 403: the credential is good, and the same request may be allowed without the grant.
  'grant-ended': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'no-policy': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'policy-denied': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'access-denied': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  degraded: { code: 503, statusReason: 'ServiceUnavailable', retryAfter: false },
  'disruption-refused': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  // kubectl drain waits on a 429, and gives up on anything else.
  'eviction-refused': { code: 429, statusReason: 'TooManyRequests', retryAfter: false },
  'disruption-limited': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  // No Retry-After: the same list would be too large again, and client-go would send it ten times.
  'list-too-large': { code: 429, statusReason: 'TooManyRequests', retryAfter: false },
  'rate-limited': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'too-many-in-flight': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'too-many-watches': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'too-many-cancelled': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  // Nothing was sent upstream.
  'too-many-failures': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'share-exceeded': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'no-endpoint': { code: 503, statusReason: 'ServiceUnavailable', retryAfter: false },
  'upstream-failed': { code: 502, statusReason: 'BadGateway', retryAfter: false },
  // Not the fault of the request; but it would be the same again.
  'session-not-recorded': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'upgrade-unsupported': { code: 400, statusReason: 'BadRequest', retryAfter: false },
  'upgrade-failed': { code: 502, statusReason: 'BadGateway', retryAfter: false },
  'body-too-large': { code: 413, statusReason: 'RequestEntityTooLarge', retryAfter: false },
  'body-timeout': { code: 408, statusReason: 'Timeout', retryAfter: false },
  'unsupported-media-type': { code: 415, statusReason: 'UnsupportedMediaType', retryAfter: false },
  // 403: on a 429 or 5xx with Retry-After the autoscaler waits in its only loop, on a 409 some clients try again at once.
  'scale-up-backed-off': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'protection-forbidden': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  // Retry-After only if a retry soon is likely to succeed.
  protected: { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'protection-unavailable': { code: 503, statusReason: 'ServiceUnavailable', retryAfter: false },
  // kubectl drain waits on a 429, and gives up on anything else.
  'eviction-unavailable': { code: 429, statusReason: 'TooManyRequests', retryAfter: false },
  // No Retry-After: refused until the object or its protectors change.
  'scale-protected': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'scale-unavailable': { code: 503, statusReason: 'ServiceUnavailable', retryAfter: false },
  // A cluster that has members has no servers to forward anything to.
  'not-federated': { code: 404, statusReason: 'NotFound', retryAfter: false },
  'federated-object-missing': { code: 404, statusReason: 'NotFound', retryAfter: false },
  'federated-name-twice': { code: 409, statusReason: 'Conflict', retryAfter: false },
  'federated-watch-merged': { code: 422, statusReason: 'Invalid', retryAfter: false },
  'federated-write': { code: 405, statusReason: 'MethodNotAllowed', retryAfter: false },
  'federated-encoding': { code: 406, statusReason: 'NotAcceptable', retryAfter: false },
  'federated-version-gone': { code: 410, statusReason: 'Expired', retryAfter: false },
  'federated-write-stale': { code: 409, statusReason: 'Conflict', retryAfter: false },
  'federated-version-ahead': { code: 504, statusReason: 'Timeout', retryAfter: false },
  'federated-memory': { code: 429, statusReason: 'TooManyRequests', retryAfter: true },
  'member-forbidden': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  'member-answer': { code: 502, statusReason: 'BadGateway', retryAfter: false },
  'member-unavailable': { code: 503, statusReason: 'ServiceUnavailable', retryAfter: false },
  'websocket-origin': { code: 403, statusReason: 'Forbidden', retryAfter: false },
  internal: { code: 500, statusReason: 'InternalError', retryAfter: false },
} satisfies Readonly<Record<string, RefusalRow>>

export type RefusalReason = keyof typeof ROWS

export const REFUSAL_TABLE: Readonly<Record<RefusalReason, RefusalRow>> = ROWS

/** metav1.StatusCause. */
export interface RefusalCause {
  /** Machine-readable, UpperCamelCase. */
  readonly reason: string
  readonly message: string
  /** Path of the field at fault; '' when none is. */
  readonly field: string
}

/** The expected refusal by a step of the request path. */
export interface Refusal {
  readonly refused: RefusalReason
  readonly message: string
  readonly causes: readonly RefusalCause[]
  /** 0 = none. Reaches the client only where REFUSAL_TABLE allows it. */
  readonly retryAfterSeconds: number
  /** The policy, limit or list that decided; '' when none did. For log, metrics and audit. */
  readonly rule: string
  /** The object concerned; absent = not stated. */
  readonly object?: RefusalObject
  /** Further fields of its answer. Default: none. */
  readonly fields?: HeaderList
}

/** metav1.StatusDetails. */
export interface RefusalObject {
  /** Plural of the resource. */
  readonly kind: string
  /** '' = none. */
  readonly name: string
}

interface RefusalDetail {
  readonly causes?: readonly RefusalCause[]
  readonly retryAfterSeconds?: number
  readonly rule?: string
  readonly object?: RefusalObject
  readonly fields?: HeaderList
}

const NO_CAUSES: readonly RefusalCause[] = []

export function refuse(reason: RefusalReason, message: string, detail?: RefusalDetail): Refusal {
  return {
    refused: reason,
    message,
    causes: detail?.causes ?? NO_CAUSES,
    retryAfterSeconds: detail?.retryAfterSeconds ?? 0,
    rule: detail?.rule ?? '',
    ...(detail?.object === undefined ? {} : { object: detail.object }),
    ...(detail?.fields === undefined ? {} : { fields: detail.fields }),
  }
}

/**
 * Tells a refusal from a step's other results. Code that runs for every request writes `'refused' in value` inline: V8 keeps inline caches
 * per call site, and one site that sees the shapes of all steps costs 0.2 us per request.
 */
export function isRefusal(value: object): value is Refusal {
  return 'refused' in value
}

/** metav1.Status of a refusal. `isEvents`: the request is for the resource `events`. */
export function refusalStatus(refusal: Refusal, isEvents = false): object {
  const row = REFUSAL_TABLE[refusal.refused]
  const retryAfterSeconds = allowedRetryAfter(refusal, isEvents)
  const { object } = refusal
  const details = {
    ...(object !== undefined && object.name !== '' ? { name: object.name } : {}),
    ...(object === undefined ? {} : { kind: object.kind }),
    ...(refusal.causes.length > 0 ? { causes: refusal.causes.map(statusCause) } : {}),
    ...(retryAfterSeconds > 0 ? { retryAfterSeconds } : {}),
  }
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    // A 401 says no more, whatever was wrong with the credential (apiserver/pkg/endpoints/filters/authentication.go). Revocation is our
    // own: we say so, because its holder should ask why instead of retrying.
    message: refusal.refused === 'unauthorized' ? 'Unauthorized' : refusal.message,
    reason: row.statusReason,
    ...(Object.keys(details).length > 0 ? { details } : {}),
    code: row.code,
  }
}

/** The complete response. Omit the body if the request was a HEAD. */
export function refusalResponse(
  refusal: Refusal,
  request: { readonly isEvents: boolean },
): { headers: HeaderList; body: Buffer } {
  const body = Buffer.from(`${JSON.stringify(refusalStatus(refusal, request.isEvents))}\n`, 'utf8')
  const headers: HeaderList = [
    ':status',
    String(REFUSAL_TABLE[refusal.refused].code),
    'cache-control',
    'no-cache, private',
    'content-type',
    'application/json',
    'x-content-type-options',
    'nosniff',
    'content-length',
    String(body.length),
  ]
  if (refusal.fields !== undefined) headers.push(...refusal.fields)
  const retryAfterSeconds = allowedRetryAfter(refusal, request.isEvents)
  // An integer: client-go ignores dates and fractions.
  if (retryAfterSeconds > 0) headers.push('retry-after', String(retryAfterSeconds))
  return { headers, body }
}

/** Events are dropped rather than resent: a client that waits to send them delays its real work. */
function allowedRetryAfter(refusal: Refusal, isEvents: boolean): number {
  if (isEvents || !REFUSAL_TABLE[refusal.refused].retryAfter || !(refusal.retryAfterSeconds > 0)) return 0
  return Math.ceil(refusal.retryAfterSeconds)
}

function statusCause(cause: RefusalCause): object {
  return cause.field === '' ? { reason: cause.reason, message: cause.message } : cause
}
