// PUT, and the last step of every patch: replaces the stored object
// (apiserver/pkg/endpoints/handlers/update.go, registry/generic/registry/store.go Update).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { finalizersOf, type JsonObject } from '../../kit/api/json/json-object.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { invalid, statusError } from '../../kube/api/status.ts'
import { invalidValue } from '../../kube/core/objects/field-error.ts'
import { trackUpdate } from '../../kube/core/objects/managed-fields.ts'
import { StoreConflict, type StoredObject } from '../api/object-store.ts'
import { isGraceOver, metaText, withMetadata, withoutDuplicateOwners } from '../objects/object-metadata.ts'
import { conflict, MODIFIED, notFound, unclassified } from '../objects/registry-errors.ts'
import { type Others, type Subresource, updatedObject, validate } from '../objects/write-object.ts'
import { type Incoming, isBuiltIn, objectOfBody, type Shaped } from '../objects/write-object-decode.ts'
import { keyOf, type RegistryContext, type WriteCall, type Written } from './context.ts'
import { inNamespace } from './create.ts'
import { removalWrites } from './deletion-writes.ts'
import { limitWork } from './limit-work.ts'
import { isNamespace, keptNamespace } from './namespaces.ts'

export function updateObject(
  context: RegistryContext,
  kind: ResourceKind,
  at: ObjectName,
  subresource: Subresource,
  incoming: Incoming,
  call: WriteCall,
): Written {
  limitWork(kind, incoming.value, call)
  const shaped = objectOfBody(kind, incoming, call.options.fieldValidation, call.warnings)
  checkName(shaped.object, at)
  const stored = storedObject(context, kind, at)
  const uid = metaText(shaped.object, 'uid')
  const live = metaText(stored.object, 'uid')
  if (uid !== '' && uid !== live) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live}`
    throw conflict(kind, at.name, why)
  }
  return replaceObject(context, kind, stored, shaped, subresource, call)
}

/** @throws {StatusError} 404 */
export function storedObject(context: RegistryContext, kind: ResourceKind, at: ObjectName): StoredObject {
  const stored = context.store.get(keyOf(kind, at))
  if (stored === undefined) throw notFound(kind, at.name)
  return stored
}

/** @throws {StatusError} 400 if the object doesn't match the path (endpoints/handlers/rest.go, checkName) */
export function checkName(object: JsonObject, at: ObjectName): void {
  const name = metaText(object, 'name')
  if (name === '') {
    const why = `the name of the object (${at.name} based on URL) was undeterminable: name must be provided`
    throw statusError('BadRequest', why)
  }
  if (name !== at.name) {
    const why = `the name of the object (${name}) does not match the name on the URL (${at.name})`
    throw statusError('BadRequest', why)
  }
}

/** @param tracked whether the object already has its managedFields */
export function replaceObject(
  context: RegistryContext,
  kind: ResourceKind,
  stored: StoredObject,
  shaped: Shaped,
  subresource: Subresource,
  call: WriteCall,
  tracked = false,
): Written {
  const before = stored.object
  const placed = inNamespace(kind, shaped.object, stored.namespace)
  checkVersion(kind, stored, placed)
  const owned = withoutDuplicateOwners(placed, call.warnings)
  const kept = isNamespace(kind) ? keptNamespace(owned, before) : owned
  const updated = updatedObject(kind, kept, before, subresource)
  const object = tracked ? updated : trackChange(kind, updated, before, subresource, call, metaTime(context.now()))
  const others: Others = (object) => context.current.others(kind, stored.namespace, stored.name, object)
  const errors: readonly FieldError[] = [...shaped.errors, ...uidErrors(placed, before)]
  validate({ kind, object, errors, before, subresource }, context.pem, others, call.warnings)
  // A no-op write is not stored: no new resourceVersion, no event.
  if (sameJson(object, before)) return { object: before, created: false }
  if (call.options.dryRun) return { object, created: false }
  return { object: store(context, kind, stored, object), created: false }
}

/** Removes the object if this removed its last finalizer while it is being deleted. */
function store(context: RegistryContext, kind: ResourceKind, stored: StoredObject, object: JsonObject): JsonObject {
  const { resource, namespace, name, revision } = stored
  const ends = isGraceOver(stored.object) && finalizersOf(object).length === 0
  const write = { resource, namespace, name, object, expected: revision }
  try {
    const written = context.store.write(ends ? removalWrites(context, kind, stored) : [write])
    context.current.onWritten(kind, stored.object, ends ? undefined : object)
    return ends ? object : (written[0]?.object ?? object)
  } catch (error) {
    if (error instanceof StoreConflict) throw conflict(kind, name, MODIFIED)
    throw error
  }
}

function trackChange(
  kind: ResourceKind,
  after: JsonObject,
  before: JsonObject,
  subresource: Subresource,
  { options }: WriteCall,
  time: string,
): JsonObject {
  return trackUpdate({
    before,
    after,
    manager: options.manager,
    subresource,
    apiVersion: apiVersionOf(kind),
    time,
    schema: kind.schema,
    hasStatus: kind.hasStatus,
  })
}

/** Updates of custom kinds and Leases need a resourceVersion (AllowUnconditionalUpdate). */
function checkVersion(kind: ResourceKind, stored: StoredObject, given: JsonObject): void {
  const version = metaText(given, 'resourceVersion')
  const unconditional = isBuiltIn(kind) && kind !== LEASES
  if (version === '' || version === '0') {
    if (unconditional) return
    throw invalid(kind.group, kind.plural, stored.name, [
      invalidValue('metadata.resourceVersion', 0, 'must be specified for an update'),
    ])
  }
  if (!/^[0-9]+$/.test(version)) {
    throw unclassified(`strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`)
  }
  if (version !== String(stored.revision)) throw conflict(kind, stored.name, MODIFIED)
}

function uidErrors(given: JsonObject, before: JsonObject): FieldError[] {
  const uid = metaText(given, 'uid')
  if (uid === '' || uid === metaText(before, 'uid')) return []
  return [invalidValue('metadata.uid', uid, 'field is immutable')]
}

/** Sets the stored version, for patches, which need not have one. */
export function withLiveVersion(object: JsonObject, stored: StoredObject): JsonObject {
  const known = metaText(object, 'resourceVersion')
  return known === '' ? withMetadata(object, { resourceVersion: String(stored.revision) }) : object
}
