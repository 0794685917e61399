// Prepares an object for storing: the server's fields of metadata, immutable fields, and
// validation (apiserver/pkg/registry/rest: create.go, update.go; apiextensions customresource/strategy.go).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import { finalizersOf, type JsonObject } from '../../kit/api/json/json-object.ts'
import { asCause, errorText } from '../../kit/api/validation/field-causes.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { invalid } from '../../kube/api/status.ts'
import { forbidden, invalidValue } from '../../kube/core/objects/field-error.ts'
import { goQuote } from '../../kube/core/objects/go-values.ts'
import { validateShape } from '../../kube/core/objects/structural-schema.ts'
import { isBeingDeleted, metaNumber, metaOf, metaText, withFields, withMetadata } from './object-metadata.ts'
import { isBuiltIn } from './write-object-decode.ts'

export type Subresource = '' | 'status'

/** The write, for the checks. */
interface Draft {
  readonly kind: ResourceKind
  readonly object: JsonObject
  /** Errors found while decoding. */
  readonly errors: readonly FieldError[]
  readonly before: JsonObject | undefined
  readonly subresource: Subresource
}

const SYSTEM_FIELDS: JsonObject = {
  uid: undefined,
  creationTimestamp: undefined,
  deletionTimestamp: undefined,
  deletionGracePeriodSeconds: undefined,
  selfLink: undefined,
  resourceVersion: undefined,
  generation: undefined,
}

/** A new object with the fields that only the server sets (BeforeCreate). @param namespace '' for cluster-scoped kinds */
export function newObject(
  kind: ResourceKind,
  object: JsonObject,
  own: { readonly name: string; readonly namespace: string; readonly uid: string; readonly time: string },
): JsonObject {
  const fresh = withMetadata(object, {
    ...SYSTEM_FIELDS,
    name: own.name,
    namespace: own.namespace === '' ? undefined : own.namespace,
    uid: own.uid,
    creationTimestamp: own.time,
    generation: kind.hasGeneration ? 1 : undefined,
  })
  return kind.hasStatus ? withFields(fresh, { status: undefined }) : fresh
}

/** The stored object after an update (BeforeUpdate): immutable fields are kept. */
export function updatedObject(
  kind: ResourceKind,
  given: JsonObject,
  before: JsonObject,
  subresource: Subresource,
): JsonObject {
  const old = metaOf(before)
  if (subresource === 'status') {
    const { managedFields } = metaOf(given)
    return withMetadata(withFields(before, { status: given['status'] }), { managedFields })
  }
  const kept = kind.hasStatus ? withFields(given, { status: before['status'] }) : given
  const generation = metaNumber(before, 'generation')
  return withMetadata(kept, {
    ...SYSTEM_FIELDS,
    name: old['name'],
    namespace: old['namespace'],
    uid: old['uid'],
    creationTimestamp: old['creationTimestamp'],
    deletionTimestamp: old['deletionTimestamp'],
    deletionGracePeriodSeconds: old['deletionGracePeriodSeconds'],
    resourceVersion: old['resourceVersion'],
    generation: kind.hasGeneration ? generation + (sameFields(kept, before, ['metadata']) ? 0 : 1) : undefined,
  })
}

/** Objects of the kind with a claim in common with `object`. */
export type Others = (object: JsonObject) => readonly JsonObject[]

/**
 * Validates an object by itself and against the others of its kind. Warnings are returned to the client.
 * @param others all other objects of the kind with a claim in common with the object
 * @throws {StatusError} 422 with all causes
 */
export function validate(draft: Draft, pem: PemChecks, others: Others, warnings: string[]): void {
  const { kind, object, before, subresource } = draft
  const shapeErrors = typeErrors(kind, object)
  let errors = shapeErrors
  if (shapeErrors.length === 0) {
    // Not a spread: there may be more than a call takes arguments.
    errors = [...draft.errors, ...finalizerErrors(object, before), ...schemaErrors(kind, object)]
    if (subresource === '') errors = [...errors, ...ruleErrors(draft, errors, pem, others, warnings)]
    else errors = errors.filter(({ path }) => concernsStatus(path))
  }
  if (errors.length === 0) return
  const named = typeof object['kind'] === 'string' ? object['kind'] : kind.kind
  throw invalid(kind.group, named, metaText(object, 'name'), errors)
}

/** Go accepts an empty string as base64; the format of a schema doesn't. */
function schemaErrors(kind: ResourceKind, object: JsonObject): FieldError[] {
  const errors = validateShape(kind.schema, object)
  return errors.filter(({ message }) => !(isBuiltIn(kind) && message.endsWith(' must be of type byte: ""')))
}

function concernsStatus(field: string): boolean {
  return (
    field.startsWith('metadata') || field === 'status' || field.startsWith('status.') || field.startsWith('status[')
  )
}

/** The kind does not match the path (customresource/validator.go, ValidateTypeMeta). */
function typeErrors(kind: ResourceKind, object: JsonObject): FieldError[] {
  const given = object['kind']
  if (given === kind.kind) return []
  return [invalidValue('kind', given ?? '', `must be ${kind.kind}`)]
}

/** The rules of the kind, except where the schema failed already: a rule sees a value of the wrong type as absent. */
function ruleErrors(
  { kind, object, before }: Draft,
  found: readonly FieldError[],
  pem: PemChecks,
  others: Others,
  warnings: string[],
): FieldError[] {
  const conflicts = kind.conflicts === undefined ? [] : kind.conflicts(object, others(object))
  const problems = [...kind.check(object, before, pem), ...conflicts]
  const errors: FieldError[] = []
  for (const problem of problems) {
    if (problem.severity === 'warning') warnings.push(errorText(problem))
    else if (!found.some(({ path }) => covers(path, problem.path))) errors.push(asCause(problem, object))
  }
  return errors
}

/** Whether an error at `field` is the same as an error at `path`, or causes it. */
function covers(field: string, path: string): boolean {
  return field === path || field.startsWith(`${path}.`) || path.startsWith(`${field}.`) || path.startsWith(`${field}[`)
}

/** Once an object is being deleted, no finalizers can be added (validation.ValidateNoNewFinalizers). */
function finalizerErrors(object: JsonObject, before: JsonObject | undefined): FieldError[] {
  if (before === undefined || !isBeingDeleted(before)) return []
  const old = new Set(finalizersOf(before))
  const added = finalizersOf(object).filter((name) => !old.has(name))
  if (added.length === 0) return []
  const list = added.map(goQuote).join(', ')
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`
  return [forbidden('metadata.finalizers', detail)]
}

/** Whether a write changes anything: compares all top-level fields other than `except`. */
function sameFields(a: JsonObject, b: JsonObject, except: readonly string[]): boolean {
  const rest = (object: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(object).filter(([key]) => !except.includes(key)))
  return sameJson(rest(a), rest(b))
}
