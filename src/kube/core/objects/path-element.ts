// One step of a field path, in the notation of fieldsV1: `f:name` is a member, `k:{"name":"x"}` the list item with these keys, `v:"x"` a
// set's item (sigs.k8s.io/structured-merge-diff/v6/fieldpath/serialize-pe.go).

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { sortedJson } from '../../../kit/api/json/sorted-json.ts'
import type { ListAtom } from './atom.ts'
import { goBadValue } from './go-values.ts'

export function memberElement(name: string): string {
  return `f:${name}`
}

/** The item's element, or why it has none. */
export function itemElement(list: ListAtom, item: unknown): { readonly element: string } | { readonly error: string } {
  if (list.keys.length === 0) return setElement(item)
  if (item === null) return { error: 'associative list with keys may not have a null element' }
  if (!isRecord(item)) return { error: 'associative list with keys may not have non-map elements' }
  const keys = new Map<string, unknown>()
  for (const name of list.keys) {
    const value = Object.hasOwn(item, name) ? item[name] : list.keyDefault(name)
    if (value !== undefined) keys.set(name, value)
  }
  if (keys.size === 0) {
    const names = `[${list.keys.map((name) => JSON.stringify(name)).join(' ')}]`
    const why = `associative list with keys has an element that omits all key fields ${names}`
    return { error: `${why} (and doesn't have default values for any key fields)` }
  }
  return { element: `k:${sortedJson(Object.fromEntries(keys))}` }
}

function setElement(item: unknown): { readonly element: string } | { readonly error: string } {
  if (isRecord(item)) return { error: "associative list without keys has an element that's a map type" }
  if (Array.isArray(item)) return { error: 'not supported: associative list with lists as elements' }
  if (item === null) return { error: "associative list without keys has an element that's an explicit null" }
  return { element: `v:${sortedJson(item)}` }
}

/** For people: `.name`, `[name="x",protocol="TCP"]`, `[="x"]`. */
export function shownElement(element: string): string {
  const content = element.slice(2)
  if (element.startsWith('f:')) return `.${content}`
  if (element.startsWith('v:')) return `[=${shownValue(content)}]`
  if (!element.startsWith('k:')) return `[${content}]`
  const keys = parsed(content)
  if (!isRecord(keys)) return `[${content}]`
  return `[${Object.entries(keys)
    .map(([name, value]) => `${name}=${goBadValue(value)}`)
    .join(',')}]`
}

function shownValue(json: string): string {
  const value = parsed(json)
  return value === undefined ? json : goBadValue(value)
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** Whether the text is a valid element; clients may write anything into managedFields. */
export function isElement(text: string): boolean {
  if (text.startsWith('f:')) return true
  if (text.startsWith('i:')) return /^i:[0-9]+$/.test(text)
  return (
    (text.startsWith('k:') && isRecord(parsed(text.slice(2)))) ||
    (text.startsWith('v:') && parsed(text.slice(2)) !== undefined)
  )
}
