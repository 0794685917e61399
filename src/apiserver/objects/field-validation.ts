// fieldValidation: what becomes of fields that nobody knows or that stand there twice
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level).

import type { FieldValidation } from '../http/query-options.ts'

/**
 * The strict errors of a body, in kube-apiserver's order.
 * @param decoding what the decoder found: `duplicate field "spec.y"`
 * @param unknown paths of fields that nobody knows
 */
export function strictErrors(decoding: readonly string[], unknown: readonly string[]): string[] {
  return [...new Set([...decoding, ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`)])]
}

/** A body may have as many as it has members. */
const MOST_LISTED = 100

function moreThan(count: number): string {
  return `and ${count - MOST_LISTED} more errors`
}

/** The text of the refusal; undefined when there is none. With Warn every error becomes a warning instead. */
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
