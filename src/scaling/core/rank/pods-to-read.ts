// Which pods must be read to tell which ones a workload loses.

import type { ScalableKind } from '../../../gateway/core/request/scale-target.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { countOf, podSelector } from './replica-set-pods.ts'
import { controllerUid } from './scale-pod.ts'

/**
 * Label selectors, as values of `?labelSelector=`: only pods selected by one of them matter.
 * @param replicaSets of the namespace, at least the workload's and its siblings; for a ReplicationController those of its own kind
 */
export function podSelectors(
  kind: ScalableKind,
  workload: JsonObject,
  replicaSets: readonly JsonObject[],
): readonly string[] {
  const owners = ownersOfPods(kind, workload, replicaSets)
  const texts = new Set(owners.map((owner) => podSelector(owner)?.text))
  // An empty or unreadable selector selects nothing here: controllers reject it too.
  return [...texts].filter((text): text is string => text !== undefined && text !== '')
}

function ownersOfPods(
  kind: ScalableKind,
  workload: JsonObject,
  replicaSets: readonly JsonObject[],
): readonly JsonObject[] {
  if (kind === 'StatefulSet') return [workload]
  const owner = kind === 'Deployment' ? textOf(recordOf(workload['metadata'])['uid']) : controllerUid(workload)
  const related = replicaSets.filter((one) => owner !== '' && controllerUid(one) === owner && hasPods(one))
  return kind === 'Deployment' ? related : [workload, ...related]
}

/** Old ReplicaSets are kept, and most of them are empty. */
function hasPods(replicaSet: JsonObject): boolean {
  const { spec, status } = replicaSet
  return countOf(recordOf(spec)['replicas'], 1) > 0 || countOf(recordOf(status)['replicas'], 0) > 0
}
