// What the cluster-autoscaler knows of a cluster and of its own orders, loop by loop: ClusterStateRegistry of
// cluster-autoscaler/clusterstate/clusterstate.go. Pure: the caller says what the cloud and the API server have, and does what is returned.

import {
  type ClusterReadiness,
  countNodes,
  hasTooManyUnready,
  type NodeState,
  type UnregisteredNode,
} from '../../src/incidents/core/readiness.ts'
import { changedRequest, ExponentialBackoff, type ScaleUpRequest } from '../../src/scale-up-guard/core/cluster-state.ts'
import type { ClusterStateOptions } from './rules.ts'
import {
  type AcceptableRange,
  acceptableRange,
  deletableInstances,
  type IncorrectSize,
  incorrectSize,
  sizeCorrection,
  upcomingNodes,
} from './sizes.ts'

export interface InstanceError {
  /** `OutOfResources`, `QuotaExceeded` or the like, with the cloud's own code: `class.code`. */
  readonly code: string
  readonly message: string
}

export interface Instance {
  readonly providerID: string
  readonly state: 'creating' | 'running' | 'deleting'
  /** Why it could not be made. */
  readonly error: InstanceError | undefined
}

export interface NodeGroup {
  readonly id: string
  readonly minSize: number
  readonly maxSize: number
  /** What the cloud was told to have. */
  readonly target: number
  readonly instances: readonly Instance[]
}

export interface ScaleUpFailure {
  readonly group: string
  readonly reason: 'timeout' | 'apiCallError' | 'creationError'
  readonly message: string
  readonly atMs: number
  readonly backedOffUntilMs: number
}

/** What `update` found, for the caller to do or to tell. */
export interface Update {
  readonly failures: readonly ScaleUpFailure[]
  /** Targets to lower, because requests timed out: group and (negative) delta. */
  readonly lowerTargets: ReadonlyMap<string, number>
}

const NO_RANGE: AcceptableRange = { min: 0, max: 0, target: 0 }

export class ClusterState {
  readonly #options: ClusterStateOptions
  readonly backoff: ExponentialBackoff<InstanceError>
  readonly #requests = new Map<string, ScaleUpRequest>()
  /** Running deletions of nodes: group, and when they have to be over. */
  #scaleDowns: { readonly group: string; readonly expectedDeleteMs: number }[] = []
  #groups: ReadonlyMap<string, NodeGroup> = new Map()
  #unregistered = new Map<string, UnregisteredNode>()
  #readiness: ClusterReadiness = countNodes([], [], { maxNodeStartupMs: 0, maxNodeProvisionMs: 0 }, 0)
  #ranges = new Map<string, AcceptableRange>()
  #incorrect = new Map<string, IncorrectSize>()
  /** By group: instances whose errors are known already, with their codes. */
  #creationErrors = new Map<string, ReadonlyMap<string, string>>()

  constructor(options: ClusterStateOptions) {
    this.#options = options
    this.backoff = new ExponentialBackoff(options.backoff)
  }

  /** Once a loop, before anything is decided. */
  update(groups: readonly NodeGroup[], nodes: readonly NodeState[], nowMs: number): Update {
    this.#groups = new Map(groups.map((group) => [group.id, group]))
    this.#findUnregistered(nodes, nowMs)
    this.#readiness = countNodes(nodes, [...this.#unregistered.values()], this.#options, nowMs)
    // With the requests of the last loop: which of them are done depends on it.
    this.#updateRanges()
    const failures: ScaleUpFailure[] = []
    const lowerTargets = this.#endRequests(failures, nowMs)
    this.#takeCreationErrors(failures, nowMs)
    this.#updateRanges()
    this.#updateIncorrectSizes(nowMs)
    return { failures, lowerTargets }
  }

