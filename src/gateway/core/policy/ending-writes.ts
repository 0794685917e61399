// Writes that end pods, or make a controller end them, although their head is neither deletion nor eviction: which requests may be one, and
// how to derive it from the object before and after. Changed replica counts are read in scaling/core/scale-write.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { RequestInfo } from '../request/request-info.ts'

const NO_EXECUTE = 'NoExecute'

/** Upstream refuses the write: its answer to a dry run. */
export interface RefusedWrite {
  readonly kind: 'refused'
  readonly status: number
  readonly body: string
}

/** Effects of writes to one kind of object. */
export interface EndingWrite {
  /** A body without any of these words changes nothing relevant ... */
  readonly words: readonly string[]
  /** ... unless it omits a field that then is defaulted, or is no longer owned. */
  readonly byAbsence: boolean
  /** The relevant fields, as JSON pointers: after a copy or a move to one of them the result can't be predicted. */
  readonly places: readonly string[]
  /** Field numbers of the relevant field, if the protobuf form has none of `words`. Default: protobuf contains the words as text. */
  readonly protobuf?: readonly number[]
  /**
   * What the write does to the object `called`, for people: `lowers spec.parallelism of jobs/x from 3 to 0`. undefined = it ends no pods.
   * @param before if empty, it is unknown, and counts as one in which nothing is set
   */
  outcome(before: JsonObject, after: JsonObject, called: string): string | undefined
}

/** The verdict on one write. */
export type WriteEffect =
  /** It ends pods. */
  | {
      readonly kind: 'ends'
      /** For people: what it does. */
      readonly what: string
      /** The object as left by a dry run; undefined = the result depends on timing. */
      readonly after: JsonObject | undefined
    }
  | RefusedWrite
  /** Can't be determined; `why` is for people. */
  | { readonly kind: 'unknown'; readonly why: string }

/** What a write of this object may do to pods; undefined = nothing, whatever its body says. Cheap. */
export function endingWriteOf(info: RequestInfo): EndingWrite | undefined {
  const { verb, resource, subresource, apiGroup, name, isResourceRequest } = info
  if ((verb !== 'update' && verb !== 'patch') || !isResourceRequest || subresource !== '' || name === '')
    return undefined
  switch (resource) {
    case 'pods':
      return apiGroup === '' ? POD_DEADLINE : undefined
    case 'nodes':
      return apiGroup === '' ? NODE_TAINTS : undefined
    case 'jobs':
      return apiGroup === 'batch' ? JOB_SIZE : undefined
    case 'daemonsets':
      return apiGroup === 'apps' ? DAEMON_SET_NODES : undefined
    case 'statefulsets':
      return apiGroup === 'apps' ? STATEFUL_SET_ORDINALS : undefined
    default:
      return undefined
  }
}

/** A NoExecute taint evicts the node's pods that do not tolerate it. */
const NODE_TAINTS: EndingWrite = {
  words: ['NoExecute'],
  byAbsence: false,
  places: ['/spec/taints'],
  outcome(before, after, called) {
    const taint = addedNoExecute(before, after)
    return taint === undefined ? undefined : `adds NoExecute taint ${taint} to ${called}`
  },
}

/**
 * The kubelet ends a pod that has run this long (DeadlineExceeded). The field may be set or lowered while the pod runs
 * (pkg/apis/core/validation, ValidatePodUpdate), and never removed.
 */
const POD_DEADLINE: EndingWrite = {
  words: ['activeDeadlineSeconds'],
  byAbsence: false,
  places: ['/spec/activeDeadlineSeconds'],
  // Pod.spec, PodSpec.activeDeadlineSeconds (k8s.io/api/core/v1/generated.proto).
  protobuf: [2, 5],
  outcome(before, after, called) {
    if (recordOf(before['metadata'])['deletionTimestamp'] !== undefined) return undefined
    return loweredNumber('activeDeadlineSeconds', before, after, called, 'sets')
  },
}

/** Seconds from status.startTime on. @returns undefined = no deadline */
export function deadlineSeconds(pod: JsonObject): number | undefined {
  return numberOf(specOf(pod)['activeDeadlineSeconds'])
}

/**
 * The Job controller deletes pods of a suspended Job, surplus pods, and all pods of a Job that failed by its deadline or by too many
 * failures (pkg/controller/job/job_controller.go). completions can be lowered only together with parallelism.
 */
const JOB_SIZE: EndingWrite = {
  words: ['suspend', 'parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit'],
  byAbsence: true,
  places: [
    '/spec/suspend',
    '/spec/parallelism',
    '/spec/completions',
    '/spec/activeDeadlineSeconds',
    '/spec/backoffLimit',
  ],
  outcome(before, after, called) {
    if (hasEnded(before)) return undefined
    if (specOf(after)['suspend'] === true && specOf(before)['suspend'] !== true) return `suspends ${called}`
    return (
      loweredNumber('parallelism', before, after, called) ??
      loweredNumber('completions', before, after, called) ??
      loweredNumber('activeDeadlineSeconds', before, after, called, 'sets') ??
      loweredNumber('backoffLimit', before, after, called)
    )
  },
}

