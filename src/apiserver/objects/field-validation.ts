// fieldValidation: how unknown and duplicate fields are treated
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level).

import type { FieldValidation } from '../http/query-options.ts'

/**
 * The strict errors of a body, in kube-apiserver's order.
 * @param decoding errors of the decoder: `duplicate field "spec.y"`
 * @param unknown paths of unknown fields
 */
export function strictErrors(decoding: readonly string[], unknown: readonly string[]): string[] {
  return [...new Set([...decoding, ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`)])]
}

/** A body may have as many errors as members. */
const MOST_LISTED = 100

function moreThan(count: number): string {
  return `and ${count - MOST_LISTED} more errors`
}

/** The message of the refusal; undefined = accepted. With Warn every error becomes a warning. */
export function applyFieldValidation(
  errors: readonly string[],
  validation: FieldValidation,
  warnings: string[],
): string | undefined {
  if (errors.length === 0 || validation === 'Ignore') return undefined
  const listed = errors.length > MOST_LISTED ? [...errors.slice(0, MOST_LISTED), moreThan(errors.length)] : errors
  if (validation === 'Strict') return `strict decoding error: ${listed.join(', ')}`
  for (const error of listed) warnings.push(error)
  return undefined
}
