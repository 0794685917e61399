// DEMO ONLY. The errors of the demo's apiservers, as metav1.Status (apimachinery/pkg/api/errors/errors.go).

import type { Json } from './json.ts'

/** Answered as it is; anything else that is thrown is a 500. */
export class ApiError extends Error {
  readonly code: number
  readonly reason: string
  readonly details: Json | undefined

  constructor(code: number, reason: string, message: string, details?: Json) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }
}

/** What errors say about a resource. */
export interface Named {
  readonly group: string
  readonly resource: string
}

export function qualified({ group, resource }: Named): string {
  return group === '' ? resource : `${resource}.${group}`
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message)
}

export function forbidden(message: string): ApiError {
  return new ApiError(403, 'Forbidden', message)
}

export function notFound(of: Named, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(of)} "${name}" not found`, about(of, name))
}

export function alreadyExists(of: Named, name: string): ApiError {
  return new ApiError(409, 'AlreadyExists', `${qualified(of)} "${name}" already exists`, about(of, name))
}

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again'

export function conflict(of: Named, name: string, why: string = MODIFIED): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(of)} "${name}": ${why}`
  return new ApiError(409, 'Conflict', message, about(of, name))
}

export function invalid(of: Named, name: string, field: string, message: string): ApiError {
  const details = { ...about(of, name), causes: [{ reason: 'FieldValueInvalid', message, field }] }
  return new ApiError(422, 'Invalid', `${qualified(of)} "${name}" is invalid: ${field}: ${message}`, details)
}

export function tooOld(asked: number, oldest: number): ApiError {
  return new ApiError(410, 'Expired', `too old resource version: ${asked} (${oldest})`)
}

export function statusOf(error: ApiError): Json {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: error.message,
    reason: error.reason,
    ...(error.details === undefined ? {} : { details: error.details }),
    code: error.code,
  }
}

function about({ group, resource }: Named, name: string): Json {
  return { name, ...(group === '' ? {} : { group }), kind: resource }
}
