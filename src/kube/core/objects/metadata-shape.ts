// Parses metadata like kube-apiserver's ObjectMeta: known fields of the right types, nothing empty, and the syntax of labels, annotations,
// names, finalizers and owner references (k8s.io/apimachinery/pkg/apis/meta/v1/types.go, pkg/api/validation/objectmeta.go).

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, listOf, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import {
  labelValueErrors,
  qualifiedNameErrors,
  subdomainErrors,
  withoutTrailingDash,
} from '../../../kit/api/validation/name-errors.ts'
import { isTimestamp } from '../../../kit/api/validation/name-syntax.ts'
import { errorsOfEach, invalidShown, invalidValue, MOST_ERRORS, tooLong } from './field-error.ts'

interface ShapedMetadata {
  readonly metadata: JsonObject
  /** Paths: `metadata.foo`, `metadata.ownerReferences[0].bar`. */
  readonly unknown: readonly string[]
  /** All errors, including values of wrong types. */
  readonly errors: readonly FieldError[]
  /** The first wrong type, worded by Go's decoder (`json: cannot unmarshal ...`), for which kube-apiserver answers 400. */
  readonly malformed: string | undefined
}

/** How a field of metadata is parsed; `keepEmpty`: Go writes it even if it is empty. */
type FieldShape =
  | { readonly kind: 'text' | 'integer' | 'flag'; readonly goType?: string; readonly keepEmpty?: true }
  | { readonly kind: 'time' | 'texts' | 'textMap' | 'any' }
  | { readonly kind: 'list'; readonly struct: string; readonly fields: Fields }
type Fields = Readonly<Record<string, FieldShape>>

const TEXT: FieldShape = { kind: 'text' }
const TIME: FieldShape = { kind: 'time' }
const INTEGER: FieldShape = { kind: 'integer' }
const KEPT_INTEGER: FieldShape = { kind: 'integer', keepEmpty: true }
const UID: FieldShape = { kind: 'text', goType: 'types.UID' }
const KEPT_TEXT: FieldShape = { kind: 'text', keepEmpty: true }
const KEPT_FLAG: FieldShape = { kind: 'flag', keepEmpty: true }

const OWNER_REFERENCE: Fields = {
  apiVersion: KEPT_TEXT,
  kind: KEPT_TEXT,
  name: KEPT_TEXT,
  uid: { ...KEPT_TEXT, goType: 'types.UID' },
  controller: KEPT_FLAG,
  blockOwnerDeletion: KEPT_FLAG,
}

const MANAGED_FIELDS_ENTRY: Fields = {
  manager: TEXT,
  operation: { kind: 'text', goType: 'v1.ManagedFieldsOperationType' },
  apiVersion: TEXT,
  time: TIME,
  fieldsType: TEXT,
  fieldsV1: { kind: 'any' },
  subresource: TEXT,
}

const OBJECT_META: Fields = {
  name: TEXT,
  generateName: TEXT,
  namespace: TEXT,
  selfLink: TEXT,
  uid: UID,
  resourceVersion: TEXT,
  generation: INTEGER,
  creationTimestamp: TIME,
  deletionTimestamp: TIME,
  deletionGracePeriodSeconds: KEPT_INTEGER,
  labels: { kind: 'textMap' },
  annotations: { kind: 'textMap' },
  ownerReferences: { kind: 'list', struct: 'OwnerReference', fields: OWNER_REFERENCE },
  finalizers: { kind: 'texts' },
  managedFields: { kind: 'list', struct: 'ManagedFieldsEntry', fields: MANAGED_FIELDS_ENTRY },
}

const GO_TYPES = { text: 'string', flag: 'bool', integer: 'int64' } as const

/**
 * @param value the `metadata` of an object; undefined and null = absent. Whether a name or a namespace is required depends on the kind and
 * the request, and is left to the caller.
 */
export function shapeMetadata(value: unknown): ShapedMetadata {
  const reader = new MetadataReader()
  if (value !== undefined && value !== null && !isRecord(value)) {
    reader.wrongType('metadata', value, `Go value of type v1.ObjectMeta`)
  }
  const metadata = isRecord(value) ? reader.struct('ObjectMeta', OBJECT_META, value, 'metadata') : {}
  return {
    metadata,
    unknown: reader.unknown,
    errors: [...reader.errors, ...metadataErrors(metadata)],
    malformed: reader.malformed,
  }
}

