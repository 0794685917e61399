// Text and numbers against their schema, in the words of kube-apiserver (k8s.io/kube-openapi/pkg/validation).

import type { FieldError } from '../../api/kube/field-error.ts'
import { isTimestamp } from '../../api/validation/name-syntax.ts'
import { invalidType, invalidValue, tooLong } from './field-error.ts'
import { goNumber } from './go-values.ts'
import type { SchemaView } from './schema-view.ts'

/** Patterns come from our own schemas: few. */
const PATTERNS = new Map<string, RegExp>()

/** The first that applies of length and pattern, and the format. */
export function textErrors(schema: SchemaView, text: string, path: string): FieldError[] {
  const errors = lengthErrors(schema, text, path)
  const { format } = schema
  if ((format === 'byte' && !isBase64(text)) || (format === 'date-time' && !isDateTime(text))) {
    errors.push(invalidType(path, text, `${path} in body must be of type ${format}: ${JSON.stringify(text)}`))
  }
  return errors
}

function lengthErrors({ minLength, maxLength, pattern }: SchemaView, text: string, path: string): FieldError[] {
  const length = minLength === undefined && maxLength === undefined ? 0 : runes(text)
  if (maxLength !== undefined && length > maxLength) return [tooLong(path, maxLength)]
  if (minLength !== undefined && length < minLength) {
    return [invalidValue(path, text, `${path} in body should be at least ${minLength} chars long`)]
  }
  if (pattern !== undefined && !patternOf(pattern).test(text)) {
    return [invalidValue(path, text, `${path} in body should match '${pattern}'`)]
  }
  return []
}

function runes(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const pair = code >= 0xd800 && code < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (pair) at++
    count++
  }
  return count
}

function patternOf(pattern: string): RegExp {
  let compiled = PATTERNS.get(pattern)
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u')
    PATTERNS.set(pattern, compiled)
  }
  return compiled
}

/** Standard base64 with padding, in one line; the empty text is none (govalidator.IsBase64). */
function isBase64(text: string): boolean {
  if (text.length === 0 || text.length % 4 !== 0) return false
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return /^[A-Za-z0-9+/]*$/.test(text.slice(0, text.length - padding))
}

/** strfmt.IsDateTime: RFC 3339 in any case, whose zone may be missing a colon; what Go could not read is refused here too. */
function isDateTime(text: string): boolean {
  return isTimestamp(text.toUpperCase())
}

export function numberErrors(schema: SchemaView, value: number, path: string): FieldError[] {
  const { minimum, maximum, multipleOf } = schema
  const errors: FieldError[] = []
  const wrong = (rule: string): void => {
    errors.push(invalidValue(path, value, `${path} in body should be ${rule}`))
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) wrong(`a multiple of ${goNumber(multipleOf)}`)
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum === true && value <= minimum) wrong(`greater than ${goNumber(minimum)}`)
    else if (value < minimum) wrong(`greater than or equal to ${goNumber(minimum)}`)
  }
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum === true && value >= maximum) wrong(`less than ${goNumber(maximum)}`)
    else if (value > maximum) wrong(`less than or equal to ${goNumber(maximum)}`)
  }
  return errors
}
