// The shape of a list's selectors: lists of one shape are about the same size. There are only a few per resource, whatever clients write:
// label keys and values are not part of it.

/** Maximum fields in a shape; selectors with more share one shape. kube-apiserver supports a handful per resource. */
const MAX_FIELDS = 3
const MAX_LENGTH = 128
/** Longer selectors are not examined. */
const MAX_READ = 4096
const OTHER = 'fields'
const OTHER_EXCLUSION = 'fields!'

/** WHOLE_LIST, or the common form of the selectors. */
export type SelectorShape = string

export const WHOLE_LIST: SelectorShape = ''

/** @param fieldSelector as in RequestInfo; likewise `labelSelector` */
export function selectorShape(fieldSelector: string, labelSelector: string): SelectorShape {
  if (fieldSelector === '' && labelSelector === '') return ''
  const fields = fieldSelector === '' ? '' : fieldShape(fieldSelector)
  const labels = labelSelector === '' ? '' : labelShape(labelSelector)
  if (fields === '' || labels === '') return fields + labels
  return `${fields},${labels}`
}

/** Whether it selects few: the cost of one such list says little about another. `!=` and the like leave nearly everything. */
export function isNarrow(shape: SelectorShape): boolean {
  return shape !== '' && !shape.split(',').every((part) => part.endsWith('!'))
}

/** `spec.nodeName`, or `status.phase!` where the value is excluded. */
function fieldShape(selector: string): string {
  if (selector.length > MAX_READ) return OTHER
  // Most have one term.
  if (!selector.includes(',')) return fieldOf(selector)
  const names = new Set<string>()
  // A comma in a value is preceded by a backslash.
  for (const term of selector.replaceAll(ESCAPED, '').split(',')) {
    if (term === '') continue
    names.add(fieldOf(term))
  }
  const shape = [...names].sort().join(',')
  const named = names.size <= MAX_FIELDS && shape.length <= MAX_LENGTH && !names.has(OTHER)
  return named ? shape : [...names].every((name) => name.endsWith('!')) ? OTHER_EXCLUSION : OTHER
}

const ESCAPED = /\\./g

function fieldOf(term: string): string {
  const equals = term.indexOf('=')
  if (equals <= 0 || equals > MAX_LENGTH) return OTHER
  // Including the `!` of `!=`.
  return term.slice(0, equals)
}

/** One shape for selectors that require something, one for pure exclusions. */
function labelShape(selector: string): string {
  if (selector.length > MAX_READ) return 'labels'
  if (!selector.includes(',')) return isExclusion(selector) ? 'labels!' : 'labels'
  return terms(selector).every(isExclusion) ? 'labels!' : 'labels'
}

/** Splits at commas outside parentheses. */
function terms(selector: string): readonly string[] {
  const found: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < selector.length; at++) {
    const c = selector.charCodeAt(at)
    if (c === 0x28) depth++
    else if (c === 0x29) depth--
    else if (c === 0x2c && depth === 0) {
      found.push(selector.slice(start, at))
      start = at + 1
    }
  }
  found.push(selector.slice(start))
  return found
}

/** `!key`, `key!=value`, `key notin (...)`; an empty term excludes nothing and requires nothing. */
function isExclusion(term: string): boolean {
  if (!term.includes('!') && !term.includes('notin')) return term.trim() === ''
  return /^\s*!|!=|\snotin[\s(]/.test(term)
}
