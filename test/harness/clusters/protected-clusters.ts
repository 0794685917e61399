// A service over several real clusters, whose pods are protected: a core cluster that holds the objects, workers behind the
// gateway, and replicas of the gateway, real processes.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../gateways/gateway.ts'
import { gatewayCA } from '../pki.ts'
import { waitFor } from '../wait.ts'
import { startCluster, type TestCluster } from './cluster.ts'
import type { KubeResponse } from './kube-request.ts'
import { coreUser, grant } from './protection-rights.ts'
import { kubeconfigThrough, upstreamClusterFor } from './upstream-cluster.ts'

export interface ProtectedOptions {
  /** Default 2. */
  readonly workers?: number
  /** Replicas of the gateway. Default 1. */
  readonly replicas?: number
  /** Deployments, ReplicaSets, garbage collection in the workers: through the gateway, direct, or none. Default none. */
  readonly controllers?: 'gateway' | 'direct'
  /** The same in the core cluster. Default false. */
  readonly coreControllers?: boolean
  /** Scheduler and simulated kubelets in the workers, with so many nodes. Default 0: neither. */
  readonly nodes?: number
  /** Flags of the gateway. `WEBHOOK` is replaced by a free port. */
  readonly flags?: readonly string[]
  /** Every worker's spec.podProtection. */
  readonly podProtection?: object
  /** kube-apiserver and gateway see core through this port instead. */
  readonly coreServer?: string
  /** The content of --protection-generator-config. */
  readonly generator?: string
  /** The gateway may do in the core cluster what deploy/rbac says, and nothing more. Default: it is its administrator. */
  readonly leastRights?: boolean
}

export const CORE_PPR_PATH = '/apis/podseidon.kubewharf.io/v1alpha1'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

export class ProtectedClusters {
  readonly core: TestCluster
  readonly workers: readonly TestCluster[]
  readonly gateways: TestGateway[]
  /** The flags of every replica. */
  readonly flags: string[] = []
  readonly #dir: string
  #begun = 0

  constructor(core: TestCluster, workers: readonly TestCluster[], gateways: TestGateway[], dir: string) {
    this.core = core
    this.workers = workers
    this.gateways = gateways
    this.#dir = dir
  }

  /** One more, the last of `gateways`. */
  async addReplica(): Promise<void> {
    const gateway = await startGateway({
      clusters: [],
      source: [
        '--source=kubernetes',
        '--control-listen=127.0.0.1:CONTROL',
        `--replica-name=r${++this.#begun}`,
        ...this.flags,
      ],
    })
    this.gateways.push(gateway)
  }

  /** Once every replica that runs leads to the worker. */
  async reachable(index: number): Promise<void> {
    for (const [replica, gateway] of this.gateways.entries()) {
      if (!gateway.running) continue
      await waitFor(`${this.worker(index).name} behind replica ${replica}`, async () => {
        return (await this.through(index, '/api/v1/namespaces/default', {}, replica)).status === 200
      })
    }
  }

  worker(index: number): TestCluster {
    const worker = this.workers[index]
    if (worker === undefined) throw new Error(`there is no worker ${index}`)
    return worker
  }

  get gateway(): TestGateway {
    const [gateway] = this.gateways
    if (gateway === undefined) throw new Error('there is no gateway')
    return gateway
  }

  /** One request to a worker through the gateway, as its administrator unless told otherwise. */
  through(
    index: number,
    path: string,
    options: Partial<Parameters<TestCluster['request']>[1]> = {},
    replica = 0,
  ): Promise<KubeResponse> {
    const worker = this.worker(index)
    const server = `https://127.0.0.1:${this.gateways[replica]?.port}/clusters/${worker.name}`
    return worker.request(path, { server, ca: gatewayCA().certPem, ...options })
  }

