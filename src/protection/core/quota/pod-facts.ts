// A Pod from an API server, reduced to what protection needs, and the pods of a cell counted for one protector. Values of a wrong type
// count as absent.

import type { CompiledProtection } from '../../../gateway/core/cluster/compiled-cluster.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'
import {
  FORCE_DELETE_ANNOTATION,
  HEALTH_CRITERION_ANNOTATION,
  type HealthCriterion,
  type PodFacts,
} from '../../api/protection.ts'
import { parseMicros } from '../history/micro-time.ts'

const CRITERIA: readonly HealthCriterion[] = ['Available', 'Ready', 'Running', 'Scheduled']

/** @returns undefined if the object has no uid or no name, and so is not a stored pod */
export function podFacts(pod: JsonObject): PodFacts | undefined {
  const metadata = recordOf(pod, 'metadata')
  const name = textOf(metadata, 'name')
  const uid = textOf(metadata, 'uid')
  if (name === '' || uid === '') return undefined
  const annotations = recordOf(metadata, 'annotations')
  const status = recordOf(pod, 'status')
  const ready = trueCondition(status, 'Ready')
  return {
    namespace: textOf(metadata, 'namespace'),
    name,
    uid,
    resourceVersion: textOf(metadata, 'resourceVersion'),
    labels: textsOf(recordOf(metadata, 'labels')),
    forceDelete: Object.hasOwn(annotations, FORCE_DELETE_ANNOTATION),
    criterion: healthCriterion(annotations) ?? 'Available',
    terminating: textOf(metadata, 'deletionTimestamp') !== '',
    scheduled: trueCondition(status, 'PodScheduled') !== undefined,
    running: textOf(status, 'phase') === 'Running',
    ready: ready !== undefined,
    readySinceMs: ready === undefined ? 0 : timeMs(textOf(ready, 'lastTransitionTime')),
    startedMs: timeMs(textOf(status, 'startTime')),
    createdMs: timeMs(textOf(metadata, 'creationTimestamp')),
    readyWrittenMs: ready === undefined ? 0 : readyWrittenMs(metadata),
  }
}

/**
 * The value of annotation `podseidon.kubewharf.io/health-criterion`.
 * @param annotations of a Pod or an Eviction, of any shape
 * @returns undefined if absent or unknown
 */
export function healthCriterion(annotations: unknown): HealthCriterion | undefined {
  if (!isRecord(annotations)) return undefined
  const value = textOf(annotations, HEALTH_CRITERION_ANNOTATION)
  return CRITERIA.find((criterion) => criterion === value)
}

type Fields = Readonly<Record<string, unknown>>

/** The first condition of the type, as Kubernetes looks them up, if its status is True. */
function trueCondition(status: Fields, type: string): Fields | undefined {
  const conditions = own(status, 'conditions')
  if (!Array.isArray(conditions)) return undefined
  const condition = conditions.filter(isRecord).find((candidate) => textOf(candidate, 'type') === type)
  return condition !== undefined && textOf(condition, 'status') === 'True' ? condition : undefined
}

const READY_KEY = 'k:{"type":"Ready"}'

/**
 * The owners of condition Ready, from metadata.managedFields: an entry has the time of its manager's last write that changed a field it
 * owns (structured-merge-diff), by the API server's clock.
 */
export function readyOwners(metadata: Fields): readonly Fields[] {
  const entries = own(metadata, 'managedFields')
  if (!Array.isArray(entries)) return []
  return entries.filter(isRecord).filter((entry) => {
    const conditions = recordOf(recordOf(recordOf(entry, 'fieldsV1'), 'f:status'), 'f:conditions')
    return Object.hasOwn(conditions, READY_KEY)
  })
}

/** The latest of several owners: any of them may have written the condition. */
function readyWrittenMs(metadata: Fields): number {
  return Math.max(0, ...readyOwners(metadata).map((entry) => timeMs(textOf(entry, 'time'))))
}

function timeMs(text: string): number {
  const micros = parseMicros(text)
  return Number.isNaN(micros) ? 0 : Math.floor(micros / 1000)
}

function own(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined
}

function recordOf(fields: Fields, key: string): Fields {
  const value = own(fields, key)
  return isRecord(value) ? value : {}
}

function textOf(fields: Fields, key: string): string {
  const value = own(fields, key)
  return typeof value === 'string' ? value : ''
}

function textsOf(fields: Fields): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export interface PodCounts {
  readonly total: number
  readonly available: number
  readonly ready: number
  readonly scheduled: number
  readonly running: number
  /** Milliseconds until the next pod becomes available; undefined = none will by time alone. */
  readonly nextAvailableMs: number | undefined
}

/** How long a ready pod is known to have been ready, milliseconds. */
export type ReadyFor<Pod> = (pod: Pod) => number

/** Terminating pods do not count at all; finished ones count in `total`, as in Podseidon. */
export function aggregatePods<Pod extends PodFacts>(
  pods: Iterable<Pod>,
  minReadySeconds: number,
  readyFor: ReadyFor<Pod>,
): PodCounts {
  const counts = { total: 0, available: 0, ready: 0, scheduled: 0, running: 0 }
  let nextAvailableMs: number | undefined
  for (const pod of pods) {
    if (pod.terminating) continue
    counts.total += 1
    if (pod.scheduled) counts.scheduled += 1
    if (pod.running) counts.running += 1
    if (!pod.ready) continue
    counts.ready += 1
    const waitMs = untilAvailableMs(pod, minReadySeconds, readyFor)
    if (waitMs <= 0) counts.available += 1
    else if (waitMs < (nextAvailableMs ?? Number.POSITIVE_INFINITY)) nextAvailableMs = waitMs
  }
  return { ...counts, nextAvailableMs }
}

/** Kubernetes' IsPodAvailable (pkg/api/v1/pod/util.go), except that a terminating pod never is. */
export function isAvailable<Pod extends PodFacts>(pod: Pod, minReadySeconds: number, readyFor: ReadyFor<Pod>): boolean {
  return !pod.terminating && pod.ready && untilAvailableMs(pod, minReadySeconds, readyFor) <= 0
}

/** For a ready pod. Without minReadySeconds it does not matter since when. */
function untilAvailableMs<Pod>(pod: Pod, minReadySeconds: number, readyFor: ReadyFor<Pod>): number {
  return minReadySeconds > 0 ? minReadySeconds * 1000 - readyFor(pod) : 0
}

type GuardSelector = Pick<CompiledSelector, 'matches'>

const EVERY_POD: GuardSelector = { matches: () => true }
const selectors = new WeakMap<object, GuardSelector>()

/** spec.podProtection.objectSelector: whether a pod with these labels is guarded at all. An unreadable selector guards all pods. */
export function isGuarded({ objectSelector }: Pick<CompiledProtection, 'objectSelector'>, labels: Labels): boolean {
  if (objectSelector === undefined) return true
  let selector = selectors.get(objectSelector)
  if (selector === undefined) {
    try {
      selector = compileSelector(objectSelector)
    } catch {
      selector = EVERY_POD
    }
    selectors.set(objectSelector, selector)
  }
  return selector.matches(labels)
}
