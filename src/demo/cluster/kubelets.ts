// In place of the kubelets and the controller of nodes: a pod is Pending, then being created, then Running; what is deleted
// takes its time to end; and a node whose lease is not renewed is NotReady.

import { randomInt } from 'node:crypto'
import { metaText } from '../../apiserver/objects/object-metadata.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { NODES } from '../kinds/core-kinds.ts'
import { listAt, numberAt, objectAt, textAt, valueAt } from '../kinds/json.ts'
import { isEnding, isPodReady, PODS } from '../kinds/pod-kind.ts'
import type { ClusterObjects } from './objects.ts'
import { nodeOf, schedule } from './scheduler.ts'

/** How long the containers of the demo take to stop. */
const STOP_MS = 2_000
/** As kube-controller-manager's --node-monitor-grace-period, shortened: who looks at a demo does not wait. */
const NODE_GRACE_MS = 20_000
/** Where kubelets write their leases. */
export const LEASE_NAMESPACE = 'kube-node-lease'

/** One step further in the life of a pod. @param atOnce whether its containers are made in no time */
export function stepPod(objects: ClusterObjects, given: JsonObject, atOnce: boolean): void {
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
export function watchNode(objects: ClusterObjects, node: JsonObject): void {
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
  objects.update(NODES, { ...node, status }, 'kube-controller-manager', 'status')
}

/** Its containers have had the time to stop. */
function endIfOver(objects: ClusterObjects, pod: JsonObject): void {
  const graceMs = numberAt(pod, 'metadata.deletionGracePeriodSeconds') * 1000
  const beganMs = Date.parse(metaText(pod, 'deletionTimestamp')) - graceMs
  if (objects.now() >= beganMs + Math.min(graceMs, STOP_MS)) objects.remove(PODS, pod, 0)
}

/** @param state of all containers */
function writeState(objects: ClusterObjects, pod: JsonObject, phase: string, state: JsonObject): void {
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
  objects.update(PODS, { ...pod, status }, 'kubelet', 'status')
}
