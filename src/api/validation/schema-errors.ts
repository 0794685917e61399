// Checks a value against a schema with ajv, and says what is wrong in the words and with the paths of Kubernetes.

import { Ajv, type DefinedError, type ValidateFunction } from 'ajv'
import type { FieldError, FieldErrorReason } from '../kube/field-error.ts'
import { type JsonSchema, MAX_INT32 } from '../kube/json-schema.ts'
import { propertyOf } from '../kube/object-shape.ts'
import { childPath, MOST_REPORTED, type SeverityCounts, shown } from './field-errors.ts'
import { nearestName } from './nearest-name.ts'

export interface ShapeErrors {
  /** At most one for each path, and no more than are reported; unknown fields included, as warnings. */
  readonly problems: readonly FieldError[]
  /** Those beyond. */
  readonly more: Readonly<SeverityCounts>
  /** Of all of them, reported or not. */
  readonly paths: ReadonlySet<string>
  /** Paths at which something of a wrong type stands: what it should have said is unknown. */
  readonly mistyped: ReadonlySet<string>
}

/** `path` is where `value` stands in its object. */
export type SchemaCheck = (value: unknown, path: string) => ShapeErrors

// Formats and patterns are checked by rules of our own, with better messages.
const FORMATS = { byte: true, 'date-time': true, int32: true, int64: true } as const

export function createSchemaCheck(schema: JsonSchema): SchemaCheck {
  const ajv = new Ajv({ allErrors: true, verbose: true, formats: FORMATS })
  const validate: ValidateFunction = ajv.compile(strict(schema))
  return (value, path) => {
    const problems: FieldError[] = []
    const paths = new Set<string>()
    const mistyped = new Set<string>()
    const more = { error: 0, warning: 0 }
    if (validate(value)) return { problems, more, paths, mistyped }
    const found = { error: 0, warning: 0 }
    // The list is ajv's own, and its type is a union of what its keywords report. It may be as long as the object has members.
    for (const error of (validate.errors ?? []) as DefinedError[]) {
      const place = locate(schema, error, path)
      if (error.keyword === 'type') mistyped.add(place.path)
      if (paths.has(place.path)) continue
      paths.add(place.path)
      const severity = error.keyword === 'additionalProperties' ? 'warning' : 'error'
      // Describing takes longer than finding.
      if (found[severity]++ >= MOST_REPORTED) more[severity]++
      else
        problems.push({
          reason: REASONS.get(error.keyword) ?? 'FieldValueInvalid',
          ...describe(place.schema, error),
          path: place.path,
          severity,
        })
    }
    return { problems, more, paths, mistyped }
  }
}

/** Of what has none: FieldValueInvalid. */
const REASONS: ReadonlyMap<string, FieldErrorReason> = new Map([
  ['required', 'FieldValueRequired'],
  ['additionalProperties', 'FieldValueForbidden'],
  ['uniqueItems', 'FieldValueDuplicate'],
])

/** As ajv is to see it. A CRD may not say additionalProperties: false: the API server prunes, or rejects when asked. */
function strict(schema: JsonSchema): object {
  const entries = Object.entries(schema).filter(
    ([keyword]) => keyword !== 'pattern' && !keyword.startsWith('x-kubernetes-'),
  )
  const properties = Object.entries(schema.properties ?? {}).map(([key, known]) => [key, strict(known)])
  const { additionalProperties: values } = schema
  const open = values !== undefined ? strict(values) : schema['x-kubernetes-preserve-unknown-fields'] === true
  return {
    ...Object.fromEntries(entries),
    ...(schema.items !== undefined && { items: strict(schema.items) }),
    ...(schema['x-kubernetes-list-type'] === 'set' && { uniqueItems: true }),
    ...(schema.type === 'object' && { properties: Object.fromEntries(properties), additionalProperties: open }),
  }
}

