// What a PodProtector requires once its workload is scaled. The generator follows the workload, so a scale-down that the number of now
// forbids is allowed a moment later.

import type { JsonObject } from '../../../api/kube/json-object.ts'
import { recordOf } from '../../../api/kube/object-shape.ts'
import type { PodProtector } from '../../../api/pod-protector/pod-protector.ts'
import type { Rounding } from '../quota/min-available.ts'
import { requirementOf } from './derive-protector.ts'
import { builtInKind } from './kinds.ts'
import { claimedSource } from './names.ts'

const ROUNDINGS: readonly Rounding[] = ['Podseidon', 'Kubernetes']

/**
 * @param workload a Deployment, StatefulSet or ReplicaSet in the protector's namespace
 * @returns minAvailable; as it is for a protector that was not generated of this workload: it names another one, or other replicas,
 * as that of a workload that is spread over several clusters does
 */
export function minAvailableAfter(
  { metadata, spec }: PodProtector,
  workload: JsonObject,
  kindName: string,
  replicas: number,
): number {
  for (const rounding of ROUNDINGS) {
    const kind = builtInKind(kindName, { rounding })
    if (kind === undefined || claimedSource({ metadata }, [kind])?.name !== recordOf(workload['metadata'])['name'])
      continue
    const before = requirementOf(workload, kind)
    if (before.kind !== 'protect' || before.spec.minAvailable !== spec.minAvailable) continue
    const after = requirementOf({ ...workload, spec: { ...recordOf(workload['spec']), replicas } }, kind)
    if (after.kind === 'protect') return after.spec.minAvailable
  }
  return spec.minAvailable
}
