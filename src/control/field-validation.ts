// fieldValidation: what becomes of fields that nobody knows or that stand there twice
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level).

import type { FieldValidation } from './query-options.ts'

/**
 * The strict errors of a body, in kube-apiserver's order.
 * @param decoding what the decoder found: `duplicate field "spec.y"`
 * @param unknown paths of fields that nobody knows
 */
export function strictErrors(decoding: readonly string[], unknown: readonly string[]): string[] {
  return [...new Set([...decoding, ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`)])]
}

/** The text of the refusal; undefined when there is none. With Warn every error becomes a warning instead. */
export function judgeStrictErrors(
  errors: readonly string[],
  validation: FieldValidation,
  warnings: string[],
): string | undefined {
  if (errors.length === 0 || validation === 'Ignore') return undefined
  if (validation === 'Strict') return `strict decoding error: ${errors.join(', ')}`
  warnings.push(...errors)
  return undefined
}
