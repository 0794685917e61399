// The query of a list, watch or deletecollection, as far as RequestInfo depends on it: metav1.ListOptions decoded as
// kube-apiserver does (apimachinery/pkg/runtime/conversion.go), the query parsed as Go's url.ParseQuery.

import { isInt64, isLabelSelector } from './label-selector.ts'
import { decodeQueryPart } from './request-target.ts'

/** Go refuses to parse a query of more parameters, and kube-apiserver then sees none (net/url, urlmaxqueryparams). */
const MAX_PARAMETERS = 10_000

/** `query`, or '' when Go would not parse it at all. */
export function parsableQuery(query: string): string {
  if (query.length < MAX_PARAMETERS) return query
  let parameters = 1
  for (let at = query.indexOf('&'); at >= 0; at = query.indexOf('&', at + 1)) parameters++
  return parameters > MAX_PARAMETERS ? '' : query
}

/** First value of `key` (letters only), decoded; undefined when absent. Pairs that Go cannot parse are skipped, as `URL.Query()` does. */
export function queryValue(query: string, key: string): string | undefined {
  let start = 0
  while (start < query.length) {
    let end = query.indexOf('&', start)
    if (end < 0) end = query.length
    const value = pairValue(query, start, end, key)
    if (value !== undefined) return value
    start = end + 1
  }
  return undefined
}

function pairValue(query: string, start: number, end: number, key: string): string | undefined {
  let equals = query.indexOf('=', start)
  if (equals < 0 || equals > end) equals = end
  if (start === end || !keyIs(query, start, equals, key)) return undefined
  // A semicolon was once a separator; Go drops the pair rather than guess.
  const semicolon = query.indexOf(';', start)
  if (semicolon >= 0 && semicolon < end) return undefined
  return decodedPart(equals < end ? query.slice(equals + 1, end) : '')
}

function keyIs(query: string, start: number, end: number, key: string): boolean {
  if (end - start === key.length) return query.startsWith(key, start)
  // Encoded, a key is longer.
  if (end - start < key.length) return false
  const raw = query.slice(start, end)
  return raw.includes('%') && decodeQueryPart(raw) === key
}

function decodedPart(raw: string): string | undefined {
  for (let at = 0; at < raw.length; at++) {
    const c = raw.charCodeAt(at)
    if (c === 0x25 || c === 0x2b || c >= 0x80) return decodeQueryPart(raw)
  }
  return raw
}

/** Only "0" and any case of "false" are false; an empty value is true (apimachinery/pkg/runtime/conversion.go). */
export function queryBool(query: string, key: string): boolean {
  const value = queryValue(query, key)
  return value !== undefined && value !== '0' && value.toUpperCase() !== 'FALSE'
}

/**
 * The object that a list or watch is about: `fieldSelector` requires `metadata.name=x` with an x that can stand in a
 * path. '' when it does not, or when any list option fails to decode.
 */
export function nameRequired(query: string, fieldSelector: string): string {
  const name = exactMatch(fieldSelector, 'metadata.name')
  if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('%')) return ''
  return otherOptionsDecode(query) ? name : ''
}

function otherOptionsDecode(query: string): boolean {
  const timeoutSeconds = queryValue(query, 'timeoutSeconds')
  if (timeoutSeconds !== undefined && !isInt64(timeoutSeconds)) return false
  const limit = queryValue(query, 'limit')
  if (limit !== undefined && !isInt64(limit)) return false
  const labelSelector = queryValue(query, 'labelSelector')
  return labelSelector === undefined || isLabelSelector(labelSelector)
}

/** The value that the selector requires of `field`; '' when none, or when it does not parse (apimachinery/pkg/fields/selector.go). */
function exactMatch(selector: string, field: string): string {
  let required: string | undefined
  // Kubernetes sorts the terms first: with two names required, the smaller one counts.
  for (const term of splitTerms(selector).sort(byCodeUnit)) {
    if (term === '') continue
    const equals = term.indexOf('=')
    const notEquals = term.indexOf('!=')
    if (equals < 0) return ''
    const negated = notEquals >= 0 && notEquals < equals
    const key = term.slice(0, negated ? notEquals : equals)
    const value = unescapeValue(term.slice(term.startsWith('==', equals) && !negated ? equals + 2 : equals + 1))
    if (value === undefined) return ''
    if (!negated && key === field) required ??= value
  }
  return required ?? ''
}

function byCodeUnit(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** At commas, but for those behind a backslash. */
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

/** Backslash escapes of `\`, `,` and `=`; undefined when one of them stands alone, or another character is escaped. */
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
