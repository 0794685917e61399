// Extracts what the guard needs from Cluster API objects, v1beta1 and v1beta2, as they arrive, so that little of large objects is kept.

import { type JsonObject, mapOf, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { isRecord, listOf, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import type { MachineState } from './machine-failure.ts'

export type GroupKind = 'MachineDeployment' | 'MachineSet' | 'MachinePool'

interface Facts {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly labels: Readonly<Record<string, string>>
  /** UID of the controller; '' = none. */
  readonly owner: string
}

export interface MachineFacts extends Facts {
  readonly state: MachineState
  readonly providerID: string
}

export interface GroupFacts extends Facts {
  readonly kind: GroupKind
  readonly clusterName: string
  /** `spec.replicas`. */
  readonly replicas: number
  /** Replicas that it has or wants. */
  readonly present: number
  /** The autoscaler's annotation; undefined = not scaled by the autoscaler. */
  readonly minSize: number | undefined
  readonly paused: boolean
  readonly deleting: boolean
  /** Labels of the machines that it creates. */
  readonly machineLabels: Readonly<Record<string, string>>
  /** For a MachinePool. */
  readonly providerIDs: readonly string[]
  /** For a MachinePool: number of nodes known to Cluster API. */
  readonly nodeRefs: number
  /** Field manager that last wrote the replicas; '' = unknown. */
  readonly writer: string
}

export interface HealthCheckFacts {
  readonly namespace: string
  readonly name: string
  readonly clusterName: string
  readonly selector: LabelSelector
}

/** @param before the same machine as last seen: a failure that only changes its wording keeps its start time */
export function readMachine(
  object: JsonObject,
  group: string,
  before: MachineFacts | undefined,
  isTerminal: (reason: string) => boolean,
): MachineFacts {
  const facts = readFacts(object)
  const [spec, status] = [recordOf(object['spec']), recordOf(object['status'])]
  const annotations = mapOf(object, 'annotations')
  const providerID = textOf(spec['providerID'])
  const notReady = readNotReady(status['conditions'])
  const known = before?.uid === facts.uid ? before.state.notReady : undefined
  // Some providers put the id of each attempt into the message, which makes it a new condition every time.
  const goesOn =
    notReady !== undefined && known !== undefined && isTerminal(notReady.reason) && isTerminal(known.reason)
  return {
    ...facts,
    providerID,
    state: {
      name: facts.name,
      uid: facts.uid,
      createdMs: millis(recordOf(object['metadata'])['creationTimestamp']),
      deleting: isDeleting(object),
      marked: annotations[`${group}/delete-machine`] !== undefined,
      controlPlane: facts.labels[`${group}/control-plane`] !== undefined,
      paused: annotations[`${group}/paused`] !== undefined,
      hasProviderID: providerID !== '',
      hasNode: isRecord(status['nodeRef']),
      notReady: goesOn ? { ...notReady, sinceMs: Math.min(known.sinceMs, notReady.sinceMs) } : notReady,
    },
  }
}

export function readGroup(object: JsonObject, kind: GroupKind, group: string): GroupFacts {
  const [spec, status] = [recordOf(object['spec']), recordOf(object['status'])]
  const annotations = mapOf(object, 'annotations')
  const replicas = countOf(spec['replicas'])
  const template = recordOf(spec['template'])
  return {
    ...readFacts(object),
    kind,
    clusterName: textOf(spec['clusterName']),
    replicas,
    present: Math.max(replicas, countOf(status['replicas'])),
    minSize: minSizeOf(annotations, group),
    paused: isPaused(object, group),
    deleting: isDeleting(object),
    machineLabels: mapOf(template, 'labels'),
    providerIDs: textsOf(spec['providerIDList']),
    nodeRefs: listOf(status['nodeRefs']).length,
    writer: writerOf(object),
  }
}

export function readHealthCheck(object: JsonObject): HealthCheckFacts {
  const spec = recordOf(object['spec'])
  return {
    namespace: namespaceOf(object),
    name: nameOf(object),
    clusterName: textOf(spec['clusterName']),
    selector: recordOf(spec['selector']),
  }
}

/** For a Cluster, a group or a MachineSet: controllers leave it alone. */
export function isPaused(object: JsonObject, group: string): boolean {
  return recordOf(object['spec'])['paused'] === true || mapOf(object, 'annotations')[`${group}/paused`] !== undefined
}

function readFacts(object: JsonObject): Facts {
  const metadata = recordOf(object['metadata'])
  const owner = recordsOf(metadata['ownerReferences']).find(({ controller }) => controller === true)
  return {
    namespace: namespaceOf(object),
    name: nameOf(object),
    uid: textOf(metadata['uid']),
    resourceVersion: textOf(metadata['resourceVersion']),
    labels: mapOf(object, 'labels'),
    owner: textOf(owner?.['uid']),
  }
}

function readNotReady(conditions: unknown): MachineState['notReady'] {
  const found = recordsOf(conditions).find(({ type }) => type === 'InfrastructureReady')
  if (found?.['status'] !== 'False') return undefined
  const { reason, message, lastTransitionTime } = found
  return { reason: textOf(reason), message: textOf(message), sinceMs: millis(lastTransitionTime) }
}

/** Like the autoscaler: both sizes must be present and numeric. */
function minSizeOf(annotations: Readonly<Record<string, string>>, group: string): number | undefined {
  const [min, max] = ['min', 'max'].map((which) => {
    const text = annotations[`${group}/cluster-api-autoscaler-node-group-${which}-size`] ?? ''
    return /^\d{1,9}$/.test(text) ? Number(text) : undefined
  })
  return min === undefined || max === undefined || max < min ? undefined : min
}

/** From metadata.managedFields: the owner of spec.replicas that wrote last. */
function writerOf(object: JsonObject): string {
  let [writer, time] = ['', '']
  for (const entry of recordsOf(recordOf(object['metadata'])['managedFields'])) {
    const fields = recordOf(recordOf(entry['fieldsV1'])['f:spec'])
    if (!Object.hasOwn(fields, 'f:replicas') || textOf(entry['time']) < time) continue
    writer = textOf(entry['manager'])
    time = textOf(entry['time'])
  }
  return writer
}

function isDeleting(object: JsonObject): boolean {
  return recordOf(object['metadata'])['deletionTimestamp'] !== undefined
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).filter((item): item is string => typeof item === 'string' && item !== '')
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

/** An unreadable time counts as far in the future, so that nothing follows from it. */
function millis(value: unknown): number {
  const ms = Date.parse(textOf(value))
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms
}
