// Where an object does not fit its schema, in the words of kube-apiserver (k8s.io/kube-openapi/pkg/validation/validate, whose
// results apiextensions-apiserver/pkg/apiserver/validation/validation.go turns into field errors).

import type { FieldError } from '../../api/kube/field-error.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import type { SchemaView } from '../../api/kube/schema-view.ts'
import { findViolations, jsonTypeOf, typesOf, type Violation } from '../../api/validation/schema-violations.ts'
import {
  duplicate,
  invalidType,
  invalidValue,
  MOST_ERRORS,
  notSupported,
  required,
  tooLong,
  tooMany,
} from './field-error.ts'
import { goJson, goNumber } from './go-values.ts'

/** The errors of a value, of very many the first. Members that the schema does not know are none: they were pruned. */
export function shapeErrors(schema: SchemaView, value: unknown): readonly FieldError[] {
  const errors: FieldError[] = []
  const memberPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`)
  findViolations(schema, value, '', memberPath, (violation) => {
    const error = errorOf(violation)
    if (error !== undefined) errors.push(error)
    return errors.length < MOST_ERRORS
  })
  return errors
}

function errorOf({ violated, path, schema, value }: Violation): FieldError | undefined {
  const rule = (text: string): FieldError => invalidValue(path, sizeOf(value), `${path} in body should ${text}`)
  switch (violated) {
    case 'type':
      return typeError(schema, value, path)
    case 'format':
      return invalidType(
        path,
        String(value),
        `${path} in body must be of type ${schema.format}: ${JSON.stringify(value)}`,
      )
    case 'enum':
      return notSupported(
        path,
        value,
        (schema.enum ?? []).map((one) => (typeof one === 'string' ? one : goJson(one))),
      )
    case 'required':
      return required(path)
    case 'unknown':
      return undefined
    case 'duplicate':
      return duplicate(path, value)
    case 'listKey':
      return invalidValue(path, value, 'must be an object for an array of list-type map')
    case 'pattern':
      return rule(`match '${schema.pattern}'`)
    case 'multipleOf':
      return rule(`be a multiple of ${goNumber(schema.multipleOf ?? 0)}`)
    case 'minimum':
      return rule(
        `be greater than ${schema.exclusiveMinimum === true ? '' : 'or equal to '}${goNumber(schema.minimum ?? 0)}`,
      )
    case 'maximum':
      return rule(
        `be less than ${schema.exclusiveMaximum === true ? '' : 'or equal to '}${goNumber(schema.maximum ?? 0)}`,
      )
    case 'minLength':
      return rule(`be at least ${schema.minLength} chars long`)
    case 'maxLength':
      return tooLong(path, schema.maxLength ?? 0)
    case 'minItems':
      return rule(`have at least ${schema.minItems} items`)
    case 'maxItems':
      return tooMany(path, countOf(value), schema.maxItems ?? 0)
    case 'minProperties':
      return rule(`have at least ${schema.minProperties} properties`)
    case 'maxProperties':
      return tooMany(path, countOf(value), schema.maxProperties ?? 0)
  }
}

function typeError(schema: SchemaView, value: unknown, path: string): FieldError {
  const actual = jsonTypeOf(value)
  // What should be text of a format is called by it, and what is there instead by its format, if it has one.
  const formatted = schema.format !== undefined && schema.type === 'string' && value !== null
  const name = formatted ? schema.format : typesOf(schema).join(',')
  const shown = formatted ? (NUMBER_FORMATS.get(actual) ?? '') : actual
  return invalidType(path, shown, `${path} in body must be of type ${name}: "${shown}"`)
}

const NUMBER_FORMATS: ReadonlyMap<string, string> = new Map([
  ['integer', 'int64'],
  ['number', 'float64'],
])

/** Of a list or map how many it has; any other value as it is. */
function sizeOf(value: unknown): unknown {
  return typeof value === 'object' ? countOf(value) : value
}

function countOf(value: unknown): number {
  return Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0
}
