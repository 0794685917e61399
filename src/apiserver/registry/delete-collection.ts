// DELETE of a collection: everything that a list with these options would return (registry store.go, DeleteCollection).

import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { StatusError } from '../../kube/api/status.ts'
import { type ListResult, listObjects } from '../list/list.ts'
import type { ListOptions } from '../list/options.ts'
import { metaText } from '../objects/object-metadata.ts'
import type { RegistryContext } from './context.ts'
import { deleteObject } from './deletion.ts'
import type { DeleteOptions } from './deletion-options.ts'

/** @returns the objects before the deletion */
export function deleteCollection(
  context: RegistryContext,
  kind: ResourceKind,
  namespace: string,
  list: ListOptions,
  options: DeleteOptions,
): ListResult {
  const found = listObjects(context.store, kind, namespace, list)
  for (const object of found.items) {
    const at = { namespace: metaText(object, 'namespace'), name: metaText(object, 'name') }
    try {
      deleteObject(context, kind, at, options)
    } catch (error) {
      // Already removed as a side effect of an earlier deletion in this loop.
      if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error
    }
  }
  return { items: found.items, metadata: { ...found.metadata, resourceVersion: String(context.store.revision) } }
}
