// A JSON object of an API server, and what all of them have in metadata.

import { isRecord } from './object-shape.ts'

/** A JSON object as it comes from, or goes to, an API server. Never changed once made: whoever changes one copies it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** metadata.name; '' when there is none. */
export function nameOf({ metadata }: JsonObject): string {
  const name = isRecord(metadata) ? metadata['name'] : undefined
  return typeof name === 'string' ? name : ''
}

/** metadata.labels or .annotations, those whose values are text. */
export function mapOf(object: JsonObject, field: 'labels' | 'annotations'): Readonly<Record<string, string>> {
  const { metadata } = object
  const map = isRecord(metadata) ? metadata[field] : undefined
  if (!isRecord(map)) return {}
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
