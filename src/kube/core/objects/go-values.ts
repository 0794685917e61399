// Formats values as Go does in kube-apiserver's messages (k8s.io/apimachinery/pkg/util/validation/field/errors.go).

import { sortedJson } from '../../../kit/api/json/sorted-json.ts'

/** strconv.Quote, for text without exotic characters. */
export function goQuote(text: string): string {
  return JSON.stringify(text)
    .replace(/\\u00([0-9a-f]{2})/g, '\\x$1')
    .replaceAll('\u007f', '\\x7f')
}

/** `%v` of a number. */
export function goNumber(value: number): string {
  const text = String(value)
  // Go uses an exponent below 1e-4, with at least two digits; JavaScript below 1e-6, with as few as needed.
  if (value === 0 || Math.abs(value) >= 1e-4) return text.replace(/e([+-])(\d)$/, 'e$10$2')
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
}

/** json.Marshal: keys sorted by bytes, HTML-sensitive characters escaped. */
export function goJson(value: unknown): string {
  return sortedJson(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The bad value of a field error. */
export function goBadValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value)
  if (typeof value === 'number') return goNumber(value)
  return goJson(value)
}
