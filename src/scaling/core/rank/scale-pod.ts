// A Pod from an API server, reduced to what decides whether a scale-down deletes it. Parts of wrong types count as absent.

import { type JsonObject, mapOf, nameOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'

export const DELETION_COST_ANNOTATION = 'controller.kubernetes.io/pod-deletion-cost'
/** The cost set on pods chosen by a ScaleDownPolicy: before all pods without a cost. */
export const VICTIM_COST = -1

export interface ScalePod {
  readonly name: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  /** UID of the owner with `controller: true`; '' = orphan. */
  readonly controllerUid: string
  /** '' = not assigned to a node. */
  readonly nodeName: string
  readonly phase: string
  /** Condition Ready is True. */
  readonly ready: boolean
  /** lastTransitionTime of condition Ready, while it is True; milliseconds since the epoch, 0 = Go's zero time. */
  readonly readySinceMs: number
  /** creationTimestamp, in the same form. */
  readonly createdMs: number
  /** Value of the annotation; 0 if absent or invalid. */
  readonly deletionCost: number
  /** Highest restart count of any container. */
  readonly restarts: number
  /** Same, for init containers with restartPolicy Always. */
  readonly sidecarRestarts: number
  /** It has a deletionTimestamp. */
  readonly terminating: boolean
}

type Fields = Readonly<Record<string, unknown>>

export function scalePod(object: JsonObject): ScalePod {
  const metadata = recordOf(object['metadata'])
  const spec = recordOf(object['spec'])
  const status = recordOf(object['status'])
  const conditions = recordsOf(status['conditions']).filter((condition) => condition['type'] === 'Ready')
  const readyCondition = conditions.find((condition) => condition['status'] === 'True')
  return {
    name: nameOf(object),
    uid: textOf(metadata['uid']),
    labels: mapOf(object, 'labels'),
    controllerUid: controllerUid(object),
    nodeName: textOf(spec['nodeName']),
    phase: textOf(status['phase']),
    ready: conditions[0]?.['status'] === 'True',
    readySinceMs: readyCondition === undefined ? 0 : timeMs(readyCondition['lastTransitionTime']),
    createdMs: timeMs(metadata['creationTimestamp']),
    deletionCost: parseDeletionCost(mapOf(object, 'annotations')[DELETION_COST_ANNOTATION]) ?? 0,
    restarts: mostRestarts(recordsOf(status['containerStatuses'])),
    sidecarRestarts: mostRestarts(sidecarStatuses(spec, status)),
    terminating: textOf(metadata['deletionTimestamp']) !== '',
  }
}

/** controller.IsPodActive: only active pods count as replicas. */
export function isActive({ phase, terminating }: ScalePod): boolean {
  return phase !== 'Succeeded' && phase !== 'Failed' && !terminating
}

/** metav1.GetControllerOf; '' = none. */
export function controllerUid(object: JsonObject): string {
  const owners = recordsOf(recordOf(object['metadata'])['ownerReferences'])
  return textOf(owners.find((owner) => owner['controller'] === true)?.['uid'])
}

/** Milliseconds since the epoch; 0 = none. */
export function timeMs(value: unknown): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? 0 : ms
}

function sidecarStatuses(spec: Fields, status: Fields): readonly Fields[] {
  const sidecars = recordsOf(spec['initContainers']).filter((container) => container['restartPolicy'] === 'Always')
  const names = new Set(sidecars.map((container) => container['name']))
  return recordsOf(status['initContainerStatuses']).filter((container) => names.has(container['name']))
}

function mostRestarts(statuses: readonly Fields[]): number {
  return statuses.reduce((most, { restartCount }) => {
    return typeof restartCount === 'number' ? Math.max(most, restartCount) : most
  }, 0)
}

const MIN = -(2 ** 31)
const MAX = 2 ** 31 - 1
/** What passes validFirstDigit and strconv.ParseInt: no plus sign, no leading zero unless after a minus. */
const INTEGER = /^(?:0|[1-9][0-9]*|-[0-9]+)$/

/**
 * As the ReplicaSet controller does (GetDeletionCostFromPodAnnotations, pkg/apis/core/helper/helpers.go).
 * @returns undefined if the value is invalid, which counts as 0; a missing annotation is 0
 */
export function parseDeletionCost(value: string | undefined): number | undefined {
  if (value === undefined) return 0
  if (!INTEGER.test(value)) return undefined
  const cost = Number(value)
  // Turns -0 into 0.
  return cost >= MIN && cost <= MAX ? cost + 0 : undefined
}
