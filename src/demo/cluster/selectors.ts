// DEMO ONLY. Label and field selectors of a list or a watch (apimachinery/pkg/labels, pkg/fields).

import { badRequest } from './api-error.ts'
import { type DemoObject, valueAt } from './json.ts'

export type Selector = (object: DemoObject) => boolean

/** Throws a 400 for what does not parse. Every field of an object may be selected by, not only the indexed ones. */
export function parseSelectors(labelSelector: string, fieldSelector: string): Selector {
  const tests = [
    ...splitTerms(labelSelector).map(labelTest),
    ...splitTerms(fieldSelector).map((term) => fieldTest(term)),
  ]
  return (object) => tests.every((test) => test(object))
}

/** At the commas outside of parentheses. */
function splitTerms(text: string): string[] {
  return text
    .split(/,(?![^()]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '')
}

const SET = /^([\w./-]+)\s+(in|notin)\s+\(([^()]*)\)$/
const EQUALITY = /^([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)$/
const EXISTS = /^(!?)\s*([\w./-]+)$/

function labelTest(term: string): Selector {
  const set = SET.exec(term)
  if (set !== null) {
    const [, key = '', operator, values = ''] = set
    const wanted = new Set(values.split(',').map((value) => value.trim()))
    const inside = operator === 'in'
    return (object) => wanted.has(label(object, key) ?? '\0') === inside
  }
  const equality = EQUALITY.exec(term)
  if (equality !== null) {
    const [, key = '', operator, value] = equality
    return (object) => (label(object, key) === value) === (operator !== '!=')
  }
  const exists = EXISTS.exec(term)
  if (exists === null) throw badRequest(`unable to parse requirement: ${term}`)
  const [, not, key = ''] = exists
  return (object) => (label(object, key) !== undefined) === (not === '')
}

function label(object: DemoObject, key: string): string | undefined {
  return object.metadata.labels?.[key]
}

function fieldTest(term: string): Selector {
  const [, path = '', operator, value = ''] = /^([\w.]+)\s*(==|=|!=)\s*(.*)$/.exec(term) ?? []
  if (path === '') throw badRequest(`invalid field selector: ${term}`)
  return (object) => {
    const found = valueAt(object, path)
    return ((found === undefined ? '' : String(found)) === value) === (operator !== '!=')
  }
}