/** @param schema of the place that the error is about, or for a member that is missing or unknown, of its parent */
function describe(schema: JsonSchema, error: DefinedError): Pick<FieldError, 'message' | 'fix'> {
  const problem = (message: string, fix: string): Pick<FieldError, 'message' | 'fix'> => ({ message, fix })
  switch (error.keyword) {
    case 'required': {
      const name = error.params.missingProperty
      const what = propertyOf(schema, name)?.description ?? ''
      return problem('is required', `add ${name}: ${firstSentence(what)}`)
    }
    case 'additionalProperties':
      return problem('unknown field, ignored', unknownFieldFix(schema, error.params.additionalProperty))
    case 'type':
      return problem(`is ${typeOf(error.data)}, not ${TYPE_NAMES[schema.type]}`, typeFix(schema))
    case 'enum':
      return problem(`${shown(error.data)} is not known`, choiceFix(schema.enum ?? [], error.data))
    case 'minimum':
    case 'maximum':
      return problem(`${shown(error.data)} is out of range`, `write a number ${rangeOf(schema)}`)
    case 'minItems':
      return problem('is empty', 'add at least one entry')
    case 'minLength':
      return problem('is empty', `write ${firstSentence(schema.description ?? 'a value')}`)
    case 'maxLength':
      return problem('is too long', `write at most ${schema.maxLength ?? 0} characters`)
    case 'maxItems':
      return problem('has too many entries', `write at most ${schema.maxItems ?? 0}`)
    case 'maxProperties':
      return problem('has too many entries', `write at most ${schema.maxProperties ?? 0}`)
    case 'uniqueItems':
      return problem('is named twice', 'remove one of the two')
    default:
      return problem(error.message ?? 'is not valid', 'see the description of the field')
  }
}

/** Where the error is, and the schema that its description needs. */
function locate(root: JsonSchema, error: DefinedError, rootPath: string): { path: string; schema: JsonSchema } {
  const { path, schema } = placeOf(root, error.instancePath, rootPath)
  switch (error.keyword) {
    case 'required':
      return { path: childPath(path, error.params.missingProperty), schema }
    case 'additionalProperties':
      return { path: childPath(path, error.params.additionalProperty), schema }
    case 'uniqueItems':
      return { path: `${path}[${error.params.i}]`, schema }
    default:
      return { path, schema }
  }
}

/** `/servers/0/endpoint` (a JSON pointer, RFC 6901) as a path, and the schema of what is there. */
function placeOf(root: JsonSchema, pointer: string, rootPath: string): { path: string; schema: JsonSchema } {
  let path = rootPath
  let schema = root
  for (const escaped of pointer.split('/').slice(1)) {
    const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~')
    if (schema.items !== undefined) {
      path = `${path}[${key}]`
      schema = schema.items
    } else {
      path = childPath(path, key)
      schema = propertyOf(schema, key) ?? schema.additionalProperties ?? schema
    }
  }
  return { path, schema }
}

/** Of an unknown field: the known name that was probably meant, else all of them. */
export function unknownNameFix(name: string, known: readonly string[]): string {
  const near = nearestName(name, known)
  if (near !== '') return `did you mean ${near}?`
  return known.length === 0 ? 'remove it' : `remove it; known here: ${known.join(', ')}`
}

function unknownFieldFix(schema: JsonSchema, name: string): string {
  return unknownNameFix(name, Object.keys(schema.properties ?? {}))
}

const TYPE_NAMES: Readonly<Record<JsonSchema['type'], string>> = {
  object: 'a map',
  array: 'a list',
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  if (typeof value === 'string') return 'a text'
  return shown(value)
}

function typeFix(schema: JsonSchema): string {
  switch (schema.type) {
    case 'object': {
      const names = Object.keys(schema.properties ?? {})
      return names.length === 0 ? 'write {}' : `write a map of ${names.join(', ')}`
    }
    case 'array':
      return 'write a list'
    case 'string':
      return 'write a text, in quotes if it looks like a number, true or false'
    case 'integer':
      return `write a whole number ${rangeOf(schema)}`
    case 'number':
      return 'write a number'
    case 'boolean':
      return 'write true or false, without quotes'
  }
}

function rangeOf({ minimum = -MAX_INT32, maximum = MAX_INT32 }: JsonSchema): string {
  return `from ${minimum} to ${maximum}`
}

function choiceFix(choices: readonly string[], value: unknown): string {
  const named = choices.filter((choice) => choice !== '')
  const near = typeof value === 'string' ? nearestName(value, named) : ''
  return near === '' ? `write one of ${named.join(', ')}` : `did you mean ${near}?`
}

function firstSentence(description: string): string {
  // A colon or a semicolon is in the middle of one.
  const end = description.search(/[.](\s|$)/)
  return end < 0 ? description : description.slice(0, end)
}
