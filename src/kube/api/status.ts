// metav1.Status, as kube-apiserver responds with it, and the errors that map to it (k8s.io/apimachinery/pkg/apis/meta/v1/types.go,
// pkg/api/errors/errors.go).

import type { FieldError } from '../../kit/api/json/field-error.ts'

/** Reasons that Portcullis' own API server gives. */
export type StatusReason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Expired'
  | 'Invalid'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'TooManyRequests'
  | 'ServiceUnavailable'
  | 'Timeout'
  | 'InternalError'

const CODES: Readonly<Record<StatusReason, number>> = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
}

export interface StatusCause {
  readonly reason: string
  readonly message: string
  readonly field?: string
}

export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  /** The resource (plural), or for Invalid the kind, as in kube-apiserver. */
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: Readonly<Record<string, unknown>>
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  /** '' only in responses of other servers. */
  readonly reason?: StatusReason | ''
  readonly details?: StatusDetails
  readonly code?: number
}

/** An error that a server responds with, or a client receives, as a Status. */
export class StatusError extends Error {
  readonly status: Status

  constructor(status: Status) {
    super(status.message ?? '')
    this.name = 'StatusError'
    this.status = status
  }

  get code(): number {
    return this.status.code ?? 500
  }

  get reason(): string {
    return this.status.reason ?? ''
  }
}

export function failure(reason: StatusReason, message: string, details?: StatusDetails): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details !== undefined && { details }),
    code: CODES[reason],
  }
}

export function statusError(reason: StatusReason, message: string, details?: StatusDetails): StatusError {
  return new StatusError(failure(reason, message, details))
}

/**
 * Whether the named object definitely does not exist. A 404 without a name comes from a server that does not know the resource: a lost CRD, or
 * something else responding in place of the API server.
 */
export function isMissing(error: unknown, name: string): boolean {
  return error instanceof StatusError && error.reason === 'NotFound' && error.status.details?.name === name
}

/** Most errors listed in one response: an object may have one per member, each with its path and value. */
const MOST_CAUSES = 250

/**
 * 422: `<Kind.group> "<name>" is invalid: ...`, with every error (errors.NewInvalid); if there are very many, the first ones and at least how many
 * more there are.
 */
export function invalid(group: string, kind: string, name: string, all: readonly FieldError[]): StatusError {
  const errors = all.slice(0, MOST_CAUSES)
  const texts = errors.map(({ path, message }) => `${path}: ${message}`)
  if (all.length > errors.length) texts.push(`and at least ${all.length - errors.length} more errors`)
  const list = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
  const qualified = group === '' ? kind : `${kind}.${group}`
  return statusError('Invalid', `${qualified} ${JSON.stringify(name)} is invalid: ${list}`, {
    ...(name !== '' && { name }),
    ...(group !== '' && { group }),
    kind,
    causes: errors.map(causeOf),
  })
}

/** The cause listed for an error, in kube-apiserver's words. */
export function causeOf({ reason, message, path }: FieldError): StatusCause {
  return { reason, message, field: path }
}
