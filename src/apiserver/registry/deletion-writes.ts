// The writes that remove objects, all in one transaction.

import { finalizersOf } from '../../kit/api/json/json-object.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { StoredObject, StoreWrite } from '../api/object-store.ts'
import type { RegistryContext } from './context.ts'
import { markedForDeletion } from './finalizers.ts'
import { contentsOf, isNamespace, terminating, waitingNamespace } from './namespaces.ts'

/** Removes an object without finalizers; a terminating namespace is removed with its last object. */
export function removalWrites(context: RegistryContext, kind: ResourceKind, stored: StoredObject): StoreWrite[] {
  if (isNamespace(kind)) return namespaceRemoval(context, stored)
  const namespace = waitingNamespace(context, stored)
  return namespace === undefined ? [removal(stored)] : [removal(stored), removal(namespace)]
}

/** Removes a namespace with its contents. Objects with finalizers are only marked; the namespace then waits, too. */
function namespaceRemoval(context: RegistryContext, stored: StoredObject): StoreWrite[] {
  const nowMs = context.now()
  const writes: StoreWrite[] = []
  let waits = false
  for (const content of contentsOf(context, stored.name)) {
    if (finalizersOf(content.stored.object).length === 0) writes.push(removal(content.stored))
    else {
      waits = true
      writes.push(replacement(content.stored, markedForDeletion(content.stored.object, nowMs)))
    }
  }
  if (!waits && finalizersOf(stored.object).length === 0) return [...writes, removal(stored)]
  return [...writes, replacement(stored, terminating(markedForDeletion(stored.object, nowMs)))]
}

export function removal({ resource, namespace, name, revision }: StoredObject): StoreWrite {
  return { resource, namespace, name, object: undefined, expected: revision }
}

export function replacement(stored: StoredObject, object: StoreWrite['object']): StoreWrite {
  const { resource, namespace, name, revision } = stored
  return { resource, namespace, name, object, expected: revision }
}
