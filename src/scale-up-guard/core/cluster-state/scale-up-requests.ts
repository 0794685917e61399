// Scale-ups that were ordered and are not complete (clusterstate.go, registerOrUpdateScaleUpNoLock).

export interface ScaleUpRequest {
  readonly increase: number
  /** When it was ordered, or last raised. Milliseconds */
  readonly timeMs: number
  /** When its nodes are due. Milliseconds */
  readonly expectedAddMs: number
}

/**
 * Applies another order to a group's request.
 * @param delta negative: this many of its nodes will not come
 * @returns undefined = nothing of it is left
 */
export function changedRequest(
  known: ScaleUpRequest | undefined,
  delta: number,
  maxNodeProvisionMs: number,
  nowMs: number,
): ScaleUpRequest | undefined {
  const increase = (known?.increase ?? 0) + delta
  if (increase <= 0) return undefined
  // Another order restarts the time limit for all: with an order every few minutes it never expires.
  if (known === undefined || delta > 0) return { increase, timeMs: nowMs, expectedAddMs: nowMs + maxNodeProvisionMs }
  return { ...known, increase }
}
