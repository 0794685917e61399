// Errors in fields as kube-apiserver words them (k8s.io/apimachinery/pkg/util/validation/field/errors.go).

import type { FieldError, FieldErrorReason } from '../../../kit/api/json/field-error.ts'
import { goBadValue, goQuote } from './go-values.ts'

/** Stop looking for errors in one list or map after this many: a response lists fewer, and an object may have a million. */
export const MOST_ERRORS = 1000

/** Collects the items' errors, in order, until there are enough. */
export function errorsOfEach<T>(items: Iterable<T>, errorsOf: (item: T) => readonly FieldError[]): FieldError[] {
  const found: FieldError[] = []
  for (const item of items) {
    for (const error of errorsOf(item)) found.push(error)
    if (found.length >= MOST_ERRORS) break
  }
  return found
}

export function required(path: string, detail = ''): FieldError {
  return fieldError('FieldValueRequired', path, withDetail('Required value', detail))
}

export function invalidValue(path: string, value: unknown, detail: string): FieldError {
  return invalidShown(path, goBadValue(value), detail)
}

/** @param shown the value as it appears in the message */
export function invalidShown(path: string, shown: string, detail: string): FieldError {
  return fieldError('FieldValueInvalid', path, withDetail(`Invalid value: ${shown}`, detail))
}

/** @param value as shown in the message: for a wrong type its name, for a wrong format the text */
export function invalidType(path: string, value: string, detail: string): FieldError {
  return fieldError('FieldValueTypeInvalid', path, `Invalid value: ${goQuote(value)}: ${detail}`)
}

export function notSupported(path: string, value: unknown, supported: readonly string[]): FieldError {
  const detail = supported.length === 0 ? '' : `supported values: ${supported.map(goQuote).join(', ')}`
  return fieldError('FieldValueNotSupported', path, withDetail(`Unsupported value: ${goBadValue(value)}`, detail))
}

export function duplicate(path: string, value: unknown): FieldError {
  return fieldError('FieldValueDuplicate', path, `Duplicate value: ${goBadValue(value)}`)
}

export function forbidden(path: string, detail: string): FieldError {
  return fieldError('FieldValueForbidden', path, withDetail('Forbidden', detail))
}

/** Counted in bytes or in characters: kube-apiserver says bytes either way. */
export function tooLong(path: string, maximum: number): FieldError {
  const unit = maximum === 1 ? 'byte' : 'bytes'
  return fieldError('FieldValueTooLong', path, `Too long: may not be more than ${maximum} ${unit}`)
}

export function tooMany(path: string, count: number, maximum: number): FieldError {
  const unit = maximum === 1 ? 'item' : 'items'
  return fieldError('FieldValueTooMany', path, `Too many: ${count}: must have at most ${maximum} ${unit}`)
}

function fieldError(reason: FieldErrorReason, path: string, message: string): FieldError {
  return { reason, path, message, fix: '', severity: 'error' }
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`
}
