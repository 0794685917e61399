// Detects failed Cluster API Machines: at once from a condition and, without one, by timeout.

import type { ScaleUpGuardPolicy } from './compile-guard.ts'

/** The parts of a Machine that the guard considers. */
export interface MachineState {
  readonly name: string
  readonly uid: string
  readonly createdMs: number
  /** Has a deletionTimestamp. */
  readonly deleting: boolean
  /** Has the annotation delete-machine: of this guard, the autoscaler or a user. */
  readonly marked: boolean
  readonly controlPlane: boolean
  /** Controllers leave it alone, so missing parts mean nothing. Default false. */
  readonly paused?: boolean
  readonly hasProviderID: boolean
  /** Has `status.nodeRef`: it is a node, however unhealthy. */
  readonly hasNode: boolean
  /** Condition InfrastructureReady, if it is False. */
  readonly notReady: { readonly reason: string; readonly message: string; readonly sinceMs: number } | undefined
}

export interface MachineFailure {
  /** undefined for a replica of a MachinePool. */
  readonly machine: MachineState | undefined
  /** Reason of the condition, or `NoProviderID` or `NoNode`. */
  readonly reason: string
  readonly message: string
}

/** Reason of a failure by timeout: there is no node. */
export const NO_NODE = 'NoNode'

/** @returns undefined = it has not failed, or the guard does not cover it */
export function machineFailure(
  machine: MachineState,
  policy: ScaleUpGuardPolicy,
  nowMs: number,
): MachineFailure | undefined {
  const { notReady, hasProviderID, createdMs } = machine
  if (isExempt(machine)) return undefined
  if (
    notReady !== undefined &&
    policy.conditionReasons.has(notReady.reason) &&
    nowMs - notReady.sinceMs >= policy.minDurationMs
  ) {
    return { machine, reason: notReady.reason, message: notReady.message }
  }
  const ageMs = nowMs - createdMs
  if (!hasProviderID && ageMs >= policy.noProviderIDMs) {
    return { machine, reason: 'NoProviderID', message: `no instance after ${Math.floor(ageMs / 1000)} s` }
  }
  if (ageMs < policy.noNodeMs) return undefined
  return { machine, reason: NO_NODE, message: `no node after ${Math.floor(ageMs / 1000)} s` }
}

/** Milliseconds until it counts as failed if nothing changes; undefined = it has failed already, or will not. */
export function dueInMs(machine: MachineState, policy: ScaleUpGuardPolicy, nowMs: number): number | undefined {
  const { notReady, hasProviderID, createdMs } = machine
  if (isExempt(machine)) return undefined
  let dueMs = createdMs + policy.noNodeMs
  if (!hasProviderID) dueMs = Math.min(dueMs, createdMs + policy.noProviderIDMs)
  if (notReady !== undefined && policy.conditionReasons.has(notReady.reason)) {
    dueMs = Math.min(dueMs, notReady.sinceMs + policy.minDurationMs)
  }
  return dueMs > nowMs ? dueMs - nowMs : undefined
}

/** Machines that the guard does not cover. */
function isExempt({ deleting, hasNode, controlPlane, paused }: MachineState): boolean {
  return deleting || hasNode || controlPlane || paused === true
}
