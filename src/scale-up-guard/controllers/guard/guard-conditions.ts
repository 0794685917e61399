// The conditions of a ScaleUpGuard, and how its status is written.

import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { PatchTarget } from '../../../kube/controllers/kernel/object-patch.ts'
import type { GuardCondition } from '../../api/scale-up-guard.ts'
import { SCALE_UP_GUARDS } from '../../api/scale-up-guard-kind.ts'

/** @param fault why it doesn't hold, human-readable; '' = it holds */
export function guardCondition(
  type: 'Ready' | 'NodesKnown',
  fault: string,
  faultReason: 'NotWatched' | 'Invalid',
  observedGeneration: number,
): Omit<GuardCondition, 'lastTransitionTime'> {
  const [status, reason] = fault === '' ? (['True', 'Watching'] as const) : (['False', faultReason] as const)
  return { type, status, reason, message: fault.slice(0, 1024), observedGeneration }
}

export function statusOfGuards(client: ObjectClient): PatchTarget {
  return { client, kind: SCALE_UP_GUARDS, fieldManager: 'portcullis', subresource: 'status' }
}
