// The validating webhook for UpstreamClusters that live in a Kubernetes cluster (admission.k8s.io/v1 AdmissionReview): the
// rules that neither the schema nor CEL can express, and conflicts between clusters. The gateway checks everything again
// when it reads an object, so that nothing invalid comes into force while the webhook is down.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../kit/api/json/object-shape.ts'
import { asCause, errorText } from '../../kit/api/validation/field-causes.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import { admissionAnswer, admissionRequest, malformedReview, oneLine } from '../../kube/api/admission-review.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { invalid, type Status, StatusError } from '../../kube/api/status.ts'
import { limitValues } from '../../kube/core/objects/value-count.ts'

/** kube-apiserver truncates longer warnings (AdmissionResponse). */
const LONGEST_WARNING = 250
const MOST_WARNINGS = 16

export interface AdmissionChecks {
  readonly scheme: readonly ResourceKind[]
  readonly pem: PemChecks
}

/**
 * The AdmissionReview to respond with.
 * @param others all current objects of the kind; the one under review may be among them
 * @throws {StatusError} 400 if `body` is not an AdmissionReview with a request
 */
export function reviewAdmission(body: unknown, checks: AdmissionChecks, others: readonly JsonObject[]): JsonObject {
  const request = admissionRequest(body)
  const { uid, object, operation } = request
  const kind = kindOf(request, checks.scheme)
  const changes = operation === 'CREATE' || operation === 'UPDATE'
  // Other kinds, deletions and subresources are allowed, in case the webhook's configuration is too broad.
  if (kind === undefined || !changes || (request['subResource'] ?? '') !== '') return answer(uid, [], undefined)
  if (!isRecord(object)) throw malformedReview('request.object is not an object')
  const tooLarge = valuesRefusal(object)
  if (tooLarge !== undefined) return answer(uid, [], tooLarge)
  const before = isRecord(request['oldObject']) ? request['oldObject'] : undefined
  const found = problemsOf(kind, object, before, checks.pem, others)
  const errors = found.filter(({ severity }) => severity === 'error')
  const warnings = found.filter(({ severity }) => severity === 'warning').map(errorText)
  if (errors.length === 0) return answer(uid, warnings, undefined)
  // Objects stored before the webhook was installed can still be labelled, and lose their finalizers.
  if (before !== undefined && sameJson(object['spec'], before['spec'])) {
    return answer(uid, [...errors.map(errorText), ...warnings], undefined)
  }
  const causes = errors.map((problem) => asCause(problem, object))
  return answer(uid, warnings, invalid(kind.group, kind.kind, nameOf(object), causes).status)
}

/** The gateway's own API server refuses such objects, too: checking one takes one turn of the event loop. */
function valuesRefusal(object: JsonObject): Status | undefined {
  try {
    limitValues(object)
    return undefined
  } catch (error) {
    if (error instanceof StatusError) return error.status
    throw error
  }
}

function kindOf(request: JsonObject, scheme: readonly ResourceKind[]): ResourceKind | undefined {
  const resource = recordOf(request['resource'])
  const { group, version, resource: plural } = resource
  return scheme.find((kind) => kind.group === group && kind.version === version && kind.plural === plural)
}

/** A dry run is reviewed like any write: a review has no side effects. */
function problemsOf(
  kind: ResourceKind,
  object: JsonObject,
  before: JsonObject | undefined,
  pem: PemChecks,
  others: readonly JsonObject[],
): readonly FieldError[] {
  // The API server sends both; without them only the rules of the spec would apply.
  const whole = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object }
  const problems = kind.check(whole, before, pem)
  const name = nameOf(object)
  const conflicts = kind.conflicts?.(
    whole,
    others.filter((other) => nameOf(other) !== name),
  )
  return [...problems, ...(conflicts ?? [])]
}

function answer(uid: string, warnings: readonly string[], refusal: Status | undefined): JsonObject {
  const most = warnings.length > MOST_WARNINGS ? MOST_WARNINGS - 1 : MOST_WARNINGS
  const shortened = warnings.slice(0, most).map((warning) => oneLine(warning).slice(0, LONGEST_WARNING))
  if (warnings.length > most) shortened.push(`and ${warnings.length - most} more warnings`)
  return admissionAnswer(uid, { refusal, warnings: shortened })
}
