// Values as Go writes them in the messages of kube-apiserver (k8s.io/apimachinery/pkg/util/validation/field/errors.go).

import { isRecord } from '../../api/kube/object-shape.ts'

/** strconv.Quote, for text without exotic characters. */
export function goQuote(text: string): string {
  return JSON.stringify(text)
    .replace(/\\u00([0-9a-f]{2})/g, '\\x$1')
    .replaceAll('\u007f', '\\x7f')
}

/** `%v` of a number. */
export function goNumber(value: number): string {
  const text = String(value)
  // Go writes an exponent below 1e-4 and with at least two digits; JavaScript below 1e-6 with as few as it needs.
  if (value === 0 || Math.abs(value) >= 1e-4) return text.replace(/e([+-])(\d)$/, 'e$10$2')
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
}

/** json.Marshal: keys sorted by their bytes, and what HTML could misread is escaped. */
export function goJson(value: unknown): string {
  return sortedJson(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** JSON with the keys of objects sorted: equal text, equal value. */
export function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort(compareText)
    .map((key) => `${JSON.stringify(key)}:${sortedJson(value[key])}`)
  return `{${members.join(',')}}`
}

/** The bad value of a field error. */
export function goBadValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value)
  if (typeof value === 'number') return goNumber(value)
  return goJson(value)
}

/** The order of Go's strings: by bytes of UTF-8, which is the order of code points. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left === right) continue
    // A surrogate stands for a code point above every other code unit.
    const leftHigh = left >= 0xd800 && left < 0xe000
    const rightHigh = right >= 0xd800 && right < 0xe000
    if (leftHigh !== rightHigh) return leftHigh ? 1 : -1
    return left - right
  }
  return a.length - b.length
}
