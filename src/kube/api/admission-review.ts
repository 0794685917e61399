// AdmissionReview (admission.k8s.io/v1): what kube-apiserver sends to a webhook, and the response.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord, textOf } from '../../kit/api/json/object-shape.ts'
import { type Status, statusError } from './status.ts'

const KIND = 'AdmissionReview'
const VERSION = 'admission.k8s.io/v1'

interface AdmissionRequest extends JsonObject {
  readonly uid: string
  readonly operation: string
}

interface AdmissionResponse {
  /** undefined = allowed. */
  readonly refusal: Status | undefined
  /** One line each (`oneLine`). */
  readonly warnings: readonly string[]
  /** Keys without the webhook's name; kube-apiserver adds that prefix. */
  readonly audit?: Readonly<Record<string, string>>
}

/** @throws {StatusError} 400, when `body` is not an AdmissionReview with a request */
export function admissionRequest(body: unknown): AdmissionRequest {
  if (!isRecord(body) || body['kind'] !== KIND) throw malformedReview('the body is not an AdmissionReview')
  if (body['apiVersion'] !== VERSION) throw malformedReview(`apiVersion must be ${VERSION}`)
  const { request } = body
  if (!isRecord(request)) throw malformedReview('request is missing')
  const uid = textOf(request['uid'])
  const operation = textOf(request['operation'])
  if (uid === '') throw malformedReview('request.uid is missing')
  if (operation === '') throw malformedReview('request.operation is missing')
  return { ...request, uid, operation }
}

/** 400 Bad Request. */
export function malformedReview(what: string): Error {
  return statusError('BadRequest', `malformed AdmissionReview: ${what}`)
}

/** @param uid of the request */
export function admissionAnswer(uid: string, { refusal, warnings, audit = {} }: AdmissionResponse): JsonObject {
  return {
    kind: KIND,
    apiVersion: VERSION,
    response: {
      uid,
      allowed: refusal === undefined,
      ...(refusal !== undefined && { status: refusal }),
      ...(Object.keys(audit).length > 0 && { auditAnnotations: audit }),
      ...(warnings.length > 0 && { warnings }),
    },
  }
}

/** A warning is sent as a header, so it must be a single line. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').toWellFormed()
}
