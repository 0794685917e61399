// DEMO ONLY. What makes a demo cluster move: pods start, now and then one restarts, deployments are followed, and a node
// whose lease nobody renews is NotReady after a while (that is what the degrade switch is about).

import { randomInt } from 'node:crypto'
import type { ClusterState } from './call.ts'
import { assignNode, collectOrphans, stepDeployment } from './deployments.ts'
import { type DemoObject, isJson, listAt, objectAt, textAt, valueAt } from './json.ts'
import { crashed, isPodReady, nextPod } from './pods.ts'
import { KINDS } from './resources.ts'

const STEP_MS = 500
/** A container dies every so many steps. */
const STEPS_PER_CRASH = 30
/** As kube-controller-manager's --node-monitor-grace-period, shortened: who looks at a demo does not wait. */
const NODE_GRACE_MS = 20_000

/** Brings the cluster to rest at once, then keeps it moving. Returns the function that stops it. */
export function startLife(state: ClusterState): () => void {
  settle(state)
  const timer = setInterval(() => step(state), STEP_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Everything running, nothing pending. */
function settle(state: ClusterState): void {
  for (const deployment of state.store.list(KINDS.deployments)) stepDeployment(state, deployment, true)
  for (let round = 0; round < 2; round++) stepPods(state)
  for (const deployment of state.store.list(KINDS.deployments)) stepDeployment(state, deployment, true)
}

function step(state: ClusterState): void {
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
  const running = state.store.list(KINDS.pods, 'shop').filter(isPodReady)
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
