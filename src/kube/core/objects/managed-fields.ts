// metadata.managedFields after a create, update or patch
// (k8s.io/apimachinery/pkg/util/managedfields/internal/{fieldmanager,skipnonapplied}.go).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import {
  decodeManagedFields,
  type ManagedEntries,
  managedFieldsOf,
  withManagedFields,
  withoutManagedFields,
} from './managed-entries.ts'
import { entriesAfterUpdate, type Writing } from './ownership.ts'

interface UpdateChange extends Writing {
  /** undefined = the object is being created. */
  readonly before: JsonObject | undefined
  /**
   * The new object, shaped and with defaults. Its metadata.managedFields count as well: clients may edit them, and one empty entry (`[{}]`)
   * removes them all. If they are absent or not understood, those of `before` are used.
   */
  readonly after: JsonObject
}

/**
 * `after` with metadata.managedFields updated: the manager owns what is new or different, and the others no longer do. An object whose
 * managedFields were removed stays without them until the next apply.
 */
export function trackUpdate(change: UpdateChange): JsonObject {
  const { before, after, apiVersion } = change
  const entries = change.subresource === '' ? givenEntries(change) : storedEntries(before)
  if (entries.size === 0 && before !== undefined) return withoutManagedFields(after)
  const live = before === undefined ? { apiVersion, kind: after['kind'] } : withoutManagedFields(before)
  return withManagedFields(after, entriesAfterUpdate(change, entries, live, withoutManagedFields(after)))
}

function givenEntries({ before, after }: UpdateChange): ManagedEntries {
  const given = managedFieldsOf(after)
  if (isReset(given)) return new Map()
  const entries = decodeManagedFields(given)
  return entries === undefined || entries.size === 0 ? storedEntries(before) : entries
}

function storedEntries(object: JsonObject | undefined): ManagedEntries {
  return decodeManagedFields(managedFieldsOf(object)) ?? new Map()
}

function isReset(list: unknown): boolean {
  return Array.isArray(list) && list.length === 1 && isRecord(list[0]) && Object.keys(list[0]).length === 0
}
