// The pods of a plan that protection must evaluate.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { LeavingPods, PodFacts } from '../../../protection/api/protection.ts'
import { podFacts } from '../../../protection/core/quota/pod-facts.ts'
import type { PlannedPod, ScaleDownPlan } from '../rank/scale-down-plan.ts'

/**
 * @param pods the ones that were planned with
 * @param asks whether a pod is subject to PodProtectors at all
 */
export function leavingPods(
  { sets }: ScaleDownPlan,
  pods: readonly JsonObject[],
  asks: (pod: PodFacts) => boolean,
): readonly LeavingPods[] {
  const facts = new Map(pods.flatMap((pod) => podFacts(pod) ?? []).map((pod) => [pod.uid, pod]))
  const named = (list: readonly PlannedPod[]): PodFacts[] => list.flatMap(({ uid }) => facts.get(uid) ?? [])
  return sets.map(({ certain, possible }) => {
    const open = named(possible.pods)
    const asked = { count: possible.count, among: open.length, pods: open.filter(asks) }
    return { certain: named(certain).filter(asks), possible: asked }
  })
}

/** Requests about a workload cross threads: drops the template, which may be most of it. */
export function withoutTemplate(workload: JsonObject): JsonObject {
  const { template: _, ...spec } = recordOf(workload['spec'])
  const { managedFields: __, ...metadata } = recordOf(workload['metadata'])
  return { apiVersion: workload['apiVersion'], kind: workload['kind'], metadata, spec }
}
