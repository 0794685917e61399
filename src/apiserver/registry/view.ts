// PUT and PATCH of a subresource that presents the object in another shape, such as Scale (pkg/registry/apps/deployment/storage,
// ScaleREST.Update).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import { type ResourceKind, resourceName, type ViewSubresource } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import type { StoredObject } from '../api/object-store.ts'
import { metaText, withMetadata } from '../objects/object-metadata.ts'
import { type Incoming, shape } from '../objects/write-object-decode.ts'
import type { RegistryContext, WriteCall } from './context.ts'
import { limitWork } from './limit-work.ts'
import { type APPLY, patchedObject, type RegistryPatchType } from './patch.ts'
import { checkName, replaceObject, storedObject, withLiveVersion } from './update.ts'

/** @returns the view after the write */
export function updateView(
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

/** @returns the view after the write */
export function patchView(
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
