// ListOptions of a list, watch or deletecollection
// (apimachinery/pkg/apis/meta/internalversion: validation.go, defaults.go; endpoints/handlers/get.go).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../kit/api/json/object-shape.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { invalid, statusError } from '../../kube/api/status.ts'
import { forbidden, notSupported } from '../../kube/core/objects/field-error.ts'
import { type FieldTerm, parseFieldTerms } from '../../kube/core/selectors/field-terms.ts'
import { type LabelRequirements, labelsMatch } from '../../kube/core/selectors/label-requirement.ts'
import { parseLabelSelector } from '../../kube/core/selectors/parse-selector.ts'
import type { Query } from '../http/query.ts'
import { metaOf } from '../objects/object-metadata.ts'
import { unclassified } from '../objects/registry-errors.ts'
import { isBuiltIn } from '../objects/write-object-decode.ts'

interface Selection {
  readonly labels: LabelRequirements
  readonly fields: FieldSelector
}

export interface ListOptions extends Selection {
  /** 0 = no limit. */
  readonly limit: number
  readonly continueToken: string
  /** '' = the newest. */
  readonly resourceVersion: string
  readonly resourceVersionMatch: string
}

export interface WatchOptions extends Selection {
  /** Revision after which events are sent; undefined = from now. */
  readonly after: number | undefined
  /** Sends existing objects first, as ADDED. */
  readonly initialEvents: boolean
  readonly bookmarks: boolean
  /** Sends a bookmark at the end of the initial events. */
  readonly initialBookmark: boolean
  /** undefined = the server's choice. */
  readonly timeoutSeconds: number | undefined
}

export const LIST_EVERYTHING: ListOptions = {
  labels: [],
  fields: [],
  limit: 0,
  continueToken: '',
  resourceVersion: '',
  resourceVersionMatch: '',
}

const EXACT = 'Exact'
const NOT_OLDER = 'NotOlderThan'
const REVISION = /^(0|[1-9][0-9]{0,15})$/

/** The labels of an object. */
export function labelsOf(object: JsonObject): JsonObject {
  return recordOf(metaOf(object)['labels'])
}

export function isSelected({ labels, fields }: Selection, object: JsonObject): boolean {
  return labelsMatch(labels, labelsOf(object)) && fieldsMatch(fields, object)
}

