// Deletion costs set by the gateway, recognized by an annotation next to the cost, even after a crash.

import { type JsonObject, mapOf } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { DELETION_COST_ANNOTATION, VICTIM_COST } from '../rank/scale-pod.ts'

export const OWN_COST_ANNOTATION = 'scale.portcullis.io/deletion-cost'
const OWN_VALUE = String(VICTIM_COST)

export interface OwnCost {
  /** Id of the scale-down. */
  readonly id: string
  /** `deployments/web`. */
  readonly workload: string
  /** Its replicas after the scale-down. */
  readonly to: number
  /** RFC 3339; for people. */
  readonly at: string
}

export type PodCost =
  | { readonly kind: 'none' }
  | { readonly kind: 'own'; readonly own: OwnCost }
  /** Set by another writer, possibly over ours. */
  | { readonly kind: 'foreign' }

export function podCost(pod: JsonObject): PodCost {
  const annotations = mapOf(pod, 'annotations')
  const cost = annotations[DELETION_COST_ANNOTATION]
  if (cost === undefined) return { kind: 'none' }
  const own = ownCost(pod)
  return own !== undefined && cost === OWN_VALUE ? { kind: 'own', own } : { kind: 'foreign' }
}

/** By the annotation alone, whatever the cost is now. */
export function ownCost(pod: JsonObject): OwnCost | undefined {
  const text = mapOf(pod, 'annotations')[OWN_COST_ANNOTATION]
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const fields = isRecord(value) ? value : {}
  const { to } = fields
  return {
    id: textOf(fields['id']),
    workload: textOf(fields['workload']),
    to: typeof to === 'number' ? to : 0,
    at: textOf(fields['at']),
  }
}

export function costAnnotations(own: OwnCost): Readonly<Record<string, string>> {
  return { [DELETION_COST_ANNOTATION]: OWN_VALUE, [OWN_COST_ANNOTATION]: JSON.stringify(own) }
}

/** For a merge patch; a foreign cost stays. */
export function withoutCost(cost: PodCost['kind']): Readonly<Record<string, null>> {
  return { [OWN_COST_ANNOTATION]: null, ...(cost === 'own' && { [DELETION_COST_ANNOTATION]: null }) }
}

/** The pod as it will be, for a plan. */
export function withCost(pod: JsonObject): JsonObject {
  return withAnnotations(pod, { ...mapOf(pod, 'annotations'), [DELETION_COST_ANNOTATION]: OWN_VALUE })
}

/** The pod as it will be once our cost is removed, for a plan. */
export function withoutOwnCost(pod: JsonObject): JsonObject {
  if (podCost(pod).kind !== 'own') return pod
  const { [DELETION_COST_ANNOTATION]: _, ...others } = mapOf(pod, 'annotations')
  return withAnnotations(pod, others)
}

function withAnnotations(pod: JsonObject, annotations: Readonly<Record<string, string>>): JsonObject {
  return { ...pod, metadata: { ...recordOf(pod['metadata']), annotations } }
}
