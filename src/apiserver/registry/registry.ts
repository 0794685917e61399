// The registry: every operation on objects, by the rules of Kubernetes, for all callers. HTTP is in front of it (routes.ts),
// the store behind it. Everything is synchronous: nothing happens between two steps of an operation.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import type { ResourceKind, ViewSubresource } from '../../kube/api/resource-kind.ts'
import type { ObjectStore } from '../api/object-store.ts'
import { type ListResult, listObjects } from '../list/list.ts'
import type { ListOptions } from '../list/options.ts'
import type { Subresource } from '../objects/write-object.ts'
import type { Incoming } from '../objects/write-object-decode.ts'
import { applyObject } from './apply.ts'
import { keyOf, type RegistryContext, type RegistryDeps, type WriteCall, type Written } from './context.ts'
import { createObject } from './create.ts'
import { CurrentObjects } from './current.ts'
import { deleteCollection } from './delete-collection.ts'
import { type Deleted, deleteObject } from './deletion.ts'
import type { DeleteOptions } from './deletion-options.ts'
import { EventSweeper, isEvent } from './events.ts'
import { DEFAULT_NAMESPACES } from './namespaces.ts'
import { APPLY, patchObject, type RegistryPatchType } from './patch.ts'
import { storedObject, updateObject } from './update.ts'
import { patchView, updateView } from './view.ts'

export class Registry {
  readonly store: ObjectStore
  readonly kinds: readonly ResourceKind[]
  readonly #context: RegistryContext
  readonly #events: EventSweeper

  /** Creates the default namespaces. */
  constructor(deps: RegistryDeps) {
    this.store = deps.store
    this.kinds = deps.kinds
    // A spread doesn't copy methods of a class.
    this.#context = {
      store: deps.store,
      kinds: deps.kinds,
      pem: deps.pem,
      now: () => deps.now(),
      uuid: () => deps.uuid(),
      random: () => deps.random(),
      current: new CurrentObjects(deps.store),
    }
    this.#events = new EventSweeper(deps.store)
    for (const name of DEFAULT_NAMESPACES) this.#ensureNamespace(name)
  }

  /** Milliseconds of the wall clock. */
  now(): number {
    return this.#context.now()
  }

  /** @throws {StatusError} 404 */
  get(kind: ResourceKind, at: ObjectName): JsonObject {
    return storedObject(this.#context, kind, at).object
  }

  /** @param namespace '' = all */
  list(kind: ResourceKind, namespace: string, options: ListOptions): ListResult {
    return listObjects(this.store, kind, namespace, options)
  }

  create(kind: ResourceKind, namespace: string, incoming: Incoming, call: WriteCall): Written {
    const written = createObject(this.#context, kind, namespace, incoming, call)
    if (isEvent(kind) && !call.options.dryRun) this.#events.onWrite(this.now())
    return written
  }

  update(kind: ResourceKind, at: ObjectName, subresource: Subresource, incoming: Incoming, call: WriteCall): Written {
    return updateObject(this.#context, kind, at, subresource, incoming, call)
  }

  patch(
    kind: ResourceKind,
    at: ObjectName,
    subresource: Subresource,
    type: RegistryPatchType,
    incoming: Incoming,
    call: WriteCall,
  ): Written {
    if (type === APPLY) return applyObject(this.#context, kind, at, subresource, incoming, call)
    return patchObject(this.#context, kind, at, subresource, type, incoming, call)
  }

  /** @returns the view after the write */
  updateView(
    kind: ResourceKind,
    at: ObjectName,
    subresource: ViewSubresource,
    incoming: Incoming,
    call: WriteCall,
  ): JsonObject {
    return updateView(this.#context, kind, at, subresource, incoming, call)
  }

  /** @returns the view after the write */
  patchView(
    kind: ResourceKind,
    at: ObjectName,
    subresource: ViewSubresource,
    type: Exclude<RegistryPatchType, typeof APPLY>,
    incoming: Incoming,
    call: WriteCall,
  ): JsonObject {
    return patchView(this.#context, kind, at, subresource, type, incoming, call)
  }

  delete(kind: ResourceKind, at: ObjectName, options: DeleteOptions): Deleted {
    return deleteObject(this.#context, kind, at, options)
  }

  deleteCollection(kind: ResourceKind, namespace: string, list: ListOptions, options: DeleteOptions): ListResult {
    return deleteCollection(this.#context, kind, namespace, list, options)
  }

  #ensureNamespace(name: string): void {
    if (this.store.get(keyOf(NAMESPACES, { namespace: '', name })) !== undefined) return
    const value = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
    const options = { dryRun: false, fieldValidation: 'Strict', manager: 'portcullis', force: false } as const
    const incoming: Incoming = { value, duplicates: [], strictErrors: [], text: '' }
    this.create(NAMESPACES, '', incoming, { options, warnings: [] })
  }
}