/**
 * The DaemonSet controller deletes pods from nodes that the template no longer fits, all at once, whatever maxUnavailable says
 * (pkg/controller/daemon, NodeShouldRunDaemonPod). The selector is immutable.
 */
const DAEMON_SET_NODES: EndingWrite = {
  words: ['nodeSelector', 'nodeName', 'affinity', 'tolerations'],
  byAbsence: true,
  places: ['nodeSelector', 'nodeName', 'affinity', 'tolerations'].map((field) => `/spec/template/spec/${field}`),
  outcome(before, after, called) {
    const field = narrowedField(templateOf(before), templateOf(after))
    return field === undefined ? undefined : `narrows the nodes of ${called} by spec.template.spec.${field}`
  },
}

/** The StatefulSet controller deletes pods whose ordinals are out of range. */
const STATEFUL_SET_ORDINALS: EndingWrite = {
  words: ['ordinals'],
  byAbsence: true,
  places: ['/spec/ordinals'],
  outcome(before, after, called) {
    const was = ordinalsOf(before)
    const is = ordinalsOf(after)
    if (was.start === is.start || was.end === was.start) return undefined
    if (is.start <= was.start && is.end >= was.end) return undefined
    return `moves spec.ordinals.start of ${called} from ${was.start} to ${is.start}`
  },
}

function narrowedField(before: JsonObject, after: JsonObject): string | undefined {
  const selected = recordOf(before['nodeSelector'])
  const labels = Object.entries(recordOf(after['nodeSelector']))
  if (labels.some(([key, value]) => selected[key] !== value)) return 'nodeSelector'
  const node = textOf(after['nodeName'])
  if (node !== '' && node !== textOf(before['nodeName'])) return 'nodeName'
  const required = requiredAffinity(after)
  if (required !== undefined && JSON.stringify(required) !== JSON.stringify(requiredAffinity(before))) return 'affinity'
  const tolerated = new Set(tolerationsOf(after))
  return tolerationsOf(before).every((toleration) => tolerated.has(toleration)) ? undefined : 'tolerations'
}

/** Preferred affinity keeps no pod off a node. */
function requiredAffinity(podSpec: JsonObject): unknown {
  const { requiredDuringSchedulingIgnoredDuringExecution: required } = recordOf(
    recordOf(podSpec['affinity'])['nodeAffinity'],
  )
  return required
}

function tolerationsOf(podSpec: JsonObject): string[] {
  return recordsOf(podSpec['tolerations']).map(({ key, operator, value, effect }) => {
    return JSON.stringify([textOf(key), textOf(operator) || 'Equal', textOf(value), textOf(effect)])
  })
}

function ordinalsOf(statefulSet: JsonObject): { readonly start: number; readonly end: number } {
  const { ordinals, replicas } = specOf(statefulSet)
  const start = numberOf(recordOf(ordinals)['start']) ?? 0
  return { start, end: start + (numberOf(replicas) ?? 1) }
}

/** Conditions of a finished Job. */
function hasEnded(job: JsonObject): boolean {
  return recordsOf(recordOf(job['status'])['conditions']).some(
    ({ type, status }) => status === 'True' && (type === 'Complete' || type === 'Failed'),
  )
}

/** @param set the verb for a number where there was none; absent = setting one shrinks nothing */
function loweredNumber(
  field: string,
  before: JsonObject,
  after: JsonObject,
  called: string,
  set?: string,
): string | undefined {
  const was = numberOf(specOf(before)[field])
  const is = numberOf(specOf(after)[field])
  if (is === undefined) return undefined
  if (was === undefined) return set === undefined ? undefined : `${set} spec.${field} of ${called} to ${is}`
  return is < was ? `lowers spec.${field} of ${called} from ${was} to ${is}` : undefined
}

function specOf(object: JsonObject): JsonObject {
  return recordOf(object['spec'])
}

function templateOf(object: JsonObject): JsonObject {
  return recordOf(recordOf(specOf(object)['template'])['spec'])
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/**
 * Key and value of the first NoExecute taint that a write adds to the node; undefined = none. Such a taint evicts the pods of the node that do not
 * tolerate it.
 */
export function addedNoExecute(before: JsonObject, after: JsonObject): string | undefined {
  const known = new Set(noExecuteTaints(before))
  return noExecuteTaints(after).find((taint) => !known.has(taint))
}

/** Includes the value: a toleration may be for one value only, so another value is another taint. */
function noExecuteTaints(node: JsonObject): string[] {
  const { taints } = recordOf(node['spec'])
  if (!Array.isArray(taints)) return []
  const found: string[] = []
  for (const taint of taints as readonly unknown[]) {
    if (!isRecord(taint) || taint['effect'] !== NO_EXECUTE) continue
    const { key, value } = taint
    found.push(typeof value === 'string' && value !== '' ? `${String(key)}=${value}` : String(key))
  }
  return found
}
