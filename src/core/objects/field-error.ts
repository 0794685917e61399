// Mistakes in fields as kube-apiserver words them (k8s.io/apimachinery/pkg/util/validation/field/errors.go).

import type { FieldError } from '../../api/kube/status.ts'
import { goBadValue, goQuote } from './go-values.ts'

/** Errors after which no more are looked for in one list or map: an answer lists fewer, and an object may have a million. */
export const MOST_ERRORS = 1000

/** The errors of the items, one after the other, until there are enough. */
export function errorsOfEach<T>(items: Iterable<T>, errorsOf: (item: T) => readonly FieldError[]): FieldError[] {
  const found: FieldError[] = []
  for (const item of items) {
    for (const error of errorsOf(item)) found.push(error)
    if (found.length >= MOST_ERRORS) break
  }
  return found
}

export function required(field: string, detail = ''): FieldError {
  return { reason: 'FieldValueRequired', message: withDetail('Required value', detail), field }
}

export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return invalidShown(field, goBadValue(value), detail)
}

/** @param shown the value as it is to stand in the message */
export function invalidShown(field: string, shown: string, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', message: withDetail(`Invalid value: ${shown}`, detail), field }
}

/** @param value what the message shows: for a wrong type its name, for a wrong format the text */
export function invalidType(field: string, value: string, detail: string): FieldError {
  return { reason: 'FieldValueTypeInvalid', message: `Invalid value: ${goQuote(value)}: ${detail}`, field }
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const detail = supported.length === 0 ? '' : `supported values: ${supported.map(goQuote).join(', ')}`
  return {
    reason: 'FieldValueNotSupported',
    message: withDetail(`Unsupported value: ${goBadValue(value)}`, detail),
    field,
  }
}

export function duplicate(field: string, value: unknown): FieldError {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${goBadValue(value)}`, field }
}

export function forbidden(field: string, detail: string): FieldError {
  return { reason: 'FieldValueForbidden', message: withDetail('Forbidden', detail), field }
}

/** Of bytes, or of characters: kube-apiserver says bytes either way. */
export function tooLong(field: string, maximum: number): FieldError {
  const unit = maximum === 1 ? 'byte' : 'bytes'
  return { reason: 'FieldValueTooLong', message: `Too long: may not be more than ${maximum} ${unit}`, field }
}

export function tooMany(field: string, count: number, maximum: number): FieldError {
  const unit = maximum === 1 ? 'item' : 'items'
  return { reason: 'FieldValueTooMany', message: `Too many: ${count}: must have at most ${maximum} ${unit}`, field }
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`
}
