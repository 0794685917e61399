// What both sides of the measurement share: a real kube-apiserver with pods, users with tokens, and a gateway that has the pods in its cache.

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster, type TestCluster } from '../../test/harness/clusters/cluster.ts'
import { hostOf, upstreamClusterFor } from '../../test/harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../../test/harness/gateways/gateway.ts'
import { BenchPods } from './pods.ts'

export interface WorldOptions {
  readonly pods: number
  /** About the size of a pod as JSON. */
  readonly podBytes: number
  /** One for each connection of informers. */
  readonly users: number
  /** Gateway threads. */
  readonly threads: number
  /** For Node itself, e.g. `--cpu-prof`. */
  readonly nodeArgs: readonly string[]
  /** Another checkout, whose gateway is measured, too; '' = none. */
  readonly before: string
}

/** Where informers connect, and whose CPU it costs. */
export interface Side {
  readonly name: 'direct' | 'gateway' | 'before' | 'bare'
  readonly port: number
  readonly host: string
}

export const TOKEN_PREFIX = 'informer'
export const TOKEN_BYTES = 40
const READ_CACHE = join(import.meta.dirname, '../../deploy/rbac/read-cache.yaml')

export class World {
  readonly cluster: TestCluster
  readonly gateway: TestGateway
  /** That of another checkout. */
  readonly before: TestGateway | undefined
  readonly #pods: BenchPods

  constructor(
    cluster: TestCluster,
    { gateway, before }: { readonly gateway: TestGateway; readonly before: TestGateway | undefined },
    pods: BenchPods,
  ) {
    this.cluster = cluster
    this.gateway = gateway
    this.before = before
    this.#pods = pods
  }

  get direct(): Side {
    return { name: 'direct', port: this.cluster.apiservers[0]?.port ?? 0, host: 'localhost' }
  }

  get throughGateway(): Side {
    return { name: 'gateway', port: this.gateway.port, host: hostOf(this.cluster.name) }
  }

  get throughBefore(): Side | undefined {
    return this.before && { name: 'before', port: this.before.port, host: hostOf(this.cluster.name) }
  }

  /** The gateway that this side is of. */
  gatewayPid({ name }: Pick<Side, 'name'>): number {
    return (name === 'before' && this.before ? this.before : this.gateway).pid
  }

  get apiserverPid(): number {
    return this.cluster.apiservers[0]?.pid ?? 0
  }

  /** The list of all pods. */
  list(): Promise<Buffer> {
    return this.#pods.list()
  }

  /** Adds pods until there are so many, and the gateway has them. */
  async grow(pods: number): Promise<void> {
    await this.#pods.grow(pods)
    const series = `cache_objects{cluster="${this.cluster.name}",resource="pods"}`
    for (const gateway of [this.gateway, this.before])
      while (gateway !== undefined && (await this.metric(series, gateway)) !== this.#pods.count) await sleep(100)
  }

  /** Changes one pod. @param at its number @returns its new version */
  write(at = 0): Promise<string> {
    return this.#pods.write(at)
  }

  /** A sample of the gateway's metrics, without its prefix. */
  async metric(series: string, gateway = this.gateway): Promise<number> {
    const line = (await gateway.metrics()).split('\n').find((one) => one.startsWith(`portcullis_${series} `))
    return Number(line?.split(' ')[1] ?? Number.NaN)
  }

  async stop(): Promise<void> {
    await this.#pods.close()
    await this.gateway.stop()
    await this.before?.stop()
    await this.cluster.stop()
  }
}

export async function createWorld(options: WorldOptions): Promise<World> {
  const { pods, podBytes, users, threads, nodeArgs, before } = options
  const tokens = Array.from({ length: users }, (_, at) => ({
    token: `${TOKEN_PREFIX}.${String(at).padStart(6, '0')}.`.padEnd(TOKEN_BYTES, 'x'),
    user: `informer-${at}`,
    uid: `informer-${at}`,
    // Exempt from priority and fairness: the cluster would make them wait for each other.
    groups: ['system:masters'],
  }))
  const cluster = await startCluster({ tokens })
  const benchPods = new BenchPods(cluster, podBytes)
  try {
    await cluster.apply(readFileSync(READ_CACHE, 'utf8'))
    await benchPods.createNamespace()
    const cache = [{ version: 'v1', resource: 'pods', maxBytes: '4Gi' }]
    const both = {
      clusters: [upstreamClusterFor(cluster, { spec: { cache, logging: { mode: 'off' as const } } })],
      args: [`--threads=${threads}`, '--max-connections-per-address=0'],
    }
    const gateways = {
      gateway: await startGateway({ ...both, nodeArgs }),
      before:
        before === ''
          ? undefined
          : await startGateway({ ...both, program: [process.execPath, join(resolve(before), 'src/main.ts')] }),
    }
    const world = new World(cluster, gateways, benchPods)
    await world.grow(pods)
    return world
  } catch (error) {
    await benchPods.close()
    await cluster.stop()
    throw error
  }
}
