// Errors as kube-apiserver lists them in a 422 (k8s.io/apimachinery/pkg/util/validation/field/errors.go): the message begins with the kind of error
// and contains the value, if it may be shown.

import type { FieldError } from '../json/field-error.ts'
import type { JsonObject } from '../json/json-object.ts'
import { pathSegments, withoutPassword } from './field-errors.ts'

const LONGEST_VALUE = 200
/** Fields with bytes of keys and tokens, which must not appear in messages. */
const SECRET = /(?:^|\.)(?:[A-Za-z]*Data|bearerToken|tokenHash|data|stringData)(?:$|[.[])/

/** @param object that contains the error */
export function asCause(error: FieldError, object: JsonObject): FieldError {
  const { reason, path, message, fix } = error
  const field = path === '' ? '<nil>' : path
  const said = fix === '' ? message : `${message}; ${fix}`
  const cause = (text: string): FieldError => ({ ...error, path: field, message: text, fix: '' })
  switch (reason) {
    case 'FieldValueRequired': {
      const detail = message === 'is required' ? fix : said
      return cause(detail === '' ? 'Required value' : `Required value: ${detail}`)
    }
    case 'FieldValueTooLong':
    case 'FieldValueTooMany':
      return cause(said)
    case 'FieldValueForbidden':
      return cause(`Forbidden: ${said}`)
    case 'FieldValueDuplicate':
      return cause(`Duplicate value: ${shownAt(object, path)}: ${said}`)
    case 'FieldValueNotSupported':
      return cause(`Unsupported value: ${shownAt(object, path)}: ${said}`)
    case 'FieldValueInvalid':
    case 'FieldValueTypeInvalid':
      return cause(`Invalid value: ${shownAt(object, path)}: ${said}`)
  }
}

/** Text of a warning header, or a line for people: `spec.x: message; fix`. */
export function errorText({ path, message, fix }: FieldError): string {
  const said = fix === '' ? message : `${message}; ${fix}`
  return path === '' ? said : `${path}: ${said}`
}

function valueAt(object: JsonObject, path: string): unknown {
  let value: unknown = object
  for (const segment of pathSegments(path)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined
    value = Reflect.get(value, segment)
  }
  return value
}

/** The value at a path as kube-apiserver shows it: texts quoted and truncated, lists and maps (which may hold secrets) by type only. */
function shownAt(object: JsonObject, path: string): string {
  const value = valueAt(object, path)
  if (value === undefined) return 'null'
  if (SECRET.test(path)) return '"<hidden>"'
  if (Array.isArray(value)) return '"array"'
  if (typeof value === 'object' && value !== null) return '"object"'
  const text = JSON.stringify(typeof value === 'string' ? withoutPassword(value) : value) ?? 'null'
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}..."` : text
}
