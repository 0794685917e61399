// Server-side apply (apiserver/pkg/endpoints/handlers/patch.go applyPatcher; apimachinery/pkg/util/managedfields).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { statusError } from '../../kube/api/status.ts'
import { applyConfiguration, applyConflict } from '../../kube/core/objects/server-side-apply.ts'
import type { StoredObject } from '../api/object-store.ts'
import { metadataOf, metaText, withMetadata } from '../objects/object-metadata.ts'
import { conflict, notFound } from '../objects/registry-errors.ts'
import type { Subresource } from '../objects/write-object.ts'
import { type Incoming, shape } from '../objects/write-object-decode.ts'
import { keyOf, type RegistryContext, type WriteCall, type Written } from './context.ts'
import { inNamespace, insertObject } from './create.ts'
import { limitWork } from './limit-work.ts'
import { checkName, replaceObject, withLiveVersion } from './update.ts'

export function applyObject(
  context: RegistryContext,
  kind: ResourceKind,
  at: ObjectName,
  subresource: Subresource,
  incoming: Incoming,
  call: WriteCall,
): Written {
  const stored = context.store.get(keyOf(kind, at))
  const applied = appliedObject(kind, at, incoming)
  limitWork(kind, applied, call)
  if (stored === undefined && subresource !== '') throw notFound(kind, at.name)
  if (stored === undefined && metaText(applied, 'uid') !== '') {
    const uid = metaText(applied, 'uid')
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`
    throw conflict(kind, at.name, why)
  }
  const result = merge(context, kind, stored, applied, subresource, call)
  warnOfDuplicates(incoming, call)
  limitWork(kind, result, call)
  const shaped = shape(kind, result, undefined, stored?.object)
  if (stored === undefined) {
    // A version without an existing object is meaningless, but not an error.
    const fresh = { ...shaped, object: withMetadata(shaped.object, { resourceVersion: undefined }) }
    return insertObject(context, kind, at.namespace, fresh, call, true)
  }
  const object = withLiveVersion(shaped.object, stored)
  return replaceObject(context, kind, stored, { ...shaped, object }, subresource, call, true)
}

/** @throws {StatusError} 400 */
function appliedObject(kind: ResourceKind, at: ObjectName, { value }: Incoming): JsonObject {
  const given = isRecord(value) ? value : {}
  const managed = metadataOf(given)['managedFields']
  if (Array.isArray(managed) && managed.length > 0) {
    throw statusError('BadRequest', 'metadata.managedFields must be nil')
  }
  if (given['apiVersion'] !== apiVersionOf(kind) || given['kind'] !== kind.kind) {
    const version = told(given['apiVersion'])
    const named = `${version.includes('/') ? version : `/${version}`}, Kind=${told(given['kind'])}`
    throw statusError('BadRequest', `invalid object type: ${named}`)
  }
  const placed = inNamespace(kind, given, at.namespace)
  // The name may come from the path.
  const named = metaText(placed, 'name') === '' ? withMetadata(placed, { name: at.name }) : placed
  checkName(named, at)
  return named
}

/** JSON: an object with its own `toString` can't be converted to a string. */
function told(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function merge(
  context: RegistryContext,
  kind: ResourceKind,
  stored: StoredObject | undefined,
  applied: JsonObject,
  subresource: Subresource,
  { options }: WriteCall,
): JsonObject {
  const outcome = applyConfiguration({
    live: stored?.object,
    applied,
    manager: options.manager,
    force: options.force,
    subresource,
    apiVersion: apiVersionOf(kind),
    time: metaTime(context.now()),
    schema: kind.schema,
    hasStatus: kind.hasStatus,
  })
  if ('conflicts' in outcome) throw applyConflict(outcome.conflicts)
  // A version in the patch is a precondition.
  const version = metaText(applied, 'resourceVersion')
  return version === '' ? outcome.object : withMetadata(outcome.object, { resourceVersion: version })
}

function warnOfDuplicates({ strictErrors }: Incoming, { options, warnings }: WriteCall): void {
  if (strictErrors.length === 0 || options.fieldValidation === 'Ignore') return
  if (options.fieldValidation === 'Strict') {
    throw statusError(
      'BadRequest',
      `error strict decoding YAML: error converting YAML to JSON: ${strictErrors.join('\n')}`,
    )
  }
  for (const error of strictErrors) warnings.push(error)
}
