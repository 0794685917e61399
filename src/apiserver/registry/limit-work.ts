// How much work an object may be that a client writes: what is done with it takes one turn of the event loop that everybody shares.

import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { objectAtom } from '../../kube/core/objects/atom.ts'
import { limitOwnedFields, limitValues } from '../../kube/core/objects/value-count.ts'
import type { WriteCall } from './context.ts'

/**
 * Before the object is shaped, validated, and compared with what is stored.
 * @throws {StatusError} 413
 */
export function limitWork(kind: ResourceKind, object: unknown, { isOwn = false }: WriteCall): void {
  if (isOwn) return
  limitValues(object)
  limitOwnedFields(objectAtom(kind.schema), object)
}
