// What makes a demo cluster move: workloads are followed, pods start and end, and a node whose lease is not renewed is NotReady
// after a while (that is what the degrade switch is about).

import { NAMESPACES } from '../../api/kinds/scheme.ts'
import { metaText } from '../../apiserver/objects/object-metadata.ts'
import { NODES, SERVICE_ACCOUNTS } from '../kinds/core-kinds.ts'
import { isEnding, PODS } from '../kinds/pod-kind.ts'
import { DEPLOYMENTS, REPLICA_SETS } from '../kinds/workload-kinds.ts'
import { stepPod, watchNode } from './kubelets.ts'
import type { ClusterObjects } from './objects.ts'
import { collectOrphans, stepDeployment, stepReplicaSet } from './workloads.ts'

const STEP_MS = 500

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
