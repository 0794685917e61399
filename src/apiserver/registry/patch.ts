// PATCH: applies a merge patch, a JSON patch or a strategic merge patch to the stored object
// (apiserver/pkg/endpoints/handlers/patch.go), or a configuration: server-side apply.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { invalid, statusError } from '../../kube/api/status.ts'
import { invalidValue } from '../../kube/core/objects/field-error.ts'
import { goJson } from '../../kube/core/objects/go-values.ts'
import { jsonPatch, mergePatch } from '../../kube/core/objects/patch.ts'
import { applyConfiguration, applyConflict } from '../../kube/core/objects/server-side-apply.ts'
import type { StoredObject } from '../api/object-store.ts'
import { applyFieldValidation, strictErrors } from '../objects/field-validation.ts'
import { metaOf, metaText, withMetadata } from '../objects/object-metadata.ts'
import { conflict, notFound } from '../objects/registry-errors.ts'
import type { Subresource } from '../objects/write-object.ts'
import { type Incoming, isBuiltIn, shape } from '../objects/write-object-decode.ts'
import { keyOf, type RegistryContext, type WriteCall, type Written } from './context.ts'
import { inNamespace, insertObject } from './create.ts'
import { limitWork } from './limit-work.ts'
import { strategicPatch } from './strategic-patch.ts'
import { checkName, replaceObject, storedObject, withLiveVersion } from './update.ts'

export const APPLY = 'application/apply-patch+yaml'
const JSON_PATCH = 'application/json-patch+json'
const MERGE_PATCH = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'

export type RegistryPatchType = typeof APPLY | typeof JSON_PATCH | typeof MERGE_PATCH | typeof STRATEGIC

const OPERATION_FIELDS: readonly string[] = ['op', 'path', 'from', 'value']

/** Strategic merge patches are only for kinds compiled into clients. */
export function patchTypesOf(kind: ResourceKind): readonly RegistryPatchType[] {
  const types: RegistryPatchType[] = [JSON_PATCH, MERGE_PATCH, APPLY]
  return isBuiltIn(kind) ? [...types, STRATEGIC] : types
}

export function patchObject(
  context: RegistryContext,
  kind: ResourceKind,
  at: ObjectName,
  subresource: Subresource,
  type: Exclude<RegistryPatchType, typeof APPLY>,
  incoming: Incoming,
  call: WriteCall,
): Written {
  const stored = storedObject(context, kind, at)
  const patched = patchedObject(stored.object, type, incoming.value, kind.schema)
  if (!isRecord(patched)) throw statusError('BadRequest', 'the result of the patch is not an object')
  limitWork(kind, patched, call)
  const typed = checkKept(kind, patched, at.name)
  checkName(typed, at)
  const shaped = shape(kind, typed, (problem) => badPatch(patched, problem), stored.object)
  const errors = strictErrors(patchErrors(type, incoming), shaped.unknown)
  const problem = applyFieldValidation(errors, call.options.fieldValidation, call.warnings)
  if (problem !== undefined) throw badPatch(patched, problem)
  const object = withLiveVersion(shaped.object, stored)
  return replaceObject(context, kind, stored, { ...shaped, object }, subresource, call)
}

/** @param schema of the object; undefined = all lists are replaced */
export function patchedObject(
  object: JsonObject,
  type: RegistryPatchType,
  patch: unknown,
  schema: JsonSchema | undefined,
): unknown {
  if (type === JSON_PATCH) return jsonPatch(object, patch)
  return type === STRATEGIC ? strategicPatch(object, patch, schema) : mergePatch(object, patch)
}

/** Errors in the patch itself. */
function patchErrors(type: RegistryPatchType, { value, strictErrors: errors }: Incoming): readonly string[] {
  if (type !== JSON_PATCH || !Array.isArray(value)) return errors
  const unknown = value.flatMap((operation: unknown, at) =>
    Object.keys(isRecord(operation) ? operation : {})
      .filter((key) => !OPERATION_FIELDS.includes(key))
      .map((key) => `unknown field "[${at}].${key}"`),
  )
  return [...errors, ...unknown].map((error) => `json patch ${error}`)
}

/** apiVersion and kind can't be patched. */
function checkKept(kind: ResourceKind, patched: JsonObject, name: string): JsonObject {
  if (patched['kind'] === undefined || patched['kind'] === '') {
    throw badPatch(patched, `Object 'Kind' is missing in '${goJson(patched)}'`)
  }
  if (patched['apiVersion'] === undefined || patched['apiVersion'] === '') {
    throw badPatch(patched, `Object 'apiVersion' is missing in '${goJson(patched)}'`)
  }
  const version = apiVersionOf(kind)
  if (patched['apiVersion'] !== version) {
    throw invalid(kind.group, kind.kind, name, [
      invalidValue('apiVersion', patched['apiVersion'], `must be ${version}`),
    ])
  }
  return patched
}

/** 422 with the whole object, as in kube-apiserver. */
function badPatch(patched: JsonObject, problem: string): Error {
  return invalid('', '', '', [invalidValue('patch', goJson(patched), problem)])
}

/** Server-side apply (apiserver/pkg/endpoints/handlers/patch.go applyPatcher; apimachinery/pkg/util/managedfields). */
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
  const result = appliedTo(context, kind, stored, applied, subresource, call)
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
  const managed = metaOf(given)['managedFields']
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

function appliedTo(
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
