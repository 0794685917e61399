// POST: a new object (apiserver/pkg/endpoints/handlers/create.go, registry/generic/registry/store.go Create).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { invalid, StatusError, statusError } from '../../kube/api/status.ts'
import { required } from '../../kube/core/objects/field-error.ts'
import { trackUpdate } from '../../kube/core/objects/managed-fields.ts'
import { StoreConflict } from '../api/object-store.ts'
import { generateName, metaOf, metaText, withMetadata, withoutDuplicateOwners } from '../objects/object-metadata.ts'
import { alreadyExists, unclassified } from '../objects/registry-errors.ts'
import { newObject, type Others, validate } from '../objects/write-object.ts'
import { type Incoming, objectOfBody, type Shaped } from '../objects/write-object-decode.ts'
import { keyOf, type RegistryContext, type WriteCall, type Written } from './context.ts'
import { limitWork } from './limit-work.ts'
import { isNamespace, namespaceErrors, newNamespace, requireNamespace } from './namespaces.ts'

/** Attempts to find a free name for generateName. */
const NAME_ATTEMPTS = 8

/** @param namespace from the path; '' for cluster-scoped kinds */
export function createObject(
  context: RegistryContext,
  kind: ResourceKind,
  namespace: string,
  incoming: Incoming,
  call: WriteCall,
): Written {
  limitWork(kind, incoming.value, call)
  const shaped = objectOfBody(kind, incoming, call.options.fieldValidation, call.warnings)
  return insertObject(context, kind, namespace, shaped, call)
}

/** Also for an apply that creates the object, which then already has its managedFields: `tracked` is true. */
export function insertObject(
  context: RegistryContext,
  kind: ResourceKind,
  namespace: string,
  shaped: Shaped,
  call: WriteCall,
  tracked = false,
): Written {
  const owned = withoutDuplicateOwners(inNamespace(kind, shaped.object, namespace), call.warnings)
  refuseVersion(owned)
  const given = metaText(owned, 'name')
  const base = metaText(owned, 'generateName')
  if (given === '' && base === '') throw noName(kind)
  requireNamespace(context, kind, namespace, given)
  for (let attempt = 1; ; attempt++) {
    const name = given === '' ? generateName(base, context.random) : given
    try {
      return insertNamed(context, kind, namespace, name, { ...shaped, object: owned }, call, tracked)
    } catch (error) {
      const taken = error instanceof StatusError && error.reason === 'AlreadyExists'
      if (!taken || given !== '' || attempt === NAME_ATTEMPTS) throw error
    }
  }
}

function insertNamed(
  context: RegistryContext,
  kind: ResourceKind,
  namespace: string,
  name: string,
  shaped: Shaped,
  call: WriteCall,
  tracked: boolean,
): Written {
  const time = metaTime(context.now())
  const fresh = newObject(kind, shaped.object, { name, namespace, uid: context.uuid(), time })
  const made = isNamespace(kind) ? newNamespace(fresh) : (kind.prepare?.(fresh, call.by) ?? fresh)
  const object = tracked ? made : trackNew(kind, made, call, time)
  const errors = [...shaped.errors, ...(isNamespace(kind) ? namespaceErrors(name) : [])]
  const others: Others = (object) => context.current.others(kind, namespace, name, object)
  validate({ kind, object, errors, before: undefined, subresource: '' }, context.pem, others, call.warnings)
  const key = keyOf(kind, { namespace, name })
  if (context.store.get(key) !== undefined) throw alreadyExists(kind, name)
  if (call.options.dryRun) return { object, created: true }
  try {
    const [stored] = context.store.write([{ ...key, object, expected: 0 }])
    context.current.onWritten(kind, undefined, object)
    return { object: stored?.object ?? object, created: true }
  } catch (error) {
    if (error instanceof StoreConflict) throw alreadyExists(kind, name)
    throw error
  }
}

function trackNew(kind: ResourceKind, after: JsonObject, { options }: WriteCall, time: string): JsonObject {
  return trackUpdate({
    before: undefined,
    after,
    manager: options.manager,
    subresource: '',
    apiVersion: apiVersionOf(kind),
    time,
    schema: kind.schema,
    hasStatus: kind.hasStatus,
  })
}

/**
 * Puts the object into the namespace of the request (registry/rest/meta.go, EnsureObjectNamespaceMatchesRequestNamespace).
 * @throws {StatusError} 400 if it names a different one
 */
export function inNamespace(kind: ResourceKind, object: JsonObject, namespace: string): JsonObject {
  const given = metaText(object, 'namespace')
  if (!kind.namespaced) return given === '' ? object : withMetadata(object, { namespace: undefined })
  if (given !== '' && given !== namespace) {
    throw statusError(
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  }
  return given === namespace ? object : withMetadata(object, { namespace })
}

/** storage/etcd3/store.go, Create */
function refuseVersion(object: JsonObject): void {
  if ((metaOf(object)['resourceVersion'] ?? '') === '') return
  throw unclassified('resourceVersion should not be set on objects to be created')
}

function noName(kind: ResourceKind): StatusError {
  return invalid(kind.group, kind.kind, '', [required('metadata.name', 'name or generateName is required')])
}
