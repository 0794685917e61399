// fieldValidation: how unknown and duplicate fields are treated
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level).

import type { FieldValidation } from '../http/query-options.ts'

/**
 * The strict errors of a body, in kube-apiserver's order; truncated with a count if there are very many.
 * @param decoding errors of the decoder: `duplicate field "spec.y"`
 * @param unknown paths of unknown fields, each once
 */
export function strictErrors(decoding: readonly string[], unknown: readonly string[]): string[] {
  const told = [...new Set(decoding)].slice(0, MOST_LISTED)
  const named = unknown.slice(0, MOST_LISTED - told.length).map((path) => `unknown field ${JSON.stringify(path)}`)
  const listed = [...told, ...named]
  const count = told.length + unknown.length
  return count > listed.length ? [...listed, `and ${count - listed.length} more errors`] : listed
}

/** A body may have as many errors as members. */
const MOST_LISTED = 100

/** The message of the refusal; undefined = accepted. With Warn every error becomes a warning. */
export function applyFieldValidation(
  errors: readonly string[],
  validation: FieldValidation,
  warnings: string[],
): string | undefined {
  if (errors.length === 0 || validation === 'Ignore') return undefined
  if (validation === 'Strict') return `strict decoding error: ${errors.join(', ')}`
  for (const error of errors) warnings.push(error)
  return undefined
}