class MetadataReader {
  readonly unknown: string[] = []
  readonly errors: FieldError[] = []
  malformed: string | undefined

  struct(name: string, fields: Fields, value: JsonObject, path: string): JsonObject {
    for (const key of Object.keys(value)) if (!Object.hasOwn(fields, key)) this.unknown.push(`${path}.${key}`)
    // In the order of Go's struct, in which some messages show it.
    const entries: [string, unknown][] = []
    for (const [key, shape] of Object.entries(fields)) {
      const member = Object.hasOwn(value, key) ? value[key] : null
      const read = this.#field(name, shape, member, `${path}.${key}`)
      if (read !== undefined) entries.push([key, read])
    }
    return Object.fromEntries(entries)
  }

  wrongType(path: string, value: unknown, target: string): void {
    const message = `json: cannot unmarshal ${jsonType(value)} into ${target}`
    this.malformed ??= message
    this.errors.push(invalidValue(path, value, message))
  }

  /** undefined = omit it. */
  #field(struct: string, shape: FieldShape, value: unknown, path: string): unknown {
    // Go writes text without `omitempty` even if it was absent.
    if (value === null) return shape.kind === 'text' && shape.keepEmpty === true ? '' : undefined
    switch (shape.kind) {
      case 'text':
      case 'flag':
      case 'integer': {
        if (!isOfKind(shape.kind, value)) {
          return this.#wrongField(struct, path, value, shape.goType ?? GO_TYPES[shape.kind])
        }
        return shape.keepEmpty !== true && (value === '' || value === 0) ? undefined : value
      }
      case 'time':
        return this.#time(struct, value, path)
      case 'texts':
        return this.#texts(struct, value, path)
      case 'textMap':
        return this.#textMap(struct, value, path)
      case 'list':
        return this.#list(struct, shape.struct, shape.fields, value, path)
      case 'any':
        return value
    }
  }

  #texts(struct: string, value: unknown, path: string): unknown {
    if (!Array.isArray(value)) return this.#wrongField(struct, path, value, '[]string')
    const texts = value.map((item: unknown, at) => {
      if (item !== null && typeof item !== 'string') this.#wrongField(struct, `${path}[${at}]`, item, 'string')
      return typeof item === 'string' ? item : ''
    })
    return texts.length === 0 ? undefined : texts
  }

  #textMap(struct: string, value: unknown, path: string): unknown {
    if (!isRecord(value)) return this.#wrongField(struct, path, value, 'map[string]string')
    const entries = Object.entries(value).map(([key, member]): [string, string] => {
      if (member !== null && typeof member !== 'string') this.#wrongField(struct, path, member, 'string')
      return [key, typeof member === 'string' ? member : '']
    })
    return entries.length === 0 ? undefined : Object.fromEntries(entries)
  }

  #list(outer: string, struct: string, fields: Fields, value: unknown, path: string): unknown {
    if (!Array.isArray(value)) return this.#wrongField(outer, path, value, `[]v1.${struct}`)
    const items = value.map((item: unknown, at) => {
      if (item !== null && !isRecord(item)) this.#wrongField(outer, `${path}[${at}]`, item, `v1.${struct}`)
      return this.struct(struct, fields, isRecord(item) ? item : {}, `${path}[${at}]`)
    })
    return items.length === 0 ? undefined : items
  }

  /** To the second, in UTC: the format of metav1.Time. */
  #time(struct: string, value: unknown, path: string): unknown {
    if (typeof value !== 'string') return this.#wrongField(struct, path, value, 'string')
    if (isTimestamp(value)) return `${new Date(value).toISOString().slice(0, 19)}Z`
    const message = `parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05Z07:00": cannot parse ${JSON.stringify(value)} as "2006"`
    this.malformed ??= message
    this.errors.push(invalidValue(path, value, message))
    return undefined
  }

  #wrongField(struct: string, path: string, value: unknown, type: string): undefined {
    const field = path.replace(/^metadata\./, '').replaceAll(/\[\d+\]/g, '')
    this.wrongType(path, value, `Go struct field ${struct}.${field} of type ${type}`)
  }
}

