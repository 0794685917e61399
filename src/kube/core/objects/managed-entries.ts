// metadata.managedFields as a table of field owners (k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, listOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { decodeFieldSet, encodeFieldSet, FieldSet } from './field-set.ts'

type Operation = 'Apply' | 'Update'

/** Identity of an entry: all of these, except that an applier has one entry whatever version it applied. */
export interface Manager {
  readonly name: string
  readonly operation: Operation
  readonly subresource: string
  readonly apiVersion: string
}

export interface ManagedEntry {
  readonly manager: Manager
  readonly fields: FieldSet
  /** RFC 3339; absent if the manager never changed the object, and only shares existing values. */
  readonly time: string | undefined
}

/** By managerKey. Never modified once published. */
export type ManagedEntries = ReadonlyMap<string, ManagedEntry>

export function managerKey({ name, operation, subresource, apiVersion }: Manager): string {
  return JSON.stringify([operation, subresource, operation === 'Apply' ? '' : apiVersion, name])
}

const MAX_NAME = 128

/** undefined if an entry can't be understood. */
export function decodeManagedFields(list: unknown): Map<string, ManagedEntry> | undefined {
  const entries = new Map<string, ManagedEntry>()
  for (const item of listOf(list)) {
    const entry = entryOf(item)
    if (entry === undefined) return undefined
    entries.set(managerKey(entry.manager), entry)
  }
  return entries
}

function entryOf(item: unknown): ManagedEntry | undefined {
  if (!isRecord(item)) return undefined
  const { operation, apiVersion, fieldsType, time } = item
  if ((operation !== 'Apply' && operation !== 'Update') || fieldsType !== 'FieldsV1') return undefined
  if (typeof apiVersion !== 'string' || apiVersion === '') return undefined
  const fields = decodeFieldSet(item['fieldsV1'] ?? {})
  if (fields === undefined) return undefined
  const name = textOf(item['manager'])
  if (Buffer.byteLength(name) > MAX_NAME) return undefined
  const manager: Manager = { name, operation, apiVersion, subresource: textOf(item['subresource']) }
  return { manager, fields, time: typeof time === 'string' ? time : undefined }
}

/** In kube-apiserver's order: appliers before updaters, then by time and name. */
function encodeManagedFields(entries: ManagedEntries): JsonObject[] {
  return [...entries.values()].sort(compareEntries).map(({ manager, fields, time }) => ({
    ...(manager.name !== '' && { manager: manager.name }),
    operation: manager.operation,
    apiVersion: manager.apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: encodeFieldSet(fields),
    ...(manager.subresource !== '' && { subresource: manager.subresource }),
  }))
}

function compareEntries(a: ManagedEntry, b: ManagedEntry): number {
  return (
    compareText(a.manager.operation, b.manager.operation) ||
    secondsOf(a.time) - secondsOf(b.time) ||
    compareText(a.manager.name, b.manager.name) ||
    compareText(a.manager.apiVersion, b.manager.apiVersion) ||
    compareText(a.manager.subresource, b.manager.subresource)
  )
}

function secondsOf(time: string | undefined): number {
  const milliseconds = time === undefined ? 0 : Date.parse(time)
  return Number.isNaN(milliseconds) ? 0 : Math.floor(milliseconds / 1000)
}

const MAX_UPDATERS = 10
const OLD_UPDATERS = 'ancient-changes'

/** At most ten updaters: the oldest of each version are merged (capmanagers.go). */
export function capUpdaters(entries: ManagedEntries): ManagedEntries {
  const updaters = [...entries].filter(([, { manager }]) => manager.operation === 'Update')
  if (updaters.length <= MAX_UPDATERS) return entries
  updaters.sort(([a, old], [b, other]) => secondsOf(old.time) - secondsOf(other.time) || compareText(a, b))
  const capped = new Map(entries)
  const firstOfVersion = new Map<string, string>()
  /** By bucket; filled only here, so the sets may be modified. */
  const joined = new Map<string, FieldSet>()
  let count = updaters.length
  for (const [key, { manager, fields, time }] of updaters) {
    if (count <= MAX_UPDATERS) break
    const first = firstOfVersion.get(manager.apiVersion)
    if (first === undefined) {
      firstOfVersion.set(manager.apiVersion, key)
      continue
    }
    const bucketOf: Manager = {
      name: OLD_UPDATERS,
      operation: 'Update',
      subresource: '',
      apiVersion: manager.apiVersion,
    }
    const bucket = managerKey(bucketOf)
    const all = joined.get(bucket) ?? joinedWith(capped.get(bucket) ?? capped.get(first))
    all.absorb(fields)
    joined.set(bucket, all)
    capped.delete(first)
    capped.delete(key)
    capped.set(bucket, { manager: bucketOf, fields: all, time })
    count--
  }
  return capped
}

function joinedWith(entry: ManagedEntry | undefined): FieldSet {
  const fields = new FieldSet()
  if (entry !== undefined) fields.absorb(entry.fields)
  return fields
}

/** The object with its entries replaced; without any, `metadata.managedFields` is absent. */
export function withManagedFields(object: JsonObject, entries: ManagedEntries): JsonObject {
  const { metadata } = object
  const { managedFields: _, ...others } = isRecord(metadata) ? metadata : {}
  const list = encodeManagedFields(entries)
  if (list.length === 0 && !isRecord(metadata)) return object
  return { ...object, metadata: { ...others, ...(list.length > 0 && { managedFields: list }) } }
}

export function withoutManagedFields(object: JsonObject): JsonObject {
  return withManagedFields(object, new Map())
}

export function managedFieldsOf(object: JsonObject | undefined): unknown {
  const metadata = object?.['metadata']
  return isRecord(metadata) ? metadata['managedFields'] : undefined
}
