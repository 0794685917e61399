// A JSON object of an API server, and what all of them have in metadata.

import { isRecord, recordOf, textOf } from './object-shape.ts'

/** A JSON object as it comes from, or goes to, an API server. Never changed once made: whoever changes one copies it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** metadata.name; '' when there is none. */
export function nameOf({ metadata }: JsonObject): string {
  return textOf(recordOf(metadata)['name'])
}

/** metadata.namespace; '' when there is none. */
export function namespaceOf({ metadata }: JsonObject): string {
  return textOf(recordOf(metadata)['namespace'])
}

/** metadata.labels or .annotations, those whose values are text. */
export function mapOf(object: JsonObject, field: 'labels' | 'annotations'): Readonly<Record<string, string>> {
  const map = recordOf(object['metadata'])[field]
  if (!isRecord(map)) return {}
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
