// The query of a list, watch or deletecollection, as far as RequestInfo depends on it: metav1.ListOptions decoded like kube-apiserver
// (apimachinery/pkg/runtime/conversion.go), with the query parsed like Go's url.ParseQuery.

import { isInt64 } from '../../../kit/core/text/int64.ts'
import { isLabelSelector } from '../../../kube/core/selectors/parse-selector.ts'
import { QueryReader } from './query-reader.ts'

/**
 * Maximum characters of a decoded label or field selector; a list of several thousand names fits. Longer ones are refused: if the gateway
 * passed them on unread, it would decide on a different request than kube-apiserver.
 */
export const MAX_SELECTOR_LENGTH: number = 64 * 1024

/** The first value of each option, decoded; undefined if absent. */
class ListQuery {
  fieldSelector: string | undefined = undefined
  labelSelector: string | undefined = undefined
  watch: string | undefined = undefined
  limit: string | undefined = undefined
  timeoutSeconds: string | undefined = undefined
  resourceVersion: string | undefined = undefined
  sendInitialEvents: string | undefined = undefined
  /** Whether it has a continue token. */
  continued = false
}

/** Cache of the last query: RequestInfo and the cost of a list are read right after each other. */
let lastQuery = ''
let lastOptions: Readonly<ListQuery> = new ListQuery()

/** The options of a list, in one pass over the query. Pairs that Go can't parse are skipped, as in `URL.Query()`. */
export function readListQuery(query: string): Readonly<ListQuery> {
  if (query === lastQuery) return lastOptions
  lastOptions = parseListQuery(query)
  lastQuery = query
  return lastOptions
}

function parseListQuery(query: string): ListQuery {
  const options = new ListQuery()
  const reader = new QueryReader(query)
  while (reader.next()) {
    switch (reader.key) {
      case 'fieldSelector':
        options.fieldSelector ??= reader.value()
        break
      case 'labelSelector':
        options.labelSelector ??= reader.value()
        break
      case 'watch':
        options.watch ??= reader.value()
        break
      case 'limit':
        options.limit ??= reader.value()
        break
      case 'timeoutSeconds':
        options.timeoutSeconds ??= reader.value()
        break
      case 'resourceVersion':
        options.resourceVersion ??= reader.value()
        break
      case 'sendInitialEvents':
        options.sendInitialEvents ??= reader.value()
        break
      case 'continue':
        options.continued = true
        break
      default:
    }
  }
  return options
}

/** Why the selectors can't be parsed, for the client; '' = they can. */
export function selectorProblem({ fieldSelector = '', labelSelector = '' }: ListQuery): string {
  const long = [
    ['fieldSelector', fieldSelector],
    ['labelSelector', labelSelector],
  ].find(([, text = '']) => text.length > MAX_SELECTOR_LENGTH)
  if (long === undefined) return ''
  return `the ${long[0]} has more than ${MAX_SELECTOR_LENGTH} characters, the limit of this server: split it into several requests`
}

/** Only "0" and any case of "false" are false; an empty value is true (apimachinery/pkg/runtime/conversion.go). */
export function isTrue(value: string | undefined): boolean {
  return value !== undefined && value !== '0' && value.toUpperCase() !== 'FALSE'
}

/**
 * The name that a list or watch is restricted to: `fieldSelector` requires `metadata.name=x`, and x is valid in a path. '' otherwise, or if
 * any list option fails to decode.
 */
export function nameRequired(options: ListQuery): string {
  const name = exactMatch(options.fieldSelector ?? '', 'metadata.name')
  if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('%')) return ''
  return otherOptionsDecode(options) ? name : ''
}

function otherOptionsDecode({ timeoutSeconds, limit, labelSelector }: ListQuery): boolean {
  if (timeoutSeconds !== undefined && !isInt64(timeoutSeconds)) return false
  if (limit !== undefined && !isInt64(limit)) return false
  return labelSelector === undefined || isLabelSelector(labelSelector)
}

/** The value that the selector requires of `field`; '' if none, or if it does not parse (apimachinery/pkg/fields/selector.go). */
function exactMatch(selector: string, field: string): string {
  let required = ''
  let smallest: string | undefined
  for (const term of splitTerms(selector)) {
    if (term === '') continue
    const equals = term.indexOf('=')
    const notEquals = term.indexOf('!=')
    if (equals < 0) return ''
    const negated = notEquals >= 0 && notEquals < equals
    const key = term.slice(0, negated ? notEquals : equals)
    const value = unescapeValue(term.slice(term.startsWith('==', equals) && !negated ? equals + 2 : equals + 1))
    if (value === undefined) return ''
    // Kubernetes sorts the terms first: if two names are required, the smaller one counts.
    if (negated || key !== field || (smallest !== undefined && smallest <= term)) continue
    smallest = term
    required = value
  }
  return required
}

/** Splits at commas that are not escaped with a backslash. */
function splitTerms(selector: string): string[] {
  if (!selector.includes(',')) return [selector]
  const terms: string[] = []
  let start = 0
  for (let at = 0; at < selector.length; at++) {
    const c = selector.charCodeAt(at)
    if (c === 0x5c) at++
    else if (c === 0x2c) {
      terms.push(selector.slice(start, at))
      start = at + 1
    }
  }
  terms.push(selector.slice(start))
  return terms
}

/** Resolves backslash escapes of `\`, `,` and `=`; undefined if one of them is unescaped, or another character is escaped. */
function unescapeValue(value: string): string | undefined {
  let plain = ''
  for (let at = 0; at < value.length; at++) {
    let c = value.charAt(at)
    if (c === ',' || c === '=') return undefined
    if (c === '\\') {
      c = value.charAt(++at)
      if (c !== '\\' && c !== ',' && c !== '=') return undefined
    }
    plain += c
  }
  return plain
}
