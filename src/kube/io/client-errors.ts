// Errors of calls to an API server, as messages for people.

import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import { type Status, StatusError } from '../api/status.ts'
import { readProtobufStatus } from '../core/objects/protobuf-status.ts'

/** Reasons that client-go assigns to responses without a Status (apimachinery/pkg/api/errors NewGenericServerResponse). */
const REASONS: Readonly<Record<number, Status['reason']>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}
const MAX_TEXT = 300

/** The error for an unsuccessful response; `retryAfter` is the header, '' = none. */
export function statusErrorOf(code: number, body: string | Buffer, retryAfter: string): StatusError {
  const status = (typeof body === 'string' ? undefined : statusIn(readProtobufStatus(body))) ?? readStatus(String(body))
  const seconds = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined
  if (status !== undefined) {
    const details = { ...status.details, ...(seconds !== undefined && { retryAfterSeconds: seconds }) }
    return new StatusError({ ...status, code: status.code ?? code, details })
  }
  const message =
    code === 404
      ? 'the server could not find the requested resource'
      : `the server answered ${code}${excerpt(String(body))}`
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: REASONS[code] ?? '',
    ...(seconds !== undefined && { details: { retryAfterSeconds: seconds } }),
    code,
  })
}

function readStatus(body: string): Status | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return statusIn(value)
  } catch {
    return undefined
  }
}

/** A metav1.Status with the fields we rely on, or undefined. */
export function statusIn(value: unknown): Status | undefined {
  if (!isRecord(value) || value['kind'] !== 'Status') return undefined
  const { message, reason, code, details } = value
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: textOf(message),
    // Other servers have their own reasons, which are only compared.
    reason: textOf(reason) as NonNullable<Status['reason']>,
    ...(isRecord(details) && { details }),
    ...(typeof code === 'number' && { code }),
  }
}

function excerpt(body: string): string {
  const text = body.trim().replace(/\s+/g, ' ')
  return text === '' ? '' : `: ${text.slice(0, MAX_TEXT)}`
}

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved now',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'silent for too long',
  UND_ERR_ABORTED: 'no answer in time',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed and not trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by a CA that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by a CA that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by a CA that is not trusted',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
}

/** Why there was no response: one line, without a stack. */
export function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.errors.length > 0) return faultOf(error.errors[0])
  const code = 'code' in error ? textOf(error.code) : ''
  const known = FAULTS[code]
  if (known !== undefined) return known
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no answer in time'
  return error.message === '' ? code || error.name : error.message
}
