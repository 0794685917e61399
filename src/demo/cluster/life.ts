// What makes a demo cluster move: workloads are followed, pods start and end, now and then one restarts, and a node whose
// lease nobody renews is NotReady after a while (that is what the degrade switch is about).

import { randomInt } from 'node:crypto'
import { NAMESPACES } from '../../api/kinds/scheme.ts'
import { metaText } from '../../apiserver/objects/object-metadata.ts'
import { NODES, SERVICE_ACCOUNTS } from '../kinds/core-kinds.ts'
import { objectAt, textAt } from '../kinds/json.ts'
import { isEnding, isPodReady, PODS } from '../kinds/pod-kind.ts'
import { DEPLOYMENTS, REPLICA_SETS } from '../kinds/workload-kinds.ts'
import { crash, stepPod, watchNode } from './kubelets.ts'
import type { ClusterObjects } from './objects.ts'
import { collectOrphans, stepDeployment, stepReplicaSet } from './workloads.ts'

const STEP_MS = 500
/** A container dies every so many steps, of a deployment that is known for it. */
const STEPS_PER_CRASH = 30
const UNSTABLE = 'checkout'

/** Everything running, nothing pending, in as few writes as that takes: the demo is to start fast. */
export function settle(objects: ClusterObjects): void {
  addServiceAccounts(objects)
  for (const one of objects.list(DEPLOYMENTS)) stepDeployment(objects, one)
  for (const one of objects.list(REPLICA_SETS)) stepReplicaSet(objects, one, true)
  for (const one of objects.list(PODS)) stepPod(objects, one, true)
  for (const one of objects.list(REPLICA_SETS)) stepReplicaSet(objects, one, true)
  for (const one of objects.list(DEPLOYMENTS)) stepDeployment(objects, one)
}

/** Returns the function that stops it. */
export function startLife(objects: ClusterObjects): () => void {
  const timer = setInterval(() => {
    step(objects)
    for (const node of objects.list(NODES)) watchNode(objects, node)
    if (randomInt(STEPS_PER_CRASH) === 0) crashOne(objects)
  }, STEP_MS)
  timer.unref()
  return () => clearInterval(timer)
}

function step(objects: ClusterObjects): void {
  addServiceAccounts(objects)
  collectOrphans(objects)
  for (const one of objects.list(DEPLOYMENTS)) objects.attempt(() => stepDeployment(objects, one))
  for (const one of objects.list(REPLICA_SETS)) objects.attempt(() => stepReplicaSet(objects, one, false))
  for (const one of objects.list(PODS)) objects.attempt(() => stepPod(objects, one, false))
}

/** Every namespace has its `default` service account: without it no pod starts. */
function addServiceAccounts(objects: ClusterObjects): void {
  for (const namespace of objects.list(NAMESPACES)) {
    const name = metaText(namespace, 'name')
    if (isEnding(namespace) || objects.get(SERVICE_ACCOUNTS, name, 'default') !== undefined) continue
    const account = { metadata: { name: 'default', namespace: name } }
    objects.create(SERVICE_ACCOUNTS, account, 'kube-controller-manager')
  }
}

function crashOne(objects: ClusterObjects): void {
  const running = objects.list(PODS, 'shop').filter((pod) => {
    return textAt(objectAt(pod, 'metadata.labels'), 'app') === UNSTABLE && isPodReady(pod) && !isEnding(pod)
  })
  const pod = running[randomInt(Math.max(1, running.length))]
  if (pod !== undefined) crash(objects, pod)
}
