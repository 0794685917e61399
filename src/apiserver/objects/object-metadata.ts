// ObjectMeta in the server: which fields the server owns, and how they are read and set
// (apiserver/pkg/registry/rest/meta.go; apimachinery/pkg/apis/meta/v1/types.go).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'

const EMPTY: JsonObject = {}
/** For generateName: letters and digits that form no words (apimachinery/pkg/util/rand/rand.go). */
const NAME_CHARACTERS = 'bcdfghjklmnpqrstvwxz2456789'
const RANDOM_LENGTH = 5
const MAX_GENERATED_BASE = 63 - RANDOM_LENGTH

/** metadata; an empty object if absent. */
export function metaOf(object: JsonObject): JsonObject {
  const metadata = Object.hasOwn(object, 'metadata') ? object['metadata'] : undefined
  return isRecord(metadata) ? metadata : EMPTY
}

/** A text field of metadata; '' if absent. */
export function metaText(object: JsonObject, field: string): string {
  const metadata = metaOf(object)
  const value = Object.hasOwn(metadata, field) ? metadata[field] : undefined
  return typeof value === 'string' ? value : ''
}

export function metaNumber(object: JsonObject, field: string): number {
  const value = metaOf(object)[field]
  return typeof value === 'number' ? value : 0
}

/** A copy with fields of metadata set; `undefined` removes one. */
export function withMetadata(object: JsonObject, fields: JsonObject): JsonObject {
  return { ...object, metadata: without({ ...metaOf(object), ...fields }) }
}

/** A copy with top-level fields set; `undefined` removes one. */
export function withFields(object: JsonObject, fields: JsonObject): JsonObject {
  return without({ ...object, ...fields })
}

function without(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

export function isBeingDeleted(object: JsonObject): boolean {
  return metaText(object, 'deletionTimestamp') !== ''
}

/** Whether it is being deleted, and its grace period is over. */
export function isGraceOver(object: JsonObject): boolean {
  return isBeingDeleted(object) && metaNumber(object, 'deletionGracePeriodSeconds') === 0
}

/** `base` and five characters (apiserver/pkg/storage/names/generate.go). @param random in [0, 1) */
export function generateName(base: string, random: () => number): string {
  let name = base.slice(0, MAX_GENERATED_BASE)
  for (let i = 0; i < RANDOM_LENGTH; i++) {
    name += NAME_CHARACTERS.charAt(Math.floor(random() * NAME_CHARACTERS.length))
  }
  return name
}

/** The owner references without duplicates; warns if there were any. */
export function withoutDuplicateOwners(object: JsonObject, warnings: string[]): JsonObject {
  const owners = metaOf(object)['ownerReferences']
  if (!Array.isArray(owners)) return object
  const seen = new Set<string>()
  const kept = owners.filter((owner: unknown) => {
    const key = isRecord(owner) ? JSON.stringify(Object.entries(owner).sort(([a], [b]) => (a < b ? -1 : 1))) : ''
    return !seen.has(key) && seen.add(key)
  })
  if (kept.length === owners.length) return object
  // endpoints/handlers/rest.go, dedupOwnerReferencesAndAddWarning
  warnings.push(
    '.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests',
  )
  return withMetadata(object, { ownerReferences: kept })
}
