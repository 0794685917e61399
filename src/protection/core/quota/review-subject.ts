// Parses an AdmissionReview (admission.k8s.io/v1) for pod protection: the deletion of one pod, or its eviction. A collection deletion sends
// one review per pod, in which the request has no name.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { admissionRequest, malformedReview } from '../../../kube/api/admission-review.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { HealthCriterion, PodFacts } from '../../api/protection.ts'
import { healthCriterion, podFacts } from './pod-facts.ts'

interface ReviewedRequest {
  /** The uid of the review; the response repeats it. */
  readonly uid: string
  /** The user of the request; name '' = absent. */
  readonly caller: UserInfo
  /** Nothing will be deleted, whatever the answer. */
  readonly dryRun: boolean
}

interface DeletionSubject extends ReviewedRequest {
  readonly type: 'DeletePod'
  readonly pod: PodFacts
}

/** The review does not contain the pod, so it must be read. */
export interface EvictionSubject extends ReviewedRequest {
  readonly type: 'EvictPod'
  readonly namespace: string
  readonly name: string
  /** The criterion in the Eviction's own annotation; undefined = none. */
  readonly criterion: HealthCriterion | undefined
  /** deleteOptions.preconditions; '' = none. The API server checks them after the webhook. */
  readonly onlyUid: string
  readonly onlyVersion: string
  /** Nothing is evicted: `portcullis protect install` checks that the webhook is reachable and knows the cell. */
  readonly probe: boolean
}

/** Label of an Eviction that is only a probe: a dry run for a pod that does not exist. */
export const PROBE_LABEL = 'protection.portcullis.io/probe'
/** Prefix of the answer to a successful probe. */
export const PROBE_ANSWER = 'probe: '

/** Not relevant to protection. */
interface OtherSubject extends ReviewedRequest {
  readonly type: 'Unknown'
}

export type ReviewSubject = DeletionSubject | EvictionSubject | OtherSubject

/**
 * @param read extracts what is needed of the pod
 * @throws {StatusError} 400, if `body` is not an AdmissionReview with a complete request
 */
export function reviewSubject(body: unknown, read: typeof podFacts = podFacts): ReviewSubject {
  const request = admissionRequest(body)
  const { uid, operation } = request
  const asked = { uid, caller: callerOf(recordOf(request['userInfo'])), dryRun: isDryRun(request) }
  switch (`${operation} ${resourceOf(request)}`) {
    case 'DELETE pods.v1.':
      return { ...asked, type: 'DeletePod', pod: deletedPod(request, read) }
    case 'CREATE pods.v1./eviction':
      return { ...asked, type: 'EvictPod', ...eviction(request) }
    default:
      return { ...asked, type: 'Unknown' }
  }
}

/** authentication/v1 UserInfo. */
function callerOf(info: Readonly<Record<string, unknown>>): UserInfo {
  const texts = (value: unknown): readonly string[] =>
    Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
  const extra = Object.entries(recordOf(info['extra'])).map(([key, values]) => [key, texts(values)] as const)
  return {
    name: textOf(info['username']),
    uid: textOf(info['uid']),
    groups: texts(info['groups']),
    extra: Object.fromEntries(extra),
  }
}

/** `pods.v1.`, `pods.v1./eviction`: what the webhook's rule matched (matchPolicy Equivalent), not the resource of the call. */
function resourceOf(request: JsonObject): string {
  const resource = recordOf(request['resource'])
  const subresource = textOf(request['subResource'])
  const name = `${textOf(resource['resource'])}.${textOf(resource['version'])}.${textOf(resource['group'])}`
  return subresource === '' ? name : `${name}/${subresource}`
}

function deletedPod(request: JsonObject, read: typeof podFacts): PodFacts {
  const { oldObject } = request
  if (!isRecord(oldObject)) throw malformedReview('request.oldObject is missing: it is the pod that is to be deleted')
  const pod = read(oldObject)
  if (pod === undefined) throw malformedReview('request.oldObject is not a pod with a name and a uid')
  const namespace = textOf(request['namespace'])
  const name = textOf(request['name'])
  if (namespace !== '' && namespace !== pod.namespace)
    throw malformedReview('request.oldObject is of another namespace')
  if (name !== '' && name !== pod.name) throw malformedReview('request.oldObject has another name than request.name')
  return pod
}

function eviction(request: JsonObject): Omit<EvictionSubject, keyof ReviewedRequest | 'type'> {
  const { object } = request
  if (!isRecord(object) || object['kind'] !== 'Eviction') throw malformedReview('request.object is not an Eviction')
  const metadata = recordOf(object['metadata'])
  const namespace = textOf(request['namespace']) || textOf(metadata['namespace'])
  const name = textOf(request['name']) || textOf(metadata['name'])
  if (namespace === '' || name === '') throw malformedReview('request has no namespace and name of a pod')
  const conditions = recordOf(recordOf(object['deleteOptions'])['preconditions'])
  return {
    namespace,
    name,
    criterion: healthCriterion(metadata['annotations']),
    onlyUid: textOf(conditions['uid']),
    onlyVersion: textOf(conditions['resourceVersion']),
    probe: isDryRun(request) && Object.hasOwn(recordOf(metadata['labels']), PROBE_LABEL),
  }
}

/** A deletion has it in its query or DeleteOptions, an eviction in CreateOptions or Eviction.deleteOptions. */
function isDryRun(request: JsonObject): boolean {
  const lists = [recordOf(request['options']), recordOf(recordOf(request['object'])['deleteOptions'])]
  return request['dryRun'] === true || lists.some(({ dryRun }) => Array.isArray(dryRun) && dryRun.length > 0)
}
