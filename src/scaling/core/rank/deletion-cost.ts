// Annotation controller.kubernetes.io/pod-deletion-cost as the ReplicaSet controller reads it (GetDeletionCostFromPodAnnotations,
// pkg/apis/core/helper/helpers.go).

export const DELETION_COST_ANNOTATION = 'controller.kubernetes.io/pod-deletion-cost'
/** What the gateway gives the pods that a ScaleDownPolicy chooses: before all pods without a cost. */
export const VICTIM_COST = -1

const MIN = -(2 ** 31)
const MAX = 2 ** 31 - 1
/** What passes validFirstDigit and strconv.ParseInt: no plus sign, no leading zero unless behind a minus. */
const INTEGER = /^(?:0|[1-9][0-9]*|-[0-9]+)$/

/** @returns undefined when the value is invalid, which counts as 0; no annotation is 0 */
export function parseDeletionCost(value: string | undefined): number | undefined {
  if (value === undefined) return 0
  if (!INTEGER.test(value)) return undefined
  const cost = Number(value)
  // -0 is not less than 0.
  return cost >= MIN && cost <= MAX ? cost + 0 : undefined
}
