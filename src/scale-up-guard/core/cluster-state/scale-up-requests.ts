// Scale-ups that were ordered and are not done (clusterstate.go, registerOrUpdateScaleUpNoLock).

export interface ScaleUpRequest {
  readonly increase: number
  /** When it was ordered, or raised last. Milliseconds */
  readonly timeMs: number
  /** When its nodes have to be there. Milliseconds */
  readonly expectedAddMs: number
}

/**
 * What becomes of the request of a group by another order.
 * @param delta negative: so many nodes of it will not come
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
  // Another order restarts the time limit of all: with an order every few minutes it never ends.
  if (known === undefined || delta > 0) return { increase, timeMs: nowMs, expectedAddMs: nowMs + maxNodeProvisionMs }
  return { ...known, increase }
}
