// What a parsed answer takes in V8's heap for as long as somebody keeps it, and what need not be kept of an object.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf } from '../../../kit/api/json/object-shape.ts'

/** A map or list, with what V8 adds to it; each member of it; a text, beside its characters. As pointers of 8 bytes are counted. */
const OBJECT_BYTES = 56
const MEMBER_BYTES = 16
const TEXT_BYTES = 24

/** At least; linear in it. Keys count as characters, though V8 has each of them once. */
export function heldBytes(value: unknown): number {
  if (typeof value === 'string') return TEXT_BYTES + value.length
  if (typeof value !== 'object' || value === null) return 0
  let bytes = OBJECT_BYTES
  if (Array.isArray(value)) {
    for (const item of value) bytes += MEMBER_BYTES + heldBytes(item)
    return bytes
  }
  for (const [key, member] of Object.entries(value)) bytes += MEMBER_BYTES + key.length + heldBytes(member)
  return bytes
}

/** Without what is most of a pod, and decides nothing: who manages its fields, its containers and volumes. */
export function withoutBulk(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = recordOf(object['metadata'])
  if (!isRecord(object['spec'])) return { ...object, metadata }
  const { containers: _containers, volumes: _volumes, ...spec } = object['spec']
  return { ...object, metadata, spec }
}
