// A model of the cluster-autoscaler's loop in simulated time: the registry is src/scale-up-guard/core/cluster-state.ts, the cloud is two node groups, of
// which the first never delivers. It leaves out what does not matter here: pods are as large as nodes, and nothing is scaled down.

import type { NodeState } from '../../src/incidents/core/readiness.ts'
import { type GroupBackoff, raiseRefusal } from '../../src/scale-up-guard/core/guard/check-raise.ts'
import type { MachineState } from '../../src/scale-up-guard/core/guard/machine-failure.ts'
import { ClusterState, type Instance, type NodeGroup } from './cluster-state.ts'
import { type AutoscalerRules, DEFAULTS } from './rules.ts'

/** `--scan-interval`. */
export const SCAN_MS = 10_000
/** From the order of a machine until it exists, and until its infrastructure says that there is none to be had. */
const MACHINE_MS = 2000
const FAILURE_MS = 25_000
/** A machine of a group that delivers becomes a ready node. */
const DELIVERY_MS = 60_000

/** `machines`: an instance is listed for each that was ordered (Cluster API's MachineDeployments); `pool`: for each that exists. */
export type Provider = 'machines' | 'pool'

interface Ordered {
  readonly name: string
  readonly atMs: number
}

export interface CloudGroupOptions {
  readonly provider: Provider
  readonly delivers: boolean
  readonly minSize: number
  readonly nodes: number
}

/** A node group of the cloud. */
export class CloudGroup {
  readonly id: string
  readonly delivers: boolean
  readonly provider: Provider
  readonly minSize: number
  target: number
  readonly nodes: string[]
  /** Nodes that were requested and have not registered. */
  ordered: Ordered[] = []
  #made = 0

  constructor(id: string, { provider, delivers, minSize, nodes }: CloudGroupOptions) {
    this.id = id
    this.provider = provider
    this.delivers = delivers
    this.minSize = minSize
    this.nodes = Array.from({ length: nodes }, (_, i) => `${id}-node-${i}`)
    this.target = nodes
  }

  raise(count: number, nowMs: number): void {
    this.target += count
    for (let i = 0; i < count; i++) this.ordered.push({ name: `${this.id}-${this.#made++}`, atMs: nowMs })
  }

  /** The newest orders go first. */
  lower(count: number): void {
    this.target -= count
    this.ordered.splice(Math.max(0, this.ordered.length - count))
  }

  deliver(nowMs: number): void {
    if (!this.delivers) return
    const ready = this.ordered.filter(({ atMs }) => nowMs - atMs >= DELIVERY_MS)
    this.ordered = this.ordered.filter((one) => !ready.includes(one))
    this.nodes.push(...ready.map(({ name }) => name))
  }

  asNodeGroup(): NodeGroup {
    const names = [...this.nodes, ...(this.provider === 'machines' ? this.ordered.map(({ name }) => name) : [])]
    const instances = names.map((providerID): Instance => ({ providerID, state: 'running', error: undefined }))
    return { id: this.id, minSize: this.minSize, maxSize: 100, target: this.target, instances }
  }

  asNodes(): NodeState[] {
    const rest = { createdMs: 0, deleted: false, suspended: false, ready: true }
    return this.nodes.map((name) => ({ name, providerID: name, group: this.id, ...rest }))
  }

  asMachines(nowMs: number): MachineState[] {
    const rest = { deleting: false, marked: false, controlPlane: false, notReady: undefined }
    const nodes = this.nodes.map((name) => {
      return { name, uid: name, createdMs: 0, hasProviderID: true, hasNode: true, ...rest }
    })
    const waiting = this.ordered.filter(({ atMs }) => nowMs - atMs >= MACHINE_MS)
    return [
      ...nodes,
      ...waiting.map(({ name, atMs }) => {
        const failed = !this.delivers && nowMs - atMs >= FAILURE_MS
        const notReady = failed ? { ...NO_CAPACITY, sinceMs: atMs + FAILURE_MS } : undefined
        return { name, uid: name, createdMs: atMs, ...rest, hasProviderID: false, hasNode: false, notReady }
      }),
    ]
  }
}

const NO_CAPACITY = { reason: 'InsufficientInstanceCapacity', message: 'no capacity of this kind in this zone' }

export interface World {
  /** In the order of the priority expander. */
  readonly groups: readonly CloudGroup[]
  /** Pods that have no node yet, of those that came so far. */
  pending: number
  readonly guard: { readonly backoff: (group: string) => GroupBackoff | undefined } | undefined
}

/** The autoscaler. It was started, and knows nothing of orders before. */
export class Autoscaler {
  readonly #state: ClusterState
  readonly #world: World

  constructor(world: World, rules: AutoscalerRules) {
    this.#world = world
    this.#state = new ClusterState({ ...DEFAULTS, rules })
  }

  /** One loop (RunOnce). @returns the group that was scaled up, if any */
  runOnce(nowMs: number): string | undefined {
    const { groups } = this.#world
    const state = this.#state
    const nodes = groups.flatMap((group) => group.asNodes())
    const { lowerTargets } = state.update(
      groups.map((group) => group.asNodeGroup()),
      nodes,
      nowMs,
    )
    for (const group of groups) group.lower(-(lowerTargets.get(group.id) ?? 0))
    for (const group of groups) {
      const old = state.instancesToDelete(nowMs, false).get(group.id)?.length ?? 0
      // Beside what a timeout has just taken.
      group.lower(Math.min(old, group.ordered.length))
    }
    if (!state.healthy) return undefined
    const corrections = state.sizeCorrections(nowMs)
    for (const group of groups) group.lower(-(corrections.get(group.id) ?? 0))
    if (corrections.size > 0) return undefined
    const upcoming = groups.reduce((sum, { id }) => sum + state.upcoming(id, nowMs), 0)
    const unschedulable = this.#world.pending - upcoming
    return unschedulable > 0 ? this.#scaleUp(unschedulable, nowMs) : undefined
  }

  #scaleUp(count: number, nowMs: number): string | undefined {
    const group = this.#world.groups.find(({ id }) => this.#state.isSafeToScaleUp(id, nowMs))
    if (group === undefined) return undefined
    const backoff = this.#world.guard?.backoff(group.id)
    const refusal = raiseRefusal(backoff, group.target, group.target + count, nowMs)
    if (refusal !== '') {
      this.#state.registerFailedScaleUp(group.id, { code: 'cloudProviderError', message: refusal }, nowMs)
      return undefined
    }
    group.raise(count, nowMs)
    this.#state.registerScaleUp(group.id, count, nowMs)
    return group.id
  }
}