/** @throws {StatusError} 400 for malformed options, 422 for options that exclude each other */
export function readListOptions(query: Query, kind: ResourceKind): ListOptions {
  const resourceVersion = query.text('resourceVersion')
  const resourceVersionMatch = query.text('resourceVersionMatch')
  const continueToken = query.text('continue')
  const limit = query.integer('limit') ?? 0
  query.integer('timeoutSeconds')
  const selection = readSelection(query, kind)
  const errors: FieldError[] = []
  if (resourceVersionMatch !== '') {
    if (resourceVersion === '') {
      errors.push(
        forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
      )
    }
    if (continueToken !== '') {
      errors.push(forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'))
    }
    if (resourceVersionMatch !== EXACT && resourceVersionMatch !== NOT_OLDER) {
      errors.push(unknownMatch(resourceVersionMatch, [EXACT, NOT_OLDER, '']))
    }
    if (resourceVersionMatch === EXACT && resourceVersion === '0') {
      errors.push(
        forbidden('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
      )
    }
  }
  if (query.has('sendInitialEvents')) {
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  if (errors.length > 0) throw optionsInvalid(errors)
  if (resourceVersion !== '') revisionOf(resourceVersion)
  return { ...selection, limit: Math.max(0, limit), continueToken, resourceVersion, resourceVersionMatch }
}

/** @throws {StatusError} as `readListOptions` */
export function readWatchOptions(query: Query, kind: ResourceKind): WatchOptions {
  const resourceVersion = query.text('resourceVersion')
  const match = query.text('resourceVersionMatch')
  const asked = query.bool('sendInitialEvents')
  const timeoutSeconds = query.integer('timeoutSeconds')
  query.integer('limit')
  const selection = readSelection(query, kind)
  const errors: FieldError[] = []
  if (asked !== undefined && match !== NOT_OLDER) {
    const detail = `sendInitialEvents requires setting resourceVersionMatch to ${NOT_OLDER}`
    errors.push(forbidden('resourceVersionMatch', detail))
  }
  if (match !== '') {
    if (asked === undefined) {
      const detail = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'
      errors.push(forbidden('resourceVersionMatch', detail))
    }
    if (match !== NOT_OLDER) errors.push(unknownMatch(match, [NOT_OLDER]))
    if (query.text('continue') !== '') {
      errors.push(forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'))
    }
  }
  if (errors.length > 0) throw optionsInvalid(errors)
  const fromAny = resourceVersion === '' || resourceVersion === '0'
  const bookmarks = query.bool('allowWatchBookmarks') === true
  const initialEvents = asked ?? fromAny
  return {
    ...selection,
    after: fromAny ? undefined : revisionOf(resourceVersion, unclassified),
    initialEvents,
    bookmarks,
    initialBookmark: initialEvents && bookmarks,
    timeoutSeconds: timeoutSeconds === undefined || timeoutSeconds <= 0 ? undefined : timeoutSeconds,
  }
}

/** @throws {StatusError} 400 */
function readSelection(query: Query, kind: ResourceKind): Selection {
  try {
    return {
      labels: parseLabelSelector(query.text('labelSelector')),
      fields: parseFieldSelector(query.text('fieldSelector'), kind),
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw statusError('BadRequest', error.message)
    throw error
  }
}

/**
 * @param refuse creates the error for an invalid resourceVersion. Default: 400, as for a list
 * @throws {StatusError}
 */
export function revisionOf(resourceVersion: string, refuse: (problem: string) => Error = invalidVersion): number {
  if (REVISION.test(resourceVersion)) return Number(resourceVersion)
  // storage/api_object_versioner.go, ParseResourceVersion
  const text = JSON.stringify(resourceVersion)
  throw refuse(`resourceVersion: Invalid value: ${text}: strconv.ParseUint: parsing ${text}: invalid syntax`)
}

function invalidVersion(problem: string): Error {
  return statusError('BadRequest', `invalid resource version: ${problem}`)
}

function optionsInvalid(errors: readonly FieldError[]): Error {
  return invalid('meta.k8s.io', 'ListOptions', '', errors)
}

function unknownMatch(match: string, supported: readonly string[]): FieldError {
  return notSupported('resourceVersionMatch', match, supported)
}

// Which fields the kinds have that field selectors name: `metadata.name=a,type!=Opaque`.

type FieldSelector = readonly FieldTerm[]

/** Selectors of core kinds for fields elsewhere in the object (pkg/registry/core/event/strategy.go). */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['source', 'source.component'],
  ['name', 'metadata.name'],
])

/** @throws {SyntaxError} with kube-apiserver's message, also for a field that the kind doesn't support */
export function parseFieldSelector(text: string, kind: ResourceKind): FieldSelector {
  const terms = parseFieldTerms(text)
  for (const { field } of terms) checkField(field, kind)
  return terms
}

function fieldsMatch(selector: FieldSelector, object: JsonObject): boolean {
  return selector.every(({ field, value, negated }) => (fieldOf(object, field) === value) !== negated)
}

function checkField(field: string, kind: ResourceKind): void {
  const { selectableFields, namespaced } = kind
  if (field === 'metadata.name' || selectableFields.includes(field)) return
  if (field === 'metadata.namespace' && namespaced) return
  // runtime.DefaultMetaV1FieldSelectorConversion, for built-in kinds without selectable fields of their own (Lease).
  if (isBuiltIn(kind) && selectableFields.length === 0) {
    throw new SyntaxError(
      `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    )
  }
  throw new SyntaxError(`field label not supported: ${field}`)
}

/** The field as text; '' if absent. */
function fieldOf(object: JsonObject, field: string): string {
  let value: unknown = object
  for (const key of (ELSEWHERE.get(field) ?? field).split('.')) {
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}
