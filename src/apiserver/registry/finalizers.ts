// The mark of an object that waits for its finalizers (registry/generic/registry/store.go, markAsDeleting).
//
// propagationPolicy adds none: the finalizers `orphan` and `foregroundDeletion` are for a garbage collector; there is
// none here, so nothing would ever remove them. kube-apiserver does the same where the collector is disabled
// (deletionFinalizersForGarbageCollection). Owner references are only stored.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { metaTime } from '../../core/text/meta-time.ts'
import { isBeingDeleted, metaNumber, withMetadata } from '../objects/object-metadata.ts'

export type PropagationPolicy = 'Orphan' | 'Foreground' | 'Background'

export function markedForDeletion(object: JsonObject, nowMs: number): JsonObject {
  const generation = metaNumber(object, 'generation')
  const first = !isBeingDeleted(object)
  return withMetadata(object, {
    deletionGracePeriodSeconds: 0,
    ...(first && { deletionTimestamp: metaTime(nowMs) }),
    ...(first && generation > 0 && { generation: generation + 1 }),
  })
}
