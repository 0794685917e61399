// DEMO ONLY. In place of the deployment controller and the scheduler: brings the pods of a deployment to what it asks for,
// one step at a time, so that there is something to watch.

import { createHash } from 'node:crypto'
import type { ClusterState } from './call.ts'
import { endPod } from './deletion.ts'
import { type DemoObject, isJson, type Json, listAt, numberAt, objectAt, textAt, valueAt } from './json.ts'
import { newObject, randomSuffix } from './objects.ts'
import { isEnding, isPodReady } from './pods.ts'
import { KINDS } from './resources.ts'

/** One step for one deployment. `all`: as many as are missing at once. */
export function stepDeployment(state: ClusterState, deployment: DemoObject, all: boolean): void {
  const replicas = numberAt(deployment, 'spec.replicas', 1)
  const hash = templateHash(deployment)
  const pods = podsOf(state, deployment).filter((pod) => !isEnding(pod))
  const current = pods.filter((pod) => pod.metadata.labels?.[HASH_LABEL] === hash)
  const old = pods.filter((pod) => !current.includes(pod))
  const missing = replicas - current.length
  for (let i = 0; i < (all ? missing : Math.min(missing, PODS_PER_STEP)); i++) addPod(state, deployment, hash)
  // A new pod that is ready takes the place of an old one.
  const spare = current.filter(isPodReady).length + old.length - replicas
  const surplus = [...old.slice(0, Math.max(0, spare)), ...current.slice(replicas)]
  for (const pod of surplus.slice(0, PODS_PER_STEP)) endPod(state, pod)
  writeStatus(state, deployment, hash)
}

/** Pods whose deployment is gone go, too. */
export function collectOrphans(state: ClusterState): void {
  const owners = new Set(state.store.list(KINDS.deployments).map(({ metadata }) => metadata.uid))
  for (const pod of state.store.list(KINDS.pods)) {
    const owner = ownerUid(pod)
    if (owner !== '' && !owners.has(owner)) endPod(state, pod)
  }
}

const HASH_LABEL = 'pod-template-hash'
const PODS_PER_STEP = 3

function podsOf(state: ClusterState, { metadata }: DemoObject): DemoObject[] {
  return state.store.list(KINDS.pods, metadata.namespace).filter((pod) => ownerUid(pod) === metadata.uid)
}

function ownerUid(pod: DemoObject): string {
  return textAt(listAt(pod, 'metadata.ownerReferences')[0], 'uid')
}

function templateHash(deployment: DemoObject): string {
  const template = JSON.stringify(valueAt(deployment, 'spec.template') ?? {})
  return createHash('sha256').update(template).digest('hex').slice(0, 10)
}

function addPod(state: ClusterState, deployment: DemoObject, hash: string): void {
  const { name, uid, namespace = '' } = deployment.metadata
  const labels = { ...objectAt(deployment, 'spec.template.metadata.labels'), [HASH_LABEL]: hash }
  const annotations = objectAt(deployment, 'spec.template.metadata.annotations')
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true }]
  const pod = newObject(KINDS.pods, namespace, {
    metadata: { name: `${name}-${hash.slice(0, 7)}-${randomSuffix()}`, labels, annotations, ownerReferences },
    spec: objectAt(deployment, 'spec.template.spec'),
  })
  state.store.put(KINDS.pods, pod)
}

/** The node of a pod that has none yet: pods of one deployment are spread. */
export function assignNode(state: ClusterState, pod: DemoObject): DemoObject {
  const nodes = state.store.list(KINDS.nodes).filter((node) => valueAt(node, 'spec.unschedulable') !== true)
  const pods = state.store.list(KINDS.pods)
  const load = ({ metadata: { name } }: DemoObject): number => {
    const there = pods.filter((one) => nodeOf(one) === name)
    return there.length + pods.length * there.filter((one) => ownerUid(one) === ownerUid(pod)).length
  }
  const [node] = nodes.sort((a, b) => load(a) - load(b))
  if (node === undefined) return pod
  return state.store.put(KINDS.pods, { ...pod, spec: { ...objectAt(pod, 'spec'), nodeName: node.metadata.name } })
}

function nodeOf(pod: DemoObject): string {
  return textAt(pod, 'spec.nodeName')
}

function writeStatus(state: ClusterState, deployment: DemoObject, hash: string): void {
  const pods = podsOf(state, deployment).filter((pod) => !isEnding(pod))
  const ready = pods.filter(isPodReady).length
  const updated = pods.filter((pod) => pod.metadata.labels?.[HASH_LABEL] === hash).length
  const replicas = numberAt(deployment, 'spec.replicas', 1)
  const conditions: Json[] = [
    { type: 'Available', status: ready >= replicas ? 'True' : 'False', reason: 'MinimumReplicasAvailable' },
    {
      type: 'Progressing',
      status: 'True',
      reason: updated === replicas ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated',
    },
  ]
  const status = {
    observedGeneration: deployment.metadata.generation ?? 1,
    replicas: pods.length,
    updatedReplicas: updated,
    readyReplicas: ready,
    availableReplicas: ready,
    unavailableReplicas: Math.max(0, replicas - ready),
    conditions,
  }
  const before = deployment['status']
  if (isJson(before) && JSON.stringify(before) === JSON.stringify(status)) return
  state.store.put(KINDS.deployments, { ...deployment, status })
}
