// Mistakes as kube-apiserver lists them in a 422 (k8s.io/apimachinery/pkg/util/validation/field/errors.go): the reason tells
// programs what kind of mistake it is, the message holds the value where it may be shown.

import type { JsonObject } from '../kube/json-object.ts'
import type { FieldError } from '../kube/status.ts'
import { type FieldProblem, pathSegments, withoutPassword } from './field-errors.ts'

const LONGEST_VALUE = 200
/** Bytes of keys and tokens, which no message may hold. */
const SECRET = /(?:^|\.)(?:[A-Za-z]*Data|bearerToken|tokenHash|data|stringData)(?:$|[.[])/

/** @param object in which the mistake was found */
export function fieldErrorOf(problem: FieldProblem, object: JsonObject): FieldError {
  const { path, message, fix } = problem
  const field = path === '' ? '<nil>' : path
  const said = fix === '' ? message : `${message}; ${fix}`
  if (/^is required\b/.test(message)) {
    const more = message === 'is required' ? fix : said
    return { reason: 'FieldValueRequired', message: more === '' ? 'Required value' : `Required value: ${more}`, field }
  }
  if (/^Too long: /.test(message)) return { reason: 'FieldValueTooLong', message, field }
  if (/^(?:unknown field|stands beside|may only be specified|field is immutable when)/.test(message)) {
    return { reason: 'FieldValueForbidden', message: `Forbidden: ${said}`, field }
  }
  const value = valueAt(object, path)
  if (value === undefined) return { reason: 'FieldValueInvalid', message: `Invalid value: null: ${said}`, field }
  if (/is already the name|is named twice/.test(message)) {
    return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${shownAt(path, value)}: ${said}`, field }
  }
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${shownAt(path, value)}: ${said}`, field }
}

/** The text of a warning header, or of a line for people: `spec.x: message; fix`. */
export function problemText({ path, message, fix }: FieldProblem): string {
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

/** As kube-apiserver shows it: texts quoted and cut short, of lists and maps (which may hold secrets) only what they are. */
function shownAt(path: string, value: unknown): string {
  if (SECRET.test(path)) return '"<hidden>"'
  if (Array.isArray(value)) return '"array"'
  if (typeof value === 'object' && value !== null) return '"object"'
  const text = JSON.stringify(typeof value === 'string' ? withoutPassword(value) : value) ?? 'null'
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}..."` : text
}
