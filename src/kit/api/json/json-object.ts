// A JSON object of an API server, and the metadata fields that all of them have.

import { isRecord, recordOf, textOf } from './object-shape.ts'

/** A JSON object read from or sent to an API server. Immutable: copy it to change it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** metadata.name; '' if absent. */
export function nameOf({ metadata }: JsonObject): string {
  return textOf(recordOf(metadata)['name'])
}

/** metadata.namespace; '' if absent. */
export function namespaceOf({ metadata }: JsonObject): string {
  return textOf(recordOf(metadata)['namespace'])
}

/** Text values of metadata.labels or .annotations. */
export function mapOf(object: JsonObject, field: 'labels' | 'annotations'): Readonly<Record<string, string>> {
  const map = recordOf(object['metadata'])[field]
  if (!isRecord(map)) return {}
  return Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** metadata.finalizers; [] if absent. */
export function finalizersOf({ metadata }: JsonObject): readonly string[] {
  const { finalizers } = recordOf(metadata)
  return Array.isArray(finalizers) ? finalizers.filter((name): name is string => typeof name === 'string') : []
}
