// What a scale-up guard does about a Cluster API node group: put it in backoff, mark failed machines, lower the target by them. Every
// reason for inaction is a value of its own: when uncertain, nothing is changed.

import type { ScaleUpGuardPolicy } from './compile-guard.ts'
import { dueInMs, type MachineFailure, type MachineState, machineFailure, NO_NODE } from './machine-failure.ts'

/** A MachineDeployment, a MachineSet without one, or a MachinePool. */
export interface MachineGroup {
  /** The autoscaler's name for it: `MachineDeployment/NAMESPACE/NAME`. */
  readonly id: string
  /** `spec.replicas`. */
  readonly replicas: number
  /** The autoscaler's annotation; the target is never lowered below it. */
  readonly minSize: number
  /** It, or its Cluster, has `spec.paused` or the annotation. */
  readonly paused: boolean
  /** More than one MachineSet has replicas: we could not choose which machines go (kubernetes/autoscaler#5465). */
  readonly rollingOut: boolean
  /** undefined for a MachinePool, which has none. */
  readonly machines: readonly MachineState[] | undefined
  /** For a MachinePool: number of its nodes. */
  readonly nodes: number
  /** For a MachinePool: number of its instances, including nodes. */
  readonly instances: number
}

/** State of a group from the guard's previous evaluation. */
export interface GroupMemory {
  readonly replicas: number
  /** UIDs of machines whose failure is already known. */
  readonly failed: ReadonlySet<string>
  /** For a MachinePool: since when each replica without a node has been missing, oldest first. */
  readonly missingSinceMs: readonly number[]
  /** When it was last seen paused; absent = never. Silence before that means nothing. */
  readonly pausedMs?: number
}

/** Why the target is left unchanged. */
export type Inaction =
  | 'none-failed'
  | 'correction-is-off'
  | 'paused'
  | 'rolling-out'
  | 'target-changed'
  | 'at-minimum'
  /** As many machines as failed are already going. */
  | 'already-lowered'
  /** The failed machines have an instance, and such machines are kept. */
  | 'unregistered-are-kept'

export interface GroupEvaluation {
  readonly failures: readonly MachineFailure[]
  /** Some have failed since the last evaluation: the group goes into backoff for them, once. */
  readonly isNew: boolean
  /** Machines to mark with `cluster.x-k8s.io/delete-machine`, and the target to write; undefined = leave it. */
  readonly correction: { readonly machines: readonly MachineState[]; readonly replicas: number } | undefined
  readonly inaction: Inaction | undefined
  /** Milliseconds until the next evaluation without any change; undefined = none is due. */
  readonly againInMs: number | undefined
  readonly memory: GroupMemory
}

export function evaluateGroup(
  group: MachineGroup,
  memory: GroupMemory | undefined,
  policy: ScaleUpGuardPolicy,
  nowMs: number,
): GroupEvaluation {
  const { replicas, minSize, id } = group
  if (group.paused) return pausedGroup(group, nowMs)
  const machines = sinceResumed(group.machines, memory)
  const missingSinceMs = machines === undefined ? missingReplicas(group, memory, nowMs) : []
  const failures =
    machines === undefined
      ? missingSinceMs
          .filter((sinceMs) => nowMs - sinceMs >= policy.noNodeMs)
          .map((sinceMs) => missingNode(sinceMs, nowMs))
      : machines.flatMap((machine) => machineFailure(machine, policy, nowMs) ?? [])
  const failed = new Set(machines === undefined ? (failures.length > 0 ? [id] : []) : failures.map(uidOf))
  const goes = failures.filter((failure) => mayGo(failure, policy))
  const inaction = inactionOf(group, memory, failures.length, goes.length, policy)
  const count = Math.min(goes.length - alreadyLowered(group), replicas - minSize)
  return {
    failures,
    isNew: [...failed].some((uid) => memory?.failed.has(uid) !== true),
    correction:
      inaction === undefined ? { machines: toMark(group, goes, count), replicas: replicas - count } : undefined,
    inaction,
    againInMs: inaction === 'target-changed' ? SETTLE_MS : againInMs(machines, missingSinceMs, policy, nowMs),
    memory: {
      replicas,
      failed,
      missingSinceMs,
      ...(memory?.pausedMs !== undefined && { pausedMs: memory.pausedMs }),
    },
  }
}

