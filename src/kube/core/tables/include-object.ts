// What a row of a Table has of its object (apimachinery/pkg/apis/meta/v1/types.go, IncludeObjectPolicy).

export type IncludeObject = 'None' | 'Metadata' | 'Object'

/** @param text of the query; '' = absent. @returns or why it is refused */
export function includeObjectOf(text: string): IncludeObject | { readonly invalid: string } {
  if (text === '' || text === 'Metadata') return 'Metadata'
  if (text === 'None' || text === 'Object') return text
  const message = `Invalid value: ${JSON.stringify(text)}: must be 'Metadata', 'Object', 'None', or empty`
  return { invalid: `Unable to convert to Table as requested: includeObject: ${message}` }
}