  /** DELETE of a pod, through the gateway. */
  deletePod(index: number, namespace: string, name: string, body?: object, replica = 0): Promise<KubeResponse> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    return this.through(index, path, { method: 'DELETE', ...(body !== undefined && { body }) }, replica)
  }

  /** POST of an Eviction (policy/v1), through the gateway. */
  evictPod(index: number, namespace: string, name: string, fields: object = {}, replica = 0): Promise<KubeResponse> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, ...fields }
    return this.through(index, path, { method: 'POST', body }, replica)
  }

  async protector(namespace: string, name: string): Promise<Json> {
    const path = `${CORE_PPR_PATH}/namespaces/${namespace}/podprotectors/${name}`
    const answer = await this.core.request(path)
    return answer.status === 200 ? answer.json() : undefined
  }

  /** Once the summary of the PodProtector is [total, aggregated available, estimated available]. */
  async untilSummary(namespace: string, name: string, expected: readonly [number, number, number]): Promise<Json> {
    let last = ''
    return waitFor(`PodProtector ${namespace}/${name} at ${expected}`, async () => {
      const { status } = (await this.protector(namespace, name)) ?? {}
      const { totalReplicas, aggregatedAvailableReplicas, estimatedAvailableReplicas } = status?.summary ?? {}
      last = `${totalReplicas},${aggregatedAvailableReplicas},${estimatedAvailableReplicas}`
      if (last !== expected.join(',')) throw new Error(`it is ${JSON.stringify(status)}`)
      return status
    })
  }

  async createNamespace(name: string): Promise<void> {
    for (const cluster of [this.core, ...this.workers]) {
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
      const { status, text } = await cluster.request('/api/v1/namespaces', { method: 'POST', body })
      if (status !== 201 && status !== 409) throw new Error(`creating namespace ${name}: ${text}`)
      // Where no controller manager makes it. Without it no pod can be created.
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
      await cluster.request(`/api/v1/namespaces/${name}/serviceaccounts`, { method: 'POST', body: account })
    }
  }

  async createProtector(namespace: string, name: string, spec: object, metadata: object = {}): Promise<void> {
    const body = {
      apiVersion: 'podseidon.kubewharf.io/v1alpha1',
      kind: 'PodProtector',
      metadata: { name, namespace, ...metadata },
      spec,
    }
    const path = `${CORE_PPR_PATH}/namespaces/${namespace}/podprotectors`
    const { status, text } = await this.core.request(path, { method: 'POST', body })
    if (status !== 201) throw new Error(`creating PodProtector ${name}: ${text}`)
  }

  async stop(): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway.stop()))
    await Promise.all([this.core, ...this.workers].map((cluster) => cluster.stop()))
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

export async function startProtectedClusters(options: ProtectedOptions = {}): Promise<ProtectedClusters> {
  const names = Array.from({ length: options.workers ?? 2 }, (_, i) => `worker-${i + 1}`)
  const nodes = options.nodes ?? 0
  const live = nodes > 0 ? { scheduler: true, kwok: true } : {}
  const started = await Promise.allSettled([
    startCluster({ name: 'core', controllerManager: options.coreControllers ?? false }),
    ...names.map((name) => startCluster({ name, ...live, controllerManager: options.controllers === 'direct' })),
  ])
  const clusters = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-protected-'))
  const failed = started.find((result) => result.status === 'rejected')
  const [core, ...workers] = clusters
  const world = core === undefined ? undefined : new ProtectedClusters(core, workers, [], dir)
  try {
    if (failed !== undefined || world === undefined) throw failed?.reason
    await begin(world, options, dir)
    for (const worker of workers) if (nodes > 0) await worker.createNodes(nodes)
    return world
  } catch (error) {
    if (world === undefined) await Promise.all(clusters.map((cluster) => cluster.stop()))
    else await world.stop()
    throw error
  }
}

