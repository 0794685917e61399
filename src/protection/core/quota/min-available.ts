// How many pods of a workload must stay available: its replicas minus what its own rollouts may make unavailable.

/**
 * How a percentage becomes a number of pods. Podseidon rounds up: 25 % of 10 pods are 3. Kubernetes rounds down (2), but allows at least
 * one, because otherwise no pod could ever be replaced.
 */
export type Rounding = 'Podseidon' | 'Kubernetes'

interface AvailabilityNeed {
  readonly replicas: number
  /** An IntOrString from the workload. */
  readonly maxUnavailable: unknown
  /** Also an IntOrString; undefined = unknown, which counts as more than 0. */
  readonly maxSurge: unknown
  readonly rounding: Rounding
  /** With Kubernetes' rounding at least one, whatever maxSurge says, as for StatefulSets. */
  readonly neverZero: boolean
}

const PERCENT = /^([0-9]{1,9})%$/

/** Never below 0. undefined = maxUnavailable is neither a number nor a percentage. */
export function minAvailableOf(need: AvailabilityNeed): number | undefined {
  const { replicas, maxUnavailable, maxSurge, rounding, neverZero } = need
  let unavailable = scaledCount(maxUnavailable, replicas, rounding === 'Podseidon')
  if (unavailable === undefined) return undefined
  if (rounding === 'Kubernetes' && unavailable === 0) {
    // deployment/util.ResolveFenceposts; statefulset's getStatefulSetMaxUnavailable.
    const surge = maxSurge === undefined ? 1 : (scaledCount(maxSurge, replicas, true) ?? 1)
    if (neverZero || surge === 0) unavailable = 1
  }
  return Math.max(0, replicas - unavailable)
}

/** intstr.GetScaledValueFromIntOrPercent. */
export function scaledCount(value: unknown, total: number, up: boolean): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? Math.max(0, value) : undefined
  const percent = typeof value === 'string' ? PERCENT.exec(value)?.[1] : undefined
  if (percent === undefined) return undefined
  const part = (Number(percent) * total) / 100
  return up ? Math.ceil(part) : Math.floor(part)
}
