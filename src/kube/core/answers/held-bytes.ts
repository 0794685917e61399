// Heap size of a parsed response while it is kept, and a way to drop the bulk of an object.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'

/** A map or list, with V8's overhead; each of its members; a text, besides its characters. With pointers of 8 bytes. */
const OBJECT_BYTES = 56
const MEMBER_BYTES = 16
const TEXT_BYTES = 24

/** Lower bound; linear in the value. Keys count as characters, although V8 stores each only once. */
export function leastBytes(value: unknown): number {
  if (typeof value === 'string') return TEXT_BYTES + value.length
  if (typeof value !== 'object' || value === null) return 0
  let bytes = OBJECT_BYTES
  if (Array.isArray(value)) {
    for (const item of value) bytes += MEMBER_BYTES + leastBytes(item)
    return bytes
  }
  for (const [key, member] of Object.entries(value)) bytes += MEMBER_BYTES + key.length + leastBytes(member)
  return bytes
}

/** Drops most of a pod that decides nothing: managedFields, containers and volumes. */
export function withoutBulk(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = recordOf(object['metadata'])
  if (!isRecord(object['spec'])) return { ...object, metadata }
  const { containers: _containers, volumes: _volumes, ...spec } = object['spec']
  return { ...object, metadata, spec }
}
