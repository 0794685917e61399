// Limits the size of objects written by clients: processing one takes a turn of the event loop, which all callers share.

import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { objectAtom } from '../../kube/core/objects/atom.ts'
import { limitOwnedFields, limitValues } from '../../kube/core/objects/value-count.ts'
import type { WriteCall } from './context.ts'

/**
 * Call it before the object is shaped, validated, and compared with the stored one.
 * @throws {StatusError} 413
 */
export function limitWork(kind: ResourceKind, object: unknown, { isOwn = false }: WriteCall): void {
  if (isOwn) return
  limitValues(object)
  limitOwnedFields(objectAtom(kind.schema), object)
}
