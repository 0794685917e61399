// A Pod from an API server, reduced to what decides whether a scale-down deletes it. Parts of wrong types count as absent.

import { type JsonObject, mapOf, nameOf } from '../../../kit/api/json/json-object.ts'
import { recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { DELETION_COST_ANNOTATION, parseDeletionCost } from './deletion-cost.ts'

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
