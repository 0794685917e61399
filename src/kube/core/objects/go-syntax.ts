// Formats values like Go's %v, %#v and %T, for messages of kube-apiserver that expose its internals.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { goNumber, goQuote } from './go-values.ts'

/** `%v` */
export function goPlain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goPlain).join(' ')}]`
  if (typeof value === 'number') return goNumber(value)
  if (!isRecord(value)) return value === null ? '<nil>' : String(value)
  return `map[${sortedKeys(value)
    .map((key) => `${key}:${goPlain(value[key])}`)
    .join(' ')}]`
}

/** `%#v` */
export function goSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`
  if (typeof value === 'string') return goQuote(value)
  if (typeof value === 'number') return goNumber(value)
  if (!isRecord(value)) return value === null ? 'interface {}(nil)' : String(value)
  return `map[string]interface {}{${sortedKeys(value)
    .map((key) => `${goQuote(key)}:${goSyntax(value[key])}`)
    .join(', ')}}`
}

/** `%T` */
export function goTypeName(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}'
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'boolean':
      return 'bool'
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64'
    default:
      return value === null ? '<nil>' : 'map[string]interface {}'
  }
}

function sortedKeys(value: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(value).sort(compareText)
}
