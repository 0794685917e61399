// Strategic merge patches: lists are replaced, unless the schema names the key by which their items are merged
// (apimachinery/pkg/util/strategicpatch/patch.go).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { memberSchema, type SchemaView, viewOf } from '../../kit/api/json/schema-view.ts'
import { statusError } from '../../kube/api/status.ts'
import { OBJECT_META_SCHEMA } from '../objects/object-meta-schema.ts'

const DIRECTIVE = '$patch'
const RETAIN_KEYS = '$retainKeys'
const ORDER = '$setElementOrder/'
const DELETE_ITEMS = '$deleteFromPrimitiveList/'

/**
 * @param schema of the object; undefined = only the lists of metadata are merged
 * @throws {StatusError} 400 if the patch can't be parsed
 */
export function strategicPatch(target: JsonObject, patch: unknown, schema: JsonSchema | undefined): unknown {
  if (!isRecord(patch)) {
    const type = Array.isArray(patch) ? 'array' : typeof patch
    const message = `error decoding patch: json: cannot unmarshal ${type} into Go value of type map[string]interface {}`
    throw statusError('BadRequest', message)
  }
  const known = schema === undefined ? {} : viewOf(schema)
  return mergedRecord(target, patch, { ...known, properties: { ...known.properties, metadata: OBJECT_META_SCHEMA } })
}

/** Merge key of the items of a list; '' for lists of plain values, undefined for lists that are replaced. */
function mergeKeyOf(schema: SchemaView | undefined): string | undefined {
  switch (schema?.['x-kubernetes-list-type']) {
    case 'set':
      return ''
    case 'map':
      return schema['x-kubernetes-list-map-keys']?.[0]
    default:
      return undefined
  }
}

function mergedRecord(target: JsonObject, patch: JsonObject, schema: SchemaView | undefined): JsonObject {
  const directive = Object.hasOwn(patch, DIRECTIVE) ? patch[DIRECTIVE] : 'merge'
  if (directive === 'delete') return {}
  if (directive === 'replace') return withoutDirectives(patch)
  if (directive !== 'merge') {
    // An object with its own `toString` can't be converted to a string.
    const text = typeof directive === 'string' ? directive : JSON.stringify(directive)
    throw statusError('BadRequest', `unknown patch type: ${text}`)
  }
  const members = new Map(Object.entries(retained(target, patch)))
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE_ITEMS)) {
      const list = key.slice(DELETE_ITEMS.length)
      members.set(list, withoutItems(members.get(list), value))
    } else if (!isDirective(key)) {
      if (value === null) members.delete(key)
      else members.set(key, mergedMember(members.get(key), value, memberSchema(schema, key)))
    }
  }
  return Object.fromEntries(members)
}

function mergedMember(target: unknown, patch: unknown, schema: SchemaView | undefined): unknown {
  if (isRecord(patch)) return mergedRecord(isRecord(target) ? target : {}, patch, schema)
  const key = mergeKeyOf(schema)
  if (!Array.isArray(patch) || key === undefined) return patch
  const held: readonly unknown[] = Array.isArray(target) ? target : []
  return key === '' ? [...new Set([...held, ...patch])] : mergedItems(held, patch, key, schema?.items)
}

function mergedItems(
  held: readonly unknown[],
  patch: readonly unknown[],
  key: string,
  schema: SchemaView | undefined,
): unknown[] {
  const whole = patch.some((change) => directiveOf(change) === 'replace')
  // Removed items leave holes that are closed once at the end; otherwise it would take quadratic time.
  const items: unknown[] = whole ? [] : [...held]
  const places = placesOf(items, key)
  for (const change of patch) {
    // A replaced list gets the items without a directive (mergeSliceWithSpecialElements).
    if (!isRecord(change) || (whole && directiveOf(change) !== undefined)) continue
    const id = change[key]
    if (id === undefined) {
      throw statusError('BadRequest', `map: ${JSON.stringify(change)} does not contain declared merge key: ${key}`)
    }
    const at = places.get(id)
    if (directiveOf(change) === 'delete') {
      if (at === undefined) continue
      items[at] = HOLE
      places.delete(id)
      continue
    }
    const item = at === undefined ? undefined : items[at]
    const merged = mergedRecord(isRecord(item) ? item : {}, change, schema)
    if (at === undefined) places.set(id, items.push(merged) - 1)
    else items[at] = merged
  }
  return items.filter((item) => item !== HOLE)
}

function directiveOf(change: unknown): unknown {
  return isRecord(change) && Object.hasOwn(change, DIRECTIVE) ? change[DIRECTIVE] : undefined
}

/** Marks a removed item; can't occur in JSON. */
const HOLE = undefined

/** The index of the first item for each value of the key. */
function placesOf(items: readonly unknown[], key: string): Map<unknown, number> {
  const places = new Map<unknown, number>()
  for (const [at, item] of items.entries()) {
    if (isRecord(item) && !places.has(item[key])) places.set(item[key], at)
  }
  return places
}

/** `$retainKeys` lists all fields to keep. */
function retained(target: JsonObject, patch: JsonObject): JsonObject {
  const keys = Object.hasOwn(patch, RETAIN_KEYS) ? patch[RETAIN_KEYS] : undefined
  if (!Array.isArray(keys)) return target
  const kept = new Set<unknown>(keys)
  return Object.fromEntries(Object.entries(target).filter(([key]) => kept.has(key)))
}

function withoutItems(list: unknown, items: unknown): unknown {
  if (!Array.isArray(list) || !Array.isArray(items)) return list
  const gone = new Set<unknown>(items)
  return list.filter((item: unknown) => !gone.has(item))
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !isDirective(key)))
}

function isDirective(key: string): boolean {
  return key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(ORDER) || key.startsWith(DELETE_ITEMS)
}