  /** An order of nodes; a negative delta takes some back. */
  registerScaleUp(group: string, delta: number, nowMs: number): void {
    const request = changedRequest(this.#requests.get(group), delta, this.#options.maxNodeProvisionMs, nowMs)
    if (request === undefined) this.#requests.delete(group)
    else this.#requests.set(group, request)
  }

  /** A node of the group is being deleted. */
  registerScaleDown(group: string, expectedDeleteMs: number): void {
    this.#scaleDowns.push({ group, expectedDeleteMs })
  }

  /** The cloud refused an order: the group is backed off at once. */
  registerFailedScaleUp(group: string, error: InstanceError, nowMs: number): ScaleUpFailure {
    return this.#fail(group, 'apiCallError', error, nowMs)
  }

  request(group: string): ScaleUpRequest | undefined {
    return this.#requests.get(group)
  }

  range(group: string): AcceptableRange | undefined {
    return this.#ranges.get(group)
  }

  incorrectSize(group: string): IncorrectSize | undefined {
    return this.#incorrect.get(group)
  }

  /** Instances without a Node. */
  get unregistered(): readonly UnregisteredNode[] {
    return [...this.#unregistered.values()]
  }

  get healthy(): boolean {
    const { unready, registered } = this.#readiness.total
    return !hasTooManyUnready(unready, registered, this.#options)
  }

  isHealthy(group: string): boolean {
    const { target, minSize } = this.#groups.get(group) ?? { target: 0, minSize: 0 }
    const own = this.#readiness.groups.get(group)
    // No readiness entry: there is no node yet.
    if (own === undefined) return target === 0 || (minSize === 0 && target > 0)
    const { min } = this.#ranges.get(group) ?? NO_RANGE
    const missing = min - own.ready - own.suspended
    return (
      missing <= 0 ||
      !hasTooManyUnready(missing, own.ready + own.unready + own.notStarted + own.suspended, this.#options)
    )
  }

  /** Whether it is scaled up at all: healthy, and not backed off. */
  isSafeToScaleUp(group: string, nowMs: number): boolean {
    return this.isHealthy(group) && this.backoff.status(group, nowMs) === undefined
  }

  /** Nodes that are counted on though they are not ready yet: they enter the simulation as fake nodes. */
  upcoming(group: string, nowMs: number): number {
    const awaited = this.#requests.has(group) && this.backoff.status(group, nowMs) === undefined
    return this.#options.rules.upcomingNeedsRequest && !awaited ? 0 : this.#awaited(group)
  }

  isScalingUp(group: string): boolean {
    return this.#requests.has(group) && this.#awaited(group) > 0
  }

  /** Targets that are to be lowered, because what they ask for has not come for too long: group and (negative) delta. */
  sizeCorrections(nowMs: number): ReadonlyMap<string, number> {
    const corrections = new Map<string, number>()
    for (const [group, size] of this.#incorrect) {
      const delta = sizeCorrection(size, this.#options.maxNodeProvisionMs, nowMs)
      if (delta < 0) corrections.set(group, delta)
    }
    return corrections
  }

  /** Instances that never registered and are to be deleted, group by group. */
  instancesToDelete(nowMs: number, force: boolean): ReadonlyMap<string, readonly UnregisteredNode[]> {
    const old = this.unregistered.filter(({ sinceMs }) => sinceMs + this.#options.maxNodeProvisionMs < nowMs)
    const result = new Map<string, readonly UnregisteredNode[]>()
    for (const { id, target, minSize } of this.#groups.values()) {
      const own = old.filter(({ group }) => group === id)
      const count = deletableInstances(own.length, target, minSize, force)
      if (count > 0) result.set(id, own.slice(0, count))
    }
    return result
  }

  /** Nodes that groups have, without those that are not ready yet since they have just started, and nodes that they should have. */
  get autoscaledNodes(): { readonly current: number; readonly target: number } {
    let current = 0
    let target = 0
    for (const own of this.#readiness.groups.values()) current += own.registered - own.notStarted
    for (const range of this.#ranges.values()) target += range.target
    return { current, target }
  }

  #findUnregistered(nodes: readonly NodeState[], nowMs: number): void {
    const registered = new Set(nodes.map(({ providerID }) => providerID))
    const found = new Map<string, UnregisteredNode>()
    for (const { id, instances } of this.#groups.values()) {
      for (const { providerID, state, error } of instances) {
        if (registered.has(providerID) || state === 'deleting' || error !== undefined) continue
        const sinceMs = this.#unregistered.get(providerID)?.sinceMs ?? nowMs
        found.set(providerID, { group: id, providerID, sinceMs })
      }
    }
    this.#unregistered = found
  }

  #updateRanges(): void {
    this.#ranges = new Map()
    for (const { id, target } of this.#groups.values()) {
      const increase = this.#requests.get(id)?.increase ?? 0
      const scaleDowns = this.#scaleDowns.filter(({ group }) => group === id).length
      this.#ranges.set(id, acceptableRange(target, this.#readiness.groups.get(id), increase, scaleDowns))
    }
  }

  #endRequests(failures: ScaleUpFailure[], nowMs: number): ReadonlyMap<string, number> {
    const { doneClearsBackoff, timeoutLowersTarget } = this.#options.rules
    const lowerTargets = new Map<string, number>()
    this.backoff.removeStale(nowMs)
    for (const [group, { increase, timeMs, expectedAddMs }] of this.#requests) {
      if (this.#awaited(group) === 0) {
        this.#requests.delete(group)
        if (doneClearsBackoff) this.backoff.remove(group)
      } else if (expectedAddMs < nowMs) {
        this.#requests.delete(group)
        const after = goDuration(nowMs - timeMs)
        const error = { code: 'timeout', message: `Scale-up timed out for node group ${group} after ${after}` }
        failures.push(this.#fail(group, 'timeout', error, nowMs))
        if (timeoutLowersTarget) lowerTargets.set(group, -increase)
      }
    }
    this.#scaleDowns = this.#scaleDowns.filter(({ expectedDeleteMs }) => expectedDeleteMs > nowMs)
    return lowerTargets
  }

  /** Instances that the cloud could not make: each counts once, and only while the group is scaling up. */
  #takeCreationErrors(failures: ScaleUpFailure[], nowMs: number): void {
    const known = this.#creationErrors
    this.#creationErrors = new Map()
    for (const { id, instances } of this.#groups.values()) {
      const codes = new Map<string, string>()
      const unseen = new Map<string, { error: InstanceError; count: number }>()
      for (const { providerID, state, error } of instances) {
        if (state !== 'creating' || error === undefined) continue
        codes.set(providerID, error.code)
        if (known.get(id)?.get(providerID) === error.code) continue
        const same = unseen.get(error.code) ?? { error, count: 0 }
        same.count++
        unseen.set(error.code, same)
      }
      this.#creationErrors.set(id, codes)
      for (const { error, count } of unseen.values()) {
        if (!this.isScalingUp(id)) continue
        this.registerScaleUp(id, -count, nowMs)
        failures.push(this.#fail(id, 'creationError', error, nowMs))
      }
    }
  }

  #fail(group: string, reason: ScaleUpFailure['reason'], error: InstanceError, nowMs: number): ScaleUpFailure {
    const backedOffUntilMs = this.backoff.fail(group, error, nowMs)
    return { group, reason, message: error.message, atMs: nowMs, backedOffUntilMs }
  }

  #updateIncorrectSizes(nowMs: number): void {
    const before = this.#incorrect
    this.#incorrect = new Map()
    for (const [group, range] of this.#ranges) {
      const own = this.#readiness.groups.get(group)
      const size = incorrectSize(own, range, before.get(group), this.#options.rules, nowMs)
      if (size !== undefined) this.#incorrect.set(group, size)
    }
  }

  #awaited(group: string): number {
    return upcomingNodes(this.#ranges.get(group)?.target ?? 0, this.#readiness.groups.get(group))
  }
}

/** As Go prints a time.Duration: `3m0s`, where formatDuration leaves out what is zero. */
function goDuration(ms: number): string {
  if (ms > 0 && ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000)
  return `${hours > 0 ? `${hours}h` : ''}${minutes > 0 ? `${minutes % 60}m` : ''}${(ms % 60_000) / 1000}s`
}

const TRUNCATED = '<truncated>'

/** As it stands in the autoscaler's status: at most `max` characters. */
export function truncatedMessage(message: string, max: number): string {
  if (message.length <= max) return message
  if (max <= TRUNCATED.length) return message.slice(0, max)
  return message.slice(0, max - TRUNCATED.length) + TRUNCATED
}
