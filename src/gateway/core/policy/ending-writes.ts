// Writes that end pods, or make a controller end them, although their head says neither deletion nor eviction. Which requests may be
// one; what an object says before and after tells whether it is. Changed numbers of replicas are read in scaling/core/scale-write.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { RefusedWrite } from '../../../scaling/core/scale-write/scale-change.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { addedNoExecute } from './node-taints.ts'

/** What the writes of one kind of object can do. */
export interface EndingWrite {
  /** A body that has none of these texts changes nothing of it ... */
  readonly words: readonly string[]
  /** ... unless it leaves a field out that then gets its default, or is given up. */
  readonly byAbsence: boolean
  /** What decides, as JSON pointers: after a copy or a move to one of them nobody can say beforehand what it will be. */
  readonly places: readonly string[]
  /** Field numbers of the one field that decides, where protocol buffers have none of `words`. Default: they have them as text. */
  readonly protobuf?: readonly number[]
  /**
   * What it does to the object that is `called` so, for people: `lowers spec.parallelism of jobs/x from 3 to 0`. undefined = it ends no pod.
   * @param before an empty one is not known, and counts as one in which nothing is set
   */
  outcome(before: JsonObject, after: JsonObject, called: string): string | undefined
}

/** What was found out about one write. */
export type WriteEffect =
  /** It ends pods. */
  | {
      readonly kind: 'ends'
      /** For people: what it does. */
      readonly what: string
      /** The object as a dry run left it; undefined = what it will be depends on the moment. */
      readonly after: JsonObject | undefined
    }
  | RefusedWrite
  /** Nobody can say; why, for people. */
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

/** A NoExecute taint evicts the pods of the node that do not tolerate it. */
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
 * The kubelet ends a pod when it has run that long (DeadlineExceeded). It may be set, and lowered, as long as the pod runs
 * (pkg/apis/core/validation, ValidatePodUpdate), and never be taken away.
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

/** When it runs: seconds from status.startTime on. @returns undefined = it has none */
export function deadlineSeconds(pod: JsonObject): number | undefined {
  return numberOf(specOf(pod)['activeDeadlineSeconds'])
}

/**
 * The Job controller deletes pods of a Job that is suspended, or has more of them than it may, and all of one that has failed by its
 * deadline or by too many failures (pkg/controller/job/job_controller.go). completions goes down with parallelism only.
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
 * The DaemonSet controller deletes the pods of nodes on which the template may no longer run, all at once, whatever maxUnavailable says
 * (pkg/controller/daemon, NodeShouldRunDaemonPod). The selector cannot be changed.
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

/** The StatefulSet controller deletes pods whose ordinals are no longer among its own. */
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

/** What is only preferred keeps no pod from a node. */
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

/** Conditions of a Job that runs no more. */
function hasEnded(job: JsonObject): boolean {
  return recordsOf(recordOf(job['status'])['conditions']).some(
    ({ type, status }) => status === 'True' && (type === 'Complete' || type === 'Failed'),
  )
}

/** @param set the verb for a number where there was none; absent = then nothing gets smaller */
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