async function begin(world: ProtectedClusters, options: ProtectedOptions, dir: string): Promise<void> {
  const { core, workers } = world
  const user = options.leastRights === true ? await coreUser(core, options.generator !== undefined) : core.admin
  const kubeconfig = core.kubeconfigFor(user, options.coreServer)
  world.flags.push(`--kubeconfig=${kubeconfig}`, ...(options.flags ?? []))
  if (options.generator !== undefined) {
    const file = join(dir, 'generator.yaml')
    writeFileSync(file, options.generator)
    world.flags.push(`--protection-generator-config=${file}`)
  }
  for (let i = 0; i < (options.replicas ?? 1); i++) await world.addReplica()
  for (const worker of workers) await grant(worker, 'protection-worker.yaml')
  const protection = { podProtection: { ...options.podProtection } } as Partial<UpstreamClusterSpec>
  for (const worker of workers) {
    await core.apply(JSON.stringify(upstreamClusterFor(worker, { spec: protection })))
  }
  for (const [index, worker] of workers.entries()) {
    await world.reachable(index)
    if (options.controllers !== 'gateway') continue
    const user = worker.componentUser('kube-controller-manager')
    const path = await kubeconfigThrough(world.gateway, worker, user, { path: true })
    await worker.startControllerManager({ kubeconfig: path })
  }
}

const CONDITIONS = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready']

export interface PodOptions {
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Conditions that are False. Default none: ready. */
  readonly without?: readonly string[]
  /** When it became ready. Default now. */
  readonly readyAt?: Date
}

/** A pod without scheduler or kubelet, on a node that does not exist: its status is set here. */
export async function createPod(
  cluster: TestCluster,
  namespace: string,
  name: string,
  options: PodOptions = {},
): Promise<void> {
  const { labels = {}, annotations = {} } = options
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels, annotations },
    spec: {
      nodeName: 'nowhere',
      schedulerName: 'nobody',
      automountServiceAccountToken: false,
      // Deleted at once: no kubelet would finish it.
      terminationGracePeriodSeconds: 0,
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'main', image: 'none' }],
    },
  }
  const created = await cluster.request(`/api/v1/namespaces/${namespace}/pods`, { method: 'POST', body: pod })
  if (created.status !== 201) throw new Error(`creating pod ${name}: ${created.text}`)
  await setPodStatus(cluster, namespace, name, options)
}

export async function setPodStatus(
  cluster: TestCluster,
  namespace: string,
  name: string,
  options: PodOptions = {},
): Promise<void> {
  const lastTransitionTime = (options.readyAt ?? new Date()).toISOString().replace(/\.\d+Z$/, 'Z')
  const conditions = CONDITIONS.map((type) => {
    const status = options.without?.includes(type) === true ? 'False' : 'True'
    return { type, status, lastTransitionTime }
  })
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`
  const headers = { 'content-type': 'application/merge-patch+json' }
  const body = { status: { phase: 'Running', conditions } }
  const patched = await cluster.request(path, { method: 'PATCH', headers, body })
  if (patched.status !== 200) throw new Error(`status of pod ${name}: ${patched.text}`)
}

/** As an accident in etcd would: no API server, admission or controller sees the deletion but by its watch. */
export async function eraseFromEtcd(cluster: TestCluster, key: string): Promise<void> {
  const body = JSON.stringify({ key: Buffer.from(key).toString('base64') })
  const answer = await fetch(`${cluster.etcd.url}/v3/kv/deleterange`, { method: 'POST', body })
  const { deleted } = (await answer.json()) as { deleted?: string }
  if (deleted !== '1') throw new Error(`etcd deleted ${deleted ?? 'nothing'} of ${key}`)
}

/** An object as no API server has checked it. The API server of the object sees it come. */
export async function putIntoEtcd(cluster: TestCluster, key: string, object: object): Promise<void> {
  const [encodedKey, value] = [key, JSON.stringify(object)].map((text) => Buffer.from(text).toString('base64'))
  const body = JSON.stringify({ key: encodedKey, value })
  const answer = await fetch(`${cluster.etcd.url}/v3/kv/put`, { method: 'POST', body })
  if (!answer.ok) throw new Error(`etcd did not take ${key}: ${await answer.text()}`)
}
