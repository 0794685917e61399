// What is measured: real clusters with pods, as members of one UpstreamCluster, and a gateway that has them in its cache.

import { setTimeout as sleep } from 'node:timers/promises'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { startCluster, type TestCluster } from '../../test/harness/clusters/cluster.ts'
import { hostOf } from '../../test/harness/clusters/upstream-cluster.ts'
import { federatedClusters, federatedUsersCA, prepareMember } from '../../test/harness/federation/federated-clusters.ts'
import { startGateway, type TestGateway } from '../../test/harness/gateways/gateway.ts'
import { BenchPods } from '../cache/pods.ts'

/** Where a client connects. */
export interface Target {
  readonly name: string
  readonly port: number
  readonly host: string
}

export interface Member {
  readonly name: string
  readonly cluster: TestCluster
  readonly pods: BenchPods
  readonly direct: Target
  readonly throughGateway: Target
}

/** That a member has beside those that were asked for. */
export const PREPARED_PODS = 2
const USER = 'alice'

interface FederatedWorldOptions {
  readonly members: readonly string[]
  /** In each member. */
  readonly pods: number
  readonly podBytes: number
  /** Gateway threads. */
  readonly threads: number
}

export class FederatedWorld {
  readonly members: readonly Member[]
  readonly gateway: TestGateway
  #passed = 0

  constructor(members: readonly Member[], gateway: TestGateway) {
    this.members = members
    this.gateway = gateway
  }

  get federated(): Target {
    return { name: 'all', port: this.gateway.port, host: hostOf('all') }
  }

  get apiserverPids(): readonly number[] {
    return this.members.map(({ cluster }) => apiserverOf(cluster).pid)
  }

  /** Adds pods to each member until there are so many, and the gateway has them. */
  async grow(pods: number): Promise<void> {
    for (const member of this.members) await member.pods.grow(pods)
    for (const { name } of this.members) {
      const series = `portcullis_cache_objects{cluster="${name}",resource="pods"} ${pods + PREPARED_PODS}`
      while (!(await this.gateway.metrics()).split('\n').includes(series)) await sleep(100)
    }
  }

  /** Something else than a pod is written in each member. */
  async pass(): Promise<void> {
    const body = { metadata: { labels: { passed: String(++this.#passed) } } }
    const headers = { 'content-type': 'application/merge-patch+json' }
    const path = '/api/v1/namespaces/default'
    await Promise.all(this.members.map(({ cluster }) => cluster.request(path, { method: 'PATCH', body, headers })))
  }

  async stop(): Promise<void> {
    await this.gateway.stop()
    await stopMembers(this.members)
  }
}

export async function createFederatedWorld(options: FederatedWorldOptions): Promise<FederatedWorld> {
  const clusters = await Promise.all(options.members.map((name) => startCluster({ name, clientCA: federatedUsersCA })))
  const gatewayPort = (): number => gateway?.port ?? 0
  const members = clusters.map((cluster) => memberOf(cluster, options.podBytes, gatewayPort))
  let gateway: TestGateway | undefined
  try {
    for (const { cluster, pods } of members) {
      await prepareMember(cluster, [USER])
      await pods.createNamespace()
    }
    gateway = await startGateway({
      clusters: federatedClusters(clusters).map(forBench),
      args: [`--threads=${options.threads}`, '--max-connections-per-address=0', '--max-followed-bytes=4Gi'],
    })
    const world = new FederatedWorld(members, gateway)
    await world.grow(options.pods)
    return world
  } catch (error) {
    await gateway?.stop()
    await stopMembers(members)
    throw error
  }
}

function memberOf(cluster: TestCluster, podBytes: number, gatewayPort: () => number): Member {
  const { name } = cluster
  return {
    name,
    cluster,
    pods: new BenchPods(cluster, podBytes),
    direct: { name: `${name}, direct`, port: apiserverOf(cluster).port, host: 'localhost' },
    get throughGateway() {
      return { name: `${name}, through its cache`, port: gatewayPort(), host: hostOf(name) }
    },
  }
}

/** As users have it: the tests of federated reads look at the health of members more often. */
function forBench({ spec, ...object }: UpstreamCluster): UpstreamCluster {
  const { healthCheck: _, ...rest } = spec
  const cache = spec.cache?.map((entry) => ({ ...entry, maxBytes: '1Gi' }))
  return { ...object, spec: { ...rest, ...(cache === undefined ? {} : { cache }), logging: { mode: 'off' } } }
}

function apiserverOf({ apiservers, name }: TestCluster): TestCluster['apiservers'][number] {
  const [first] = apiservers
  if (first === undefined) throw new Error(`${name} has no kube-apiserver`)
  return first
}

async function stopMembers(members: readonly Member[]): Promise<void> {
  for (const { pods } of members) await pods.close()
  await Promise.all(members.map(({ cluster }) => cluster.stop()))
}
