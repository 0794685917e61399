// The responses of the protection webhook, as AdmissionReviews (admission.k8s.io/v1 AdmissionResponse).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { admissionAnswer, oneLine } from '../../kube/api/admission-review.ts'
import { failure, type Status, type StatusReason } from '../../kube/api/status.ts'
import {
  AUDIT_DRY_RUN,
  AUDIT_REJECTED_BY,
  type ProtectionCause,
  type ProtectionStatus,
  type ProtectionVerdict,
} from '../api/protection.ts'

/** NotRelevant: not evaluated, because the namespace or the pod is excluded, or has no protector. */
export type WebhookStatus = ProtectionStatus | 'NotRelevant' | 'NotFound' | 'UnknownCell' | 'Unexpected'

export interface WebhookDecision {
  readonly status: WebhookStatus
  /** undefined = allowed. */
  readonly refusal: WebhookRefusal | undefined
  readonly warnings: readonly string[]
  /** Keys without the webhook's name, which kube-apiserver puts before them. */
  readonly audit: Readonly<Record<string, string>>
}

interface WebhookRefusal {
  /** Its code goes to the client. */
  readonly reason: StatusReason
  readonly message: string
  readonly causes: readonly ProtectionCause[]
  /** 0 = none. */
  readonly retryAfterSeconds: number
}

/** The longest warning that kube-apiserver recommends (AdmissionResponse.warnings). */
const LONGEST_WARNING = 120
const NOTHING: Pick<WebhookDecision, 'refusal' | 'warnings' | 'audit'> = { refusal: undefined, warnings: [], audit: {} }

export function allowed(status: WebhookStatus): WebhookDecision {
  return { status, ...NOTHING }
}

export function refused(status: WebhookStatus, reason: StatusReason, message: string): WebhookDecision {
  return { ...NOTHING, status, refusal: { reason, message, causes: [], retryAfterSeconds: 0 } }
}

/** There is no verdict. */
export function withoutVerdict(
  message: string,
  failurePolicy: 'Fail' | 'Ignore',
  retryAfterSeconds = 0,
): WebhookDecision {
  if (failurePolicy === 'Ignore') {
    return { ...NOTHING, status: 'Error', warnings: [`not protected (failurePolicy Ignore): ${message}`] }
  }
  const refusal: WebhookRefusal = { reason: 'ServiceUnavailable', message, causes: [], retryAfterSeconds }
  return { ...NOTHING, status: 'Error', refusal }
}

/** @param marked shadow mode or force-delete: the deletion is not refused, whatever the verdict */
export function evaluated(
  verdict: ProtectionVerdict,
  failurePolicy: 'Fail' | 'Ignore',
  marked: boolean,
): WebhookDecision {
  const { status, admitted, overridden, message, causes, retryAfterSeconds, protector } = verdict
  const audit = {
    ...(marked && { [AUDIT_DRY_RUN]: '1' }),
    // Podseidon's value: the name alone. The namespace is that of the pod.
    ...(protector !== '' && { [AUDIT_REJECTED_BY]: protector.slice(protector.indexOf('/') + 1) }),
  }
  if (admitted) return { ...allowed(status), audit }
  if (overridden !== '')
    return { status, refusal: undefined, warnings: [`not refused (${overridden}): ${message}`], audit }
  if (status === 'Error') return { ...withoutVerdict(message, failurePolicy, retryAfterSeconds), audit }
  return { status, refusal: { reason: 'TooManyRequests', message, causes, retryAfterSeconds }, warnings: [], audit }
}

/** @param uid of the request */
export function reviewAnswer(uid: string, { refusal, warnings, audit }: WebhookDecision): JsonObject {
  return admissionAnswer(uid, {
    refusal: refusal && statusOf(refusal),
    warnings: warnings.map(shortened),
    audit,
  })
}

function statusOf({ reason, message, causes, retryAfterSeconds }: WebhookRefusal): Status {
  const details = { ...(causes.length > 0 && { causes }), ...(retryAfterSeconds > 0 && { retryAfterSeconds }) }
  return failure(reason, message, Object.keys(details).length > 0 ? details : undefined)
}

function shortened(text: string): string {
  const line = oneLine(text)
  if (line.length <= LONGEST_WARNING) return line
  return `${line.slice(0, LONGEST_WARNING - 3).toWellFormed()}...`
}
