// Marks an object as being deleted, while it waits for its finalizers or its grace period
// (registry/generic/registry/store.go, markAsDeleting; registry/rest/delete.go, BeforeDelete).
//
// propagationPolicy adds none: the finalizers `orphan` and `foregroundDeletion` are meant for a garbage collector; there is
// none here, so nothing would ever remove them. kube-apiserver does the same when the collector is disabled
// (deletionFinalizersForGarbageCollection). Owner references are only stored.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { isBeingDeleted, metaNumber, metaText, withMetadata } from '../objects/object-metadata.ts'

export type PropagationPolicy = 'Orphan' | 'Foreground' | 'Background'

/** @param grace seconds; once marked, it can only be shortened. Default 0 */
export function markedForDeletion(object: JsonObject, nowMs: number, grace = 0): JsonObject {
  const generation = metaNumber(object, 'generation')
  if (!isBeingDeleted(object)) {
    return withMetadata(object, {
      deletionGracePeriodSeconds: grace,
      deletionTimestamp: metaTime(nowMs + grace * 1000),
      ...(generation > 0 && { generation: generation + 1 }),
    })
  }
  const given = metaNumber(object, 'deletionGracePeriodSeconds')
  if (grace >= given) return object
  const shortened = Date.parse(metaText(object, 'deletionTimestamp')) - (given - grace) * 1000
  return withMetadata(object, { deletionGracePeriodSeconds: grace, deletionTimestamp: metaTime(shortened) })
}
