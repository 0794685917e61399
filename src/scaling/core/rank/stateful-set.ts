// Which pods a StatefulSet deletes when scaled down, and what blocks it (updateStatefulSet,
// pkg/controller/statefulset/stateful_set_control.go). Only ordinals count: no cost, no readiness.

import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { countOf } from './replica-set-pods.ts'
import type { ScalePod } from './scale-pod.ts'

interface StatefulSetScale {
  /** The pods that go, in order: highest ordinal first. */
  readonly condemned: readonly ScalePod[]
  readonly safe: readonly ScalePod[]
  /** Why nothing, or nothing more, is deleted for now; '' = not blocked. */
  readonly blocked: string
  /** PersistentVolumeClaims deleted with each condemned pod. */
  readonly claimsDeleted: number
}

const NAME = /^.*-([0-9]+)$/s
const MAX_ORDINAL = 2 ** 31 - 1

/** @param pods of the StatefulSet */
export function statefulSetScale(
  statefulSet: JsonObject,
  pods: readonly ScalePod[],
  replicas: number,
  nowMs: number,
): StatefulSetScale {
  const spec = recordOf(statefulSet['spec'])
  const start = countOf(recordOf(spec['ordinals'])['start'], 0)
  const inRange = (pod: ScalePod): boolean => ordinalOf(pod) >= start && ordinalOf(pod) < start + replicas
  const condemned = pods
    .filter((pod) => ordinalOf(pod) >= 0 && !inRange(pod))
    .sort((a, b) => ordinalOf(b) - ordinalOf(a))
  const survivors = pods.filter(inRange).sort((a, b) => ordinalOf(a) - ordinalOf(b))
  const minReadyMs = countOf(spec['minReadySeconds'], 0) * 1000
  const isUnavailable = (pod: ScalePod): boolean => pod.terminating || !isAvailable(pod, minReadyMs, nowMs)
  const parallel = spec['podManagementPolicy'] === 'Parallel'
  const blocked =
    parallel || condemned.length === 0
      ? ''
      : whyBlocked(nameOf(statefulSet), start, replicas, survivors, condemned, isUnavailable)
  const retention = textOf(recordOf(spec['persistentVolumeClaimRetentionPolicy'])['whenScaled'])
  return {
    condemned,
    safe: pods.filter((pod) => !condemned.includes(pod)),
    blocked,
    claimsDeleted: retention === 'Delete' ? recordsOf(spec['volumeClaimTemplates']).length : 0,
  }
}

/** -1 = the name has no ordinal, and the controller ignores the pod. */
export function ordinalOf({ name }: Pick<ScalePod, 'name'>): number {
  const ordinal = Number(NAME.exec(name)?.[1] ?? -1)
  return ordinal <= MAX_ORDINAL ? ordinal : -1
}

/** OrderedReady: one at a time, and only while all remaining pods are available. */
function whyBlocked(
  set: string,
  start: number,
  replicas: number,
  survivors: readonly ScalePod[],
  condemned: readonly ScalePod[],
  isUnavailable: (pod: ScalePod) => boolean,
): string {
  const missing = survivors.findIndex((pod, at) => ordinalOf(pod) !== start + at)
  const waiting = survivors.find(isUnavailable)
  if (waiting !== undefined) return `${waiting.name}, which stays, is not available; nothing is deleted before it is`
  if (survivors.length < replicas) {
    const ordinal = start + (missing < 0 ? survivors.length : missing)
    return `${set}-${ordinal}, which stays, does not exist; nothing is deleted before it is available`
  }
  // Among unavailable ones only the lowest is deleted in its turn.
  const lowest = condemned.findLast(isUnavailable)
  const stuck = condemned.find((pod) => pod.terminating || (isUnavailable(pod) && pod !== lowest))
  if (stuck === undefined) return ''
  if (stuck.terminating) return `${stuck.name} is terminating; the next one is deleted when it has gone`
  return `${stuck.name} is not available, nor is ${lowest?.name}; it and those behind it are deleted when it is`
}

function isAvailable({ phase, ready, readySinceMs }: ScalePod, minReadyMs: number, nowMs: number): boolean {
  if (phase !== 'Running' || !ready) return false
  return minReadyMs === 0 || (readySinceMs > 0 && readySinceMs + minReadyMs <= nowMs)
}
