// DEMO ONLY. In place of the kubelets: a pod is Pending, then being created, then Running; now and then a container restarts.

import { randomInt } from 'node:crypto'
import { type DemoObject, isJson, type Json, listAt, numberAt, objectAt, textAt, valueAt } from './json.ts'

/** The pod one step further; the same object when nothing changes. */
export function nextPod(pod: DemoObject): DemoObject {
  if (isEnding(pod) || textAt(pod, 'spec.nodeName') === '') return pod
  const statuses = listAt(pod, 'status.containerStatuses')
  if (statuses.length === 0) return withStatus(pod, 'Pending', { waiting: { reason: 'ContainerCreating' } }, 0)
  if (isPodReady(pod)) return pod
  return withStatus(pod, 'Running', { running: { startedAt: seconds() } }, restartsOf(pod))
}

/** A container of it has died and waits to be started again. */
export function crashed(pod: DemoObject): DemoObject {
  return withStatus(pod, 'Running', { waiting: { reason: 'CrashLoopBackOff' } }, restartsOf(pod) + 1)
}

/** The pod as if it had been running since then. */
export function settledPod(pod: DemoObject, since: string): DemoObject {
  const conditions = listAt(pod, 'status.conditions').map((one) => ({ ...objectOf(one), lastTransitionTime: since }))
  const containerStatuses = listAt(pod, 'status.containerStatuses').map((one) => ({
    ...objectOf(one),
    state: { running: { startedAt: since } },
  }))
  const status = { ...objectAt(pod, 'status'), conditions, containerStatuses, startTime: since }
  return { ...pod, metadata: { ...pod.metadata, managedFields: writtenByKubelet(since) }, status }
}

/** What an API server notes of a kubelet's write of the status: by its time others know since when the pod is ready. */
function writtenByKubelet(time: string): readonly Json[] {
  const ready = { '.': {}, 'f:lastTransitionTime': {}, 'f:status': {}, 'f:type': {} }
  const fieldsV1 = { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': ready } } }
  const fields = { apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 }
  return [{ manager: 'kubelet', operation: 'Update', subresource: 'status', time, ...fields }]
}

function objectOf(value: unknown): Json {
  return isJson(value) ? value : {}
}

export function isPodReady(pod: DemoObject): boolean {
  const statuses = listAt(pod, 'status.containerStatuses')
  return statuses.length > 0 && statuses.every((status) => valueAt(status, 'ready') === true)
}

export function isEnding({ metadata }: DemoObject): boolean {
  return metadata.deletionTimestamp !== undefined
}

function restartsOf(pod: DemoObject): number {
  return numberAt(listAt(pod, 'status.containerStatuses')[0], 'restartCount')
}

function withStatus(pod: DemoObject, phase: string, state: Json, restartCount: number): DemoObject {
  const ready = 'running' in state
  const containerStatuses = listAt(pod, 'spec.containers').map((container, i) => ({
    name: textAt(container, 'name'),
    image: textAt(container, 'image'),
    imageID: '',
    ready,
    started: ready,
    // Only the first container ever dies.
    restartCount: i === 0 ? restartCount : 0,
    state,
  }))
  const status = ready ? 'True' : 'False'
  const at = seconds()
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => {
    const wanted = type === 'Initialized' || type === 'PodScheduled' ? 'True' : status
    const before = listAt(pod, 'status.conditions').find((one) => textAt(one, 'type') === type)
    const since = textAt(before, 'status') === wanted ? textAt(before, 'lastTransitionTime') : at
    return { type, status: wanted, lastTransitionTime: since }
  })
  const known = objectAt(pod, 'status')
  const podIP = textAt(pod, 'status.podIP') || `10.244.${randomInt(1, 6)}.${randomInt(2, 254)}`
  return {
    ...pod,
    metadata: { ...pod.metadata, managedFields: writtenByKubelet(at) },
    status: { ...known, phase, conditions, containerStatuses, podIP, startTime: textAt(known, 'startTime') || at },
  }
}

/** metav1.Time. */
function seconds(): string {
  return new Date().toISOString().replace(/\.\d+/, '')
}
