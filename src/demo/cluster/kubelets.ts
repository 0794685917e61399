// Stands in for the kubelets and the node controller: a pod is Pending, then ContainerCreating, then Running; a deleted one
// takes time to end; and a node whose lease is not renewed becomes NotReady.

import { randomInt } from 'node:crypto'
import { metaText } from '../../apiserver/objects/object-metadata.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { DEMO_NODES } from '../kinds/core-kinds.ts'
import { listAt, numberAt, objectAt, textAt, valueAt } from '../kinds/json.ts'
import { DEMO_PODS, isEnding, isPodReady } from '../kinds/pod-kind.ts'
import type { DemoObjects } from './objects.ts'
import { nodeOf, schedule } from './scheduler.ts'

/** Time that the demo's containers take to stop. */
const STOP_MS = 2_000
/** Like kube-controller-manager's --node-monitor-grace-period, but shorter, so that the demo doesn't make its viewers wait. */
const NODE_GRACE_MS = 20_000
/** Namespace of the kubelets' leases. */
export const LEASE_NAMESPACE = 'kube-node-lease'

/** Advances the life of a pod by one step. @param atOnce whether its containers are created instantly */
export function stepPod(objects: DemoObjects, given: JsonObject, atOnce: boolean): void {
  const pod = isEnding(given) || nodeOf(given) !== '' ? given : schedule(objects, given)
  if (isEnding(pod)) endIfOver(objects, pod)
  else if (nodeOf(pod) === '') return
  else if (!atOnce && listAt(pod, 'status.containerStatuses').length === 0) {
    writeState(objects, pod, 'Pending', { waiting: { reason: 'ContainerCreating' } })
  } else if (!isPodReady(pod)) {
    writeState(objects, pod, 'Running', { running: { startedAt: metaTime(objects.now()) } })
  }
}

/** Ready as long as its lease is renewed. */
export function watchNode(objects: DemoObjects, node: JsonObject): void {
  const lease = objects.get(LEASES, LEASE_NAMESPACE, metaText(node, 'name'))
  const isAlive = objects.now() - Date.parse(textAt(lease, 'spec.renewTime')) < NODE_GRACE_MS
  const conditions = listAt(node, 'status.conditions')
  const ready = conditions.find((condition) => valueAt(condition, 'type') === 'Ready')
  if ((valueAt(ready, 'status') === 'True') === isAlive || !isRecord(ready)) return
  const changed = {
    ...ready,
    status: isAlive ? 'True' : 'Unknown',
    reason: isAlive ? 'KubeletReady' : 'NodeStatusUnknown',
    message: isAlive ? 'kubelet is posting ready status' : 'Kubelet stopped posting node status.',
    lastTransitionTime: metaTime(objects.now()),
  }
  const others = conditions.filter((condition) => condition !== ready)
  const status = { ...objectAt(node, 'status'), conditions: [...others, changed] }
  objects.update(DEMO_NODES, { ...node, status }, 'kube-controller-manager', 'status')
}

/** Removes the pod once its containers have had the time to stop. */
function endIfOver(objects: DemoObjects, pod: JsonObject): void {
  const graceMs = numberAt(pod, 'metadata.deletionGracePeriodSeconds') * 1000
  const beganMs = Date.parse(metaText(pod, 'deletionTimestamp')) - graceMs
  if (objects.now() >= beganMs + Math.min(graceMs, STOP_MS)) objects.remove(DEMO_PODS, pod, 0)
}

/** @param state of all containers */
function writeState(objects: DemoObjects, pod: JsonObject, phase: string, state: JsonObject): void {
  const ready = 'running' in state
  const at = metaTime(objects.now())
  const containerStatuses = listAt(pod, 'spec.containers').map((container) => ({
    name: textAt(container, 'name'),
    image: textAt(container, 'image'),
    imageID: '',
    ready,
    started: ready,
    restartCount: 0,
    state,
  }))
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => {
    const status = ready || type === 'Initialized' || type === 'PodScheduled' ? 'True' : 'False'
    const before = listAt(pod, 'status.conditions').find((one) => textAt(one, 'type') === type)
    const since = textAt(before, 'status') === status ? textAt(before, 'lastTransitionTime') : at
    return { type, status, lastTransitionTime: since }
  })
  const known = objectAt(pod, 'status')
  const podIP = textAt(known, 'podIP') || `10.244.${randomInt(1, 6)}.${randomInt(2, 254)}`
  const startTime = textAt(known, 'startTime') || at
  const status = { ...known, phase, conditions, containerStatuses, podIP, startTime }
  objects.update(DEMO_PODS, { ...pod, status }, 'kubelet', 'status')
}
