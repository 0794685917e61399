// DEMO ONLY. What makes a demo cluster move: pods start, now and then one restarts, deployments are followed, and a node
// whose lease nobody renews is NotReady after a while (that is what the degrade switch is about).

import { randomInt } from 'node:crypto'
import type { ClusterState } from './call.ts'
import { sweepEndedPods } from './deletion.ts'
import { assignNode, collectOrphans, stepDeployment } from './deployments.ts'
import { type DemoObject, isJson, listAt, objectAt, textAt, valueAt } from './json.ts'
import { crashed, isEnding, isPodReady, nextPod, settledPod } from './pods.ts'
import { KINDS, RESOURCES } from './resources.ts'

const STEP_MS = 500
/** A container dies every so many steps, of a deployment that is known for it. */
const STEPS_PER_CRASH = 30
const UNSTABLE = 'checkout'
/** What exists at the start has done so for this long. */
const AGE_MS = 3_600_000
/** As kube-controller-manager's --node-monitor-grace-period, shortened: who looks at a demo does not wait. */
const NODE_GRACE_MS = 20_000

/** Brings the cluster to rest at once, then keeps it moving. Returns the function that stops it. */
export function startLife(state: ClusterState): () => void {
  settle(state)
  const timer = setInterval(() => step(state), STEP_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Everything running, nothing pending, and for a while already. */
function settle(state: ClusterState): void {
  for (const deployment of state.store.list(KINDS.deployments)) stepDeployment(state, deployment, true)
  for (let round = 0; round < 2; round++) stepPods(state)
  for (const deployment of state.store.list(KINDS.deployments)) stepDeployment(state, deployment, true)
  const since = new Date(Date.now() - AGE_MS).toISOString().replace(/\.\d+/, '')
  for (const of of RESOURCES) {
    for (const object of state.store.list(of)) {
      const aged = { ...object, metadata: { ...object.metadata, creationTimestamp: since } }
      state.store.put(of, of === KINDS.pods ? settledPod(aged, since) : aged)
    }
  }
}

function step(state: ClusterState): void {
  sweepEndedPods(state, Date.now())
  stepPods(state)
  collectOrphans(state)
  for (const deployment of state.store.list(KINDS.deployments)) stepDeployment(state, deployment, false)
  for (const node of state.store.list(KINDS.nodes)) judgeNode(state, node)
  if (randomInt(STEPS_PER_CRASH) === 0) crashOne(state)
}

function stepPods(state: ClusterState): void {
  for (const pod of state.store.list(KINDS.pods)) {
    const placed = textAt(pod, 'spec.nodeName') === '' ? assignNode(state, pod) : pod
    const next = nextPod(placed)
    if (next !== placed) state.store.put(KINDS.pods, next)
  }
}

function crashOne(state: ClusterState): void {
  const pods = state.store.list(KINDS.pods, 'shop')
  const running = pods.filter((pod) => pod.metadata.labels?.['app'] === UNSTABLE && isPodReady(pod) && !isEnding(pod))
  const pod = running[randomInt(Math.max(1, running.length))]
  if (pod !== undefined) state.store.put(KINDS.pods, crashed(pod))
}

function judgeNode(state: ClusterState, node: DemoObject): void {
  const lease = state.store.get(KINDS.leases, 'kube-node-lease', node.metadata.name)
  const renewedAtMs = Date.parse(textAt(lease, 'spec.renewTime'))
  const alive = Date.now() - renewedAtMs < NODE_GRACE_MS
  const conditions = listAt(node, 'status.conditions')
  const ready = conditions.find((condition) => valueAt(condition, 'type') === 'Ready')
  if ((valueAt(ready, 'status') === 'True') === alive || !isJson(ready)) return
  const changed = {
    ...ready,
    status: alive ? 'True' : 'Unknown',
    reason: alive ? 'KubeletReady' : 'NodeStatusUnknown',
    message: alive ? 'kubelet is posting ready status' : 'Kubelet stopped posting node status.',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
  }
  const others = conditions.filter((condition) => condition !== ready)
  state.store.put(KINDS.nodes, { ...node, status: { ...objectAt(node, 'status'), conditions: [...others, changed] } })
}
