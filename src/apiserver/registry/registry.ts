// The registry: every operation on objects, with the rules of Kubernetes, for all callers. HTTP comes before it (routes.ts),
// the store behind it. Everything is synchronous: nothing happens between two steps of an operation.

import { EVENTS, NAMESPACES } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { StatusError, statusError } from '../../api/kube/status.ts'
import type { ObjectName } from '../../api/ports/object-client.ts'
import type { ObjectStore, StoredObject } from '../../api/ports/object-store.ts'
import { type ResourceKind, resourceName, type ViewSubresource } from '../../api/ports/resource-kind.ts'
import { type ListResult, listObjects } from '../list/list.ts'
import type { ListOptions } from '../list/options.ts'
import { metaText, withMetadata } from '../objects/object-metadata.ts'
import type { Subresource } from '../objects/write-object.ts'
import { type Incoming, shape } from '../objects/write-object-decode.ts'
import { applyObject } from './apply.ts'
import { keyOf, type RegistryContext, type RegistryDeps, type WriteCall, type Written } from './context.ts'
import { createObject } from './create.ts'
import { CurrentObjects } from './current.ts'
import { type Deleted, deleteObject } from './deletion.ts'
import type { DeleteOptions } from './deletion-options.ts'
import { removal } from './deletion-writes.ts'
import { limitWork } from './limit-work.ts'
import { DEFAULT_NAMESPACES } from './namespaces.ts'
import { APPLY, patchedObject, patchObject, type RegistryPatchType } from './patch.ts'
import { checkName, replaceObject, storedObject, updateObject, withLiveVersion } from './update.ts'

export class Registry {
  readonly store: ObjectStore
  readonly kinds: readonly ResourceKind[]
  readonly #context: RegistryContext
  readonly #events: EventSweeper

  /** Creates the default namespaces. */
  constructor(deps: RegistryDeps) {
    this.store = deps.store
    this.kinds = deps.kinds
    // Methods of a class are not copied by a spread.
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

  /** @returns the view as it is afterwards */
  updateView(
    kind: ResourceKind,
    at: ObjectName,
    subresource: ViewSubresource,
    incoming: Incoming,
    call: WriteCall,
  ): JsonObject {
    return updateView(this.#context, kind, at, subresource, incoming, call)
  }

  /** @returns the view as it is afterwards */
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

// DELETE of a collection: everything that a list with these options would return (registry store.go, DeleteCollection).

/** @returns the objects before the deletion */
function deleteCollection(
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
      // It was removed with another one that had waited for it.
      if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error
    }
  }
  return { items: found.items, metadata: { ...found.metadata, resourceVersion: String(context.store.revision) } }
}

// Events are kept for an hour (kube-apiserver --event-ttl), up to a maximum number.
const TTL_MS = 60 * 60 * 1000
const SWEEP_MS = 60 * 1000
/** About a kilobyte each. */
const MAX_EVENTS = 5000
/** Number of Events removed in one batch. */
const BATCH = 500

function isEvent({ group, plural }: ResourceKind): boolean {
  return group === EVENTS.group && plural === EVENTS.plural
}

/** Removes old Events: at most once a minute, and whenever there is a batch too many. */
export class EventSweeper {
  readonly #store: ObjectStore
  readonly #maxEvents: number
  #nextMs = 0
  #written = 0

  constructor(store: ObjectStore, maxEvents: number = MAX_EVENTS) {
    this.#store = store
    this.#maxEvents = maxEvents
  }

  /** To be called after an Event was written. */
  onWrite(nowMs: number): void {
    this.#written++
    if (nowMs < this.#nextMs && this.#written < Math.min(BATCH, this.#maxEvents)) return
    this.sweep(nowMs)
  }

  sweep(nowMs: number): void {
    this.#nextMs = nowMs + SWEEP_MS
    this.#written = 0
    const resource = resourceName(EVENTS)
    const events = [...this.#store.list(resource, { namespace: '' })].sort((a, b) => a.revision - b.revision)
    const surplus = events.length - this.#maxEvents
    const old = events.filter((event, at) => at < surplus || nowMs - lastSeenMs(event) > TTL_MS)
    for (let at = 0; at < old.length; at += BATCH) this.#store.write(old.slice(at, at + BATCH).map(removal))
  }
}

/** When it was last written; an invalid time counts as long ago. */
function lastSeenMs({ object }: StoredObject): number {
  const times = [object['lastTimestamp'], object['eventTime'], metaText(object, 'creationTimestamp')]
  return Math.max(0, ...times.map((time) => (typeof time === 'string' ? Date.parse(time) || 0 : 0)))
}

// PUT and PATCH of a subresource that shows the object in another shape, such as Scale (pkg/registry/apps/deployment/storage,
// ScaleREST.Update).

/** @returns the view as it is afterwards */
function updateView(
  context: RegistryContext,
  kind: ResourceKind,
  at: ObjectName,
  subresource: ViewSubresource,
  incoming: Incoming,
  call: WriteCall,
): JsonObject {
  const stored = storedObject(context, kind, at)
  return writeView(context, kind, stored, subresource, incoming.value, call)
}

/** @returns the view as it is afterwards */
function patchView(
  context: RegistryContext,
  kind: ResourceKind,
  at: ObjectName,
  subresource: ViewSubresource,
  type: Exclude<RegistryPatchType, typeof APPLY>,
  incoming: Incoming,
  call: WriteCall,
): JsonObject {
  const stored = storedObject(context, kind, at)
  const patched = patchedObject(subresource.show(stored.object), type, incoming.value, undefined)
  return writeView(context, kind, stored, subresource, patched, call)
}

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

/** As ScaleREST does: a view of an object that is gone does not change its successor. */
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
