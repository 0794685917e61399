// The heartbeats of kubelets, in their own rhythm: a lease that is renewed, and a look at the own Node, whose status is only written when
// it is called lost. kwok answers at once when a controller says that a node is NotReady; a kubelet does not, which is what
// makes an incident.

import { setTimeout as sleep } from 'node:timers/promises'
import type { TestCluster } from './cluster.ts'
import type { KubeRequest, KubeResponse } from './kube-request.ts'

export interface KubeletsOptions {
  readonly cluster: TestCluster
  /** Names of nodes to create. */
  readonly nodes: readonly string[]
  /** How they reach the cluster: default directly. */
  readonly through?: Partial<KubeRequest>
  /** Between two heartbeats of a node. Default 5 s; of a real kubelet 10 s. */
  readonly everyMs?: number
}

export interface Kubelets {
  /** Whether they send nothing from now on, as machines that are cut off. */
  silence(now: boolean): void
  stop(): Promise<void>
}

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
/** A status that has not changed is written all the same, if rarely; by a real kubelet every 5 min. */
const BEATS_PER_STATUS = 6
const MERGE = { 'content-type': 'application/merge-patch+json' }
const RESOURCES = { cpu: '64', memory: '256Gi', pods: '110' }

/** Creates the nodes, Ready, and sends their heartbeats from now on. Needs the namespace kube-node-lease. */
export async function startKubelets(options: KubeletsOptions): Promise<Kubelets> {
  const { cluster, nodes, through = {}, everyMs = 5_000 } = options
  const stopping = new AbortController()
  const { signal } = stopping
  let silent = false
  await Promise.all(nodes.map((name) => create(cluster, name)))
  const running = nodes.map(async (name, i) => {
    // Spread over the interval, as those of machines that were started by hand.
    let waitMs = (everyMs * (i + 1)) / nodes.length
    let beats = 0
    for (;;) {
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      if (!silent) await beat(cluster, name, through, ++beats % BEATS_PER_STATUS === 0).catch(() => undefined)
      waitMs = everyMs
    }
  })
  return {
    silence(now) {
      silent = now
    },
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

function leaseOf(name: string): object {
  const renewTime = new Date().toISOString().replace('Z', '000Z')
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime }
  const metadata = { name, namespace: 'kube-node-lease' }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
}

function ready(): object {
  const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const told = { reason: 'KubeletReady', message: 'kubelet is posting ready status' }
  return { type: 'Ready', status: 'True', lastHeartbeatTime: at, lastTransitionTime: at, ...told }
}

async function create(cluster: TestCluster, name: string): Promise<void> {
  const metadata = { name, labels: { 'kubernetes.io/hostname': name } }
  const status = { allocatable: RESOURCES, capacity: RESOURCES, conditions: [ready()] }
  const body = { apiVersion: 'v1', kind: 'Node', metadata, status }
  expect(await cluster.request('/api/v1/nodes', { method: 'POST', body }), 201)
  expect(await cluster.request(LEASES, { method: 'POST', body: leaseOf(name) }), 201)
}

async function beat(
  cluster: TestCluster,
  name: string,
  through: Partial<KubeRequest>,
  reports: boolean,
): Promise<void> {
  await cluster.request(`${LEASES}/${name}`, { ...through, method: 'PATCH', headers: MERGE, body: leaseOf(name) })
  const node = await cluster.request(`/api/v1/nodes/${name}`, through)
  if (node.status !== 200) return
  const conditions: { type: string; status: string }[] = node.json().status.conditions ?? []
  if (!reports && conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return
  const body = { status: { conditions: [...conditions.filter(({ type }) => type !== 'Ready'), ready()] } }
  await cluster.request(`/api/v1/nodes/${name}/status`, { ...through, method: 'PATCH', headers: MERGE, body })
}

function expect({ status, text }: KubeResponse, wanted: number): void {
  if (status !== wanted) throw new Error(`${status} ${text}`)
}
