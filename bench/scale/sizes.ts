// Sizes of node groups: what is acceptable, what is on its way, and what the cloud did not deliver (clusterstate.go).

import type { Readiness } from '../../src/incidents/core/readiness.ts'
import { readiness } from '../../src/incidents/core/readiness.ts'
import type { AutoscalerRules } from './rules.ts'

/** Numbers of nodes that a group may have now. */
export interface AcceptableRange {
  readonly min: number
  readonly max: number
  readonly target: number
}

export interface IncorrectSize {
  /** Registered nodes. */
  readonly current: number
  /** The target. */
  readonly expected: number
  /** Since when both have been the same. Milliseconds */
  readonly firstObservedMs: number
}

/**
 * @param increase of the running scale-up; 0 = none
 * @param scaleDowns running deletions of nodes
 */
export function acceptableRange(
  target: number,
  own: Readiness | undefined,
  increase: number,
  scaleDowns: number,
): AcceptableRange {
  return { min: target - (own?.longUnregistered ?? 0) - increase, max: target + scaleDowns, target }
}

/** Nodes that are ordered and not ready yet; what has been unregistered for too long does not come any more. */
export function upcomingNodes(target: number, own: Readiness | undefined): number {
  const { ready, unready, suspended, longUnregistered } = own ?? readiness()
  return Math.max(0, target - (ready + unready + suspended + longUnregistered))
}

/** @returns undefined = the size is correct, or the group has no node to be seen */
export function incorrectSize(
  own: Readiness | undefined,
  range: AcceptableRange,
  before: IncorrectSize | undefined,
  { sizesByRange }: Pick<AutoscalerRules, 'sizesByRange'>,
  nowMs: number,
): IncorrectSize | undefined {
  if (own === undefined) return undefined
  const { registered: current, unregistered, longUnregistered } = own
  const expected = range.target
  const least = sizesByRange ? range.min : expected - (unregistered + longUnregistered)
  const most = sizesByRange ? range.max : expected
  if (current >= least && current <= most) return undefined
  const same = before !== undefined && before.current === current && before.expected === expected
  return same ? before : { current, expected, firstObservedMs: nowMs }
}

/** By how much the target is to be changed: only downwards, and only what has been so for too long. 0 = not at all */
export function sizeCorrection(
  { current, expected, firstObservedMs }: IncorrectSize,
  maxNodeProvisionMs: number,
  nowMs: number,
): number {
  return firstObservedMs + maxNodeProvisionMs < nowMs && current < expected ? current - expected : 0
}

/** How many of the instances that never registered are deleted: never below the minimum, unless forced. */
export function deletableInstances(old: number, target: number, minSize: number, force: boolean): number {
  return force ? old : Math.max(0, Math.min(old, target - minSize))
}
