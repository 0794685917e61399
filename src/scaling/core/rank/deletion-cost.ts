// Parses annotation controller.kubernetes.io/pod-deletion-cost like the ReplicaSet controller (GetDeletionCostFromPodAnnotations,
// pkg/apis/core/helper/helpers.go).

export const DELETION_COST_ANNOTATION = 'controller.kubernetes.io/pod-deletion-cost'
/** The cost set on pods chosen by a ScaleDownPolicy: before all pods without a cost. */
export const VICTIM_COST = -1

const MIN = -(2 ** 31)
const MAX = 2 ** 31 - 1
/** What passes validFirstDigit and strconv.ParseInt: no plus sign, no leading zero unless after a minus. */
const INTEGER = /^(?:0|[1-9][0-9]*|-[0-9]+)$/

/** @returns undefined if the value is invalid, which counts as 0; a missing annotation is 0 */
export function parseDeletionCost(value: string | undefined): number | undefined {
  if (value === undefined) return 0
  if (!INTEGER.test(value)) return undefined
  const cost = Number(value)
  // Turns -0 into 0.
  return cost >= MIN && cost <= MAX ? cost + 0 : undefined
}