/** No controller works on its machines: nothing has failed, and time does not count. */
function pausedGroup({ replicas }: MachineGroup, nowMs: number): GroupEvaluation {
  return {
    failures: [],
    isNew: false,
    correction: undefined,
    inaction: 'paused',
    againInMs: undefined,
    memory: { replicas, failed: new Set(), missingSinceMs: [], pausedMs: nowMs },
  }
}

/** Counts ages from when the group was last seen paused. */
function sinceResumed(
  machines: readonly MachineState[] | undefined,
  memory: GroupMemory | undefined,
): readonly MachineState[] | undefined {
  const pausedMs = memory?.pausedMs
  if (pausedMs === undefined) return machines
  return machines?.map((machine) => ({ ...machine, createdMs: Math.max(machine.createdMs, pausedMs) }))
}

function mayGo({ machine, reason }: MachineFailure, { deleteLongUnregistered }: ScaleUpGuardPolicy): boolean {
  return deleteLongUnregistered || machine?.hasProviderID !== true || reason !== NO_NODE
}

/**
 * Machines that fail one after the other are corrected one after the other, while the first may still be there. So as many failed machines are to have
 * the mark as the target is below their number, but for those that the autoscaler has marked and lowered it for.
 * @param count by how much the target is lowered now
 */
function toMark(group: MachineGroup, goes: readonly MachineFailure[], count: number): MachineState[] {
  const failed = goes.flatMap(({ machine }) => machine ?? [])
  const marked = (group.machines ?? []).filter((machine) => machine.marked && !machine.deleting)
  const failedMarked = failed.filter((machine) => machine.marked).length
  const lowered = alreadyLowered(group)
  const forOthers = Math.min(lowered, marked.length - failedMarked)
  const wanted = Math.max(0, lowered - forOthers + count - failedMarked)
  return failed.filter((machine) => !machine.marked).slice(0, wanted)
}

/** Pause after a write of the target, by us or another writer: someone may have read it before. */
export const SETTLE_MS = 2000

function missingNode(sinceMs: number, nowMs: number): MachineFailure {
  const message = `no node after ${Math.floor((nowMs - sinceMs) / 1000)} s`
  return { machine: undefined, reason: NO_NODE, message }
}

function uidOf({ machine }: MachineFailure): string {
  return machine?.uid ?? ''
}

/** Each replica has its own time limit: an order every few minutes does not extend the wait of the others. */
function missingReplicas({ replicas, nodes }: MachineGroup, memory: GroupMemory | undefined, nowMs: number): number[] {
  const missing = Math.max(0, replicas - nodes)
  const known = memory?.missingSinceMs ?? []
  const kept = known.slice(Math.max(0, known.length - missing))
  return [...kept, ...Array.from({ length: missing - kept.length }, () => nowMs)]
}

/**
 * By how much the target is already below the number of machines: for so many failures it is not lowered again. For a MachinePool, the instances
 * that have no node: only replicas without an instance may go, as the cloud chooses which instance goes, and it might be a node.
 */
function alreadyLowered({ machines, replicas, nodes, instances }: MachineGroup): number {
  if (machines === undefined) return Math.max(0, instances - nodes)
  const present = machines.filter(({ deleting }) => !deleting).length
  return Math.max(0, present - replicas)
}

function inactionOf(
  group: MachineGroup,
  memory: GroupMemory | undefined,
  failures: number,
  goes: number,
  { correctTarget }: ScaleUpGuardPolicy,
): Inaction | undefined {
  if (failures === 0) return 'none-failed'
  if (!correctTarget) return 'correction-is-off'
  if (group.rollingOut) return 'rolling-out'
  // Another writer has just changed it: the machines we see do not match this target yet.
  if (memory !== undefined && memory.replicas !== group.replicas) return 'target-changed'
  if (goes === 0) return 'unregistered-are-kept'
  if (goes <= alreadyLowered(group)) return group.machines === undefined ? 'unregistered-are-kept' : 'already-lowered'
  return group.replicas <= group.minSize ? 'at-minimum' : undefined
}

function againInMs(
  machines: readonly MachineState[] | undefined,
  missingSinceMs: readonly number[],
  policy: ScaleUpGuardPolicy,
  nowMs: number,
): number | undefined {
  const due =
    machines === undefined
      ? missingSinceMs.map((sinceMs) => sinceMs + policy.noNodeMs - nowMs).filter((ms) => ms > 0)
      : machines.flatMap((machine) => dueInMs(machine, policy, nowMs) ?? [])
  return due.length === 0 ? undefined : Math.min(...due)
}
