// Settings of a scale-up guard: compiled, durations in milliseconds.

import type { BackoffOptions } from '../cluster-state/backoff.ts'

export interface ScaleUpGuardPolicy {
  /** Reasons of a Machine's condition InfrastructureReady=False that waiting can't fix, such as `InstanceProvisionFailed`. */
  readonly conditionReasons: ReadonlySet<string>
  /** How long the condition must hold. */
  readonly minDurationMs: number
  /** A Machine without `spec.providerID` after this time has failed: the cloud created nothing. */
  readonly noProviderIDMs: number
  /** A Machine without `status.nodeRef` after this time has failed, as has a MachinePool replica without a node. */
  readonly noNodeMs: number
  /** Must end before the autoscaler's own (5 to 30 min): otherwise the two refuse in turns. */
  readonly backoff: BackoffOptions
  /** Whether the target is lowered by the failed machines. */
  readonly correctTarget: boolean
  /** Whether machines with an instance, but without a node in time, may be removed. */
  readonly deleteLongUnregistered: boolean
  /** Evaluate, count and report, but neither refuse nor change anything. */
  readonly shadow: boolean
}
