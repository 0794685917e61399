// Errors as kube-apiserver lists them in a 422 (k8s.io/apimachinery/pkg/util/validation/field/errors.go): the message begins with
// what kind of error it is, and holds the value where it may be shown.

import type { FieldError } from '../json/field-error.ts'
import type { JsonObject } from '../json/json-object.ts'
import { pathSegments, withoutPassword } from './field-errors.ts'

const LONGEST_VALUE = 200
/** Bytes of keys and tokens, which no message may hold. */
const SECRET = /(?:^|\.)(?:[A-Za-z]*Data|bearerToken|tokenHash|data|stringData)(?:$|[.[])/

/** @param object in which the error was found */
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

/** The text of a warning header, or of a line for people: `spec.x: message; fix`. */
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

/** The value at a path as kube-apiserver shows it: texts quoted and cut short, of lists and maps (which may hold secrets) only what they are. */
function shownAt(object: JsonObject, path: string): string {
  const value = valueAt(object, path)
  if (value === undefined) return 'null'
  if (SECRET.test(path)) return '"<hidden>"'
  if (Array.isArray(value)) return '"array"'
  if (typeof value === 'object' && value !== null) return '"object"'
  const text = JSON.stringify(typeof value === 'string' ? withoutPassword(value) : value) ?? 'null'
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}..."` : text
}