function isOfKind(kind: 'text' | 'flag' | 'integer', value: unknown): boolean {
  if (kind === 'text') return typeof value === 'string'
  return kind === 'flag' ? typeof value === 'boolean' : Number.isInteger(value)
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value !== 'number') return typeof value
  return Number.isInteger(value) ? 'number' : `number ${value}`
}

// Validates metadata whose types are right (k8s.io/apimachinery/pkg/api/validation/objectmeta.go).
const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** Except managedFields: invalid entries are ignored (managed-entries.ts). */
function metadataErrors(metadata: JsonObject): FieldError[] {
  return [
    ...nameErrors(metadata),
    ...labelsErrors(metadata['labels']),
    ...annotationErrors(metadata['annotations']),
    ...ownerErrors(listOf(metadata['ownerReferences']).map(recordOf)),
    ...finalizerErrors(listOf(metadata['finalizers'])),
  ]
}

function nameErrors(metadata: JsonObject): FieldError[] {
  const { generateName, name, generation } = metadata
  const errors: FieldError[] = []
  if (typeof generateName === 'string') {
    for (const error of subdomainErrors(withoutTrailingDash(generateName))) {
      errors.push(invalidValue('metadata.generateName', generateName, error))
    }
  }
  if (typeof name === 'string') {
    for (const error of subdomainErrors(name)) errors.push(invalidValue('metadata.name', name, error))
  }
  if (typeof generation === 'number' && generation < 0) {
    errors.push(invalidValue('metadata.generation', generation, 'must be greater than or equal to 0'))
  }
  return errors
}

function labelsErrors(labels: unknown): FieldError[] {
  return errorsOfEach(Object.entries(isRecord(labels) ? labels : {}), ([key, value]) => {
    const ofKey = qualifiedNameErrors(key).map((error) => invalidValue('metadata.labels', key, error))
    const ofValue = labelValueErrors(String(value)).map((error) => invalidValue('metadata.labels', value, error))
    return [...ofKey, ...ofValue]
  })
}

function annotationErrors(annotations: unknown): FieldError[] {
  const entries = Object.entries(isRecord(annotations) ? annotations : {})
  const errors = errorsOfEach(entries, ([key]) =>
    qualifiedNameErrors(key.toLowerCase()).map((error) => invalidValue('metadata.annotations', key, error)),
  )
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)), 0)
  if (size > MAX_ANNOTATIONS_BYTES) errors.push(tooLong('metadata.annotations', MAX_ANNOTATIONS_BYTES))
  return errors
}

function ownerErrors(owners: readonly JsonObject[]): FieldError[] {
  const path = 'metadata.ownerReferences'
  const errors: FieldError[] = []
  let controller = ''
  let second = false
  for (const owner of owners) {
    if (errors.length >= MOST_ERRORS) break
    const apiVersion = textOf(owner['apiVersion'])
    const kind = textOf(owner['kind'])
    const name = textOf(owner['name'])
    if (apiVersion.split('/').at(-1) === '' || apiVersion.split('/').length > 2) {
      errors.push(invalidValue(`${path}.apiVersion`, apiVersion, 'version must not be empty'))
    }
    if (kind === '') errors.push(invalidValue(`${path}.kind`, kind, 'must not be empty'))
    if (name === '') errors.push(invalidValue(`${path}.name`, name, 'must not be empty'))
    if (textOf(owner['uid']) === '') errors.push(invalidValue(`${path}.uid`, '', 'must not be empty'))
    if (apiVersion === 'v1' && kind === 'Event') {
      errors.push(invalidShown(path, JSON.stringify(owner), '/v1, Kind=Event is disallowed from being an owner'))
    }
    if (owner['controller'] !== true) continue
    // Each of these errors shows all owners: one is enough.
    if (second) continue
    if (controller !== '') {
      second = true
      const both = `Found "true" in references for ${controller} and ${kind}/${name}`
      errors.push(
        invalidShown(path, JSON.stringify(owners), `Only one reference can have Controller set to true. ${both}`),
      )
    } else controller = `${kind}/${name}`
  }
  return errors
}

function finalizerErrors(finalizers: readonly unknown[]): FieldError[] {
  const path = 'metadata.finalizers'
  const errors = errorsOfEach(finalizers, (finalizer) =>
    qualifiedNameErrors(String(finalizer)).map((error) => invalidValue(path, finalizer, error)),
  )
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalidValue(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return errors
}
