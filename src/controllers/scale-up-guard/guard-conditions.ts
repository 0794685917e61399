// The conditions of a ScaleUpGuard.

import type { GuardCondition } from '../../api/scale-up-guard/scale-up-guard.ts'

/** @param fault why it does not hold, for people; '' = it holds */
export function guardCondition(
  type: 'Ready' | 'NodesKnown',
  fault: string,
  faultReason: 'NotWatched' | 'Invalid',
  observedGeneration: number,
): Omit<GuardCondition, 'lastTransitionTime'> {
  const [status, reason] = fault === '' ? (['True', 'Watching'] as const) : (['False', faultReason] as const)
  return { type, status, reason, message: fault.slice(0, 1024), observedGeneration }
}
