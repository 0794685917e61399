// The registry: every operation on objects, by the rules of Kubernetes, for all callers. HTTP is in front of it (routes.ts),
// the store behind it. Everything is synchronous: nothing happens between two steps of an operation.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import { type ResourceKind, resourceName, type ViewSubresource } from '../../kube/api/resource-kind.ts'
import { StatusError, statusError } from '../../kube/api/status.ts'
import type { ObjectStore, StoredObject } from '../api/object-store.ts'
import { type ListResult, listObjects } from '../list/list.ts'
import type { ListOptions } from '../list/options.ts'
import { metaText, withMetadata } from '../objects/object-metadata.ts'
import type { Subresource } from '../objects/write-object.ts'
import { type Incoming, shape } from '../objects/write-object-decode.ts'
import { keyOf, type RegistryContext, type RegistryDeps, type WriteCall, type Written } from './context.ts'
import { createObject } from './create.ts'
import { CurrentObjects } from './current.ts'
import { type Deleted, deleteObject } from './deletion.ts'
import type { DeleteOptions } from './deletion-options.ts'
import { EventSweeper, isEvent } from './events.ts'
import { GroupedWrites } from './grouped-writes.ts'
import { limitWork } from './limit-work.ts'
import { DEFAULT_NAMESPACES } from './namespaces.ts'
import { APPLY, applyObject, patchedObject, patchObject, type RegistryPatchType } from './patch.ts'
import { checkName, replaceObject, storedObject, updateObject, withLiveVersion } from './update.ts'

export class Registry {
  readonly store: ObjectStore
  readonly kinds: readonly ResourceKind[]
  readonly #context: RegistryContext
  readonly #events: EventSweeper
  readonly #groups: GroupedWrites

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
    const { current } = this.#context
    this.#groups = new GroupedWrites(deps.store, {
      begin: () => {
        current.prepare(deps.kinds)
        current.isBehind = false
      },
      isOver: () => current.isBehind,
    })
    for (const name of DEFAULT_NAMESPACES) this.#ensureNamespace(name)
  }

  /** Milliseconds of the wall clock. */
  now(): number {
    return this.#context.now()
  }

  /**
   * Runs a write with the others of this turn of the event loop. Resolves, or rejects with what `write` throws, once all are on disk. A write may run
   * again when the disk fails; watchers hear of it after the whole group.
   */
  together<T>(write: () => T): Promise<T> {
    return this.#groups.add(write)
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
    const stored = storedObject(this.#context, kind, at)
    return writeView(this.#context, kind, stored, subresource, incoming.value, call)
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
    const stored = storedObject(this.#context, kind, at)
    const patched = patchedObject(subresource.show(stored.object), type, incoming.value, undefined)
    return writeView(this.#context, kind, stored, subresource, patched, call)
  }

  delete(kind: ResourceKind, at: ObjectName, options: DeleteOptions): Deleted {
    return deleteObject(this.#context, kind, at, options)
  }

  /**
   * Deletes everything that a list with these options would return (registry store.go, DeleteCollection).
   * @returns the objects before the deletion
   */
  deleteCollection(kind: ResourceKind, namespace: string, list: ListOptions, options: DeleteOptions): ListResult {
    const found = this.list(kind, namespace, list)
    for (const object of found.items) {
      const at = { namespace: metaText(object, 'namespace'), name: metaText(object, 'name') }
      try {
        this.delete(kind, at, options)
      } catch (error) {
        // Already removed as a side effect of an earlier deletion in this loop.
        if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error
      }
    }
    return { items: found.items, metadata: { ...found.metadata, resourceVersion: String(this.store.revision) } }
  }

  #ensureNamespace(name: string): void {
    if (this.store.get(keyOf(NAMESPACES, { namespace: '', name })) !== undefined) return
    const value = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
    const options = { dryRun: false, fieldValidation: 'Strict', manager: 'portcullis', force: false } as const
    const incoming: Incoming = { value, duplicates: [], strictErrors: [], text: '' }
    this.create(NAMESPACES, '', incoming, { options, warnings: [] })
  }
}

/**
 * PUT and PATCH of a subresource that presents the object in another shape, such as Scale (pkg/registry/apps/deployment/storage,
 * ScaleREST.Update).
 * @returns the view after the write
 */
function writeView(
  context: RegistryContext,
  kind: ResourceKind,
  stored: StoredObject,
  { kind: name, show, withView }: ViewSubresource,
  view: unknown,
  call: WriteCall,
): JsonObject {
  if (!isRecord(view)) throw statusError('BadRequest', `the body is not a ${name}`)
  checkName(view, stored)
  checkUid(view, kind, stored)
  limitWork(kind, view, call)
  const resourceVersion = metaText(view, 'resourceVersion')
  const written = withMetadata(withView(stored.object, view), {
    resourceVersion: resourceVersion === '' ? undefined : resourceVersion,
  })
  const shaped = shape(kind, written)
  const object = withLiveVersion(shaped.object, stored)
  return show(replaceObject(context, kind, stored, { ...shaped, object }, '', call).object)
}

/** As in ScaleREST: a view of a deleted object must not change its successor. */
function checkUid(view: JsonObject, kind: ResourceKind, { object }: StoredObject): void {
  const given = metaText(view, 'uid')
  const live = metaText(object, 'uid')
  if (given === '' || given === live) return
  const what = `Operation cannot be fulfilled on ${resourceName(kind)} ${JSON.stringify(metaText(object, 'name'))}`
  throw statusError(
    'Conflict',
    `${what}: Precondition failed: UID in precondition: ${given}, UID in object meta: ${live}`,
  )
}
