// What a scale-up guard is told to do: compiled, durations in milliseconds.

import type { BackoffOptions } from '../cluster-state/rules.ts'

export interface ScaleUpGuardPolicy {
  /** Reasons of a Machine's condition InfrastructureReady=False that no waiting makes good, such as `InstanceProvisionFailed`. */
  readonly conditionReasons: ReadonlySet<string>
  /** How long the condition has to hold. */
  readonly minDurationMs: number
  /** A Machine without `spec.providerID` after this time has failed: the cloud has made nothing. */
  readonly noProviderIDMs: number
  /** A Machine without `status.nodeRef` after this time has failed, as has a place of a MachinePool without a node. */
  readonly noNodeMs: number
  /** Has to end before the autoscaler's own (5 to 30 min): otherwise the two refuse in turns. */
  readonly backoff: BackoffOptions
  /** Whether the target is lowered by what failed. */
  readonly correctTarget: boolean
  /** Whether machines that have an instance, but no node in time, are among those that go. */
  readonly deleteLongUnregistered: boolean
  /** Evaluate, count and tell, but neither refuse nor change anything. */
  readonly shadow: boolean
}
