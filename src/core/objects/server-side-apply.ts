// Server-side apply (k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go,
// sigs.k8s.io/structured-merge-diff/v6/merge/update.go).
// https://kubernetes.io/docs/reference/using-api/server-side-apply/

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { StatusError, statusError } from '../../api/kube/status.ts'
import { sameJson } from '../text/same-json.ts'
import { type Atom, objectAtom } from './atom.ts'
import { MOST_ERRORS } from './field-error.ts'
import { FieldSet } from './field-set.ts'
import { appliedByClient, KUBECTL, withLastApplied } from './last-applied.ts'
import {
  decodeManagedFields,
  type ManagedEntries,
  type ManagedEntry,
  managedFieldsOf,
  managerKey,
  withManagedFields,
  withoutManagedFields,
} from './managed-entries.ts'
import {
  compareTracked,
  entriesAfterUpdate,
  type FieldConflict,
  managerOf,
  othersAfter,
  tracked,
  type Writing,
  withoutUntracked,
} from './ownership.ts'
import { withDefaults } from './structural-schema.ts'
import { fieldsOf, typeErrors } from './typed-fields.ts'
import { mergeValues } from './typed-merge.ts'
import { removeFields, withNamedFields } from './typed-remove.ts'

export interface ApplyChange extends Writing {
  /** undefined = the object is created. */
  readonly live: JsonObject | undefined
  /** The fields that the manager wants, as it sent them: neither shaped nor with defaults. */
  readonly applied: JsonObject
  /** Takes over what others own. */
  readonly force: boolean
}

/** Owner of everything in an object that nobody tracked before the first apply. */
const BEFORE_FIRST_APPLY = 'before-first-apply'

/**
 * The live object with the configuration applied, defaults and managedFields; or who is in the way. Fields that the manager
 * applied the last time and no longer does are removed, unless somebody else owns them. Nulls of the configuration stay, for
 * validation to find. The caller checks that names, apiVersion and kind are those of the request.
 * @throws {StatusError} 400 when the configuration has managedFields, 500 when it does not fit the schema (both as
 * kube-apiserver has it)
 */
export function applyConfiguration(
  change: ApplyChange,
): { readonly object: JsonObject } | { readonly conflicts: readonly FieldConflict[] } {
  const { applied, schema } = change
  const atom = objectAtom(schema)
  if (managedFieldsOf(applied) !== undefined) throw statusError('BadRequest', 'metadata.managedFields must be nil')
  const errors = typeErrors(atom, applied)
  if (errors.length > 0) throw notApplicable(change, errors)
  const live = withoutManagedFields(change.live ?? { apiVersion: applied['apiVersion'], kind: applied['kind'] })
  const entries = entriesBefore(change, live)
  let outcome = applyOnce(change, atom, live, entries)
  if ('conflicts' in outcome && change.manager === KUBECTL) {
    const allowed = appliedByClient(atom, live, change.apiVersion)
    const conflicts = outcome.conflicts.filter(({ field }) => !allowed.has(field))
    outcome = conflicts.length > 0 ? { conflicts } : applyOnce({ ...change, force: true }, atom, live, entries)
  }
  if ('conflicts' in outcome) return outcome
  const object = change.manager === KUBECTL ? withLastApplied(outcome.object, applied) : outcome.object
  return { object: withManagedFields(withDefaults(schema, object), outcome.entries) }
}

/** 409 with every conflict as a cause. */
export function applyConflict(conflicts: readonly FieldConflict[]): StatusError {
  const [first] = conflicts
  const shown = conflicts.slice(0, MOST_ERRORS)
  const causes = shown.map(({ message, field }) => ({ reason: 'FieldManagerConflict', message, field }))
  if (conflicts.length === 1 && first !== undefined) {
    return statusError('Conflict', `Apply failed with 1 conflict: ${first.message}: ${first.field}`, { causes })
  }
  const byOwner = new Map<string, string[]>()
  for (const { message, field } of shown) {
    const lines = byOwner.get(message)
    if (lines === undefined) byOwner.set(message, [`- ${field}`])
    else lines.push(`- ${field}`)
  }
  const lines = [...byOwner]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([owner, fields]) => [`${owner.replace(/^conflict /, 'conflicts ')}:`, ...fields])
  if (conflicts.length > shown.length) lines.push(`and ${conflicts.length - shown.length} more conflicts`)
  return statusError('Conflict', `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`, { causes })
}

function notApplicable({ applied, apiVersion, live }: ApplyChange, errors: readonly string[]): StatusError {
  const metadata = isRecord(applied['metadata']) ? applied['metadata'] : {}
  const { name = '', namespace = '' } = { ...(isRecord(live?.['metadata']) && live['metadata']), ...metadata }
  const what = `${String(namespace)}/${String(name)}; ${apiVersion}, Kind=${String(applied['kind'])}`
  const all = errors.length === 1 ? errors[0] : `errors:\n  ${errors.join('\n  ')}`
  const message = `failed to create typed patch object (${what}): ${all}`
  return new StatusError({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code: 500 })
}

function entriesBefore(change: ApplyChange, live: JsonObject): ManagedEntries {
  const entries = decodeManagedFields(managedFieldsOf(change.live)) ?? new Map<string, ManagedEntry>()
  if (entries.size > 0 || change.live === undefined) return entries
  const nothing = { apiVersion: live['apiVersion'], kind: live['kind'] }
  return entriesAfterUpdate({ ...change, manager: BEFORE_FIRST_APPLY }, entries, nothing, live)
}

function applyOnce(
  change: ApplyChange,
  atom: Atom,
  live: JsonObject,
  before: ManagedEntries,
):
  | { readonly object: JsonObject; readonly entries: ManagedEntries }
  | { readonly conflicts: readonly FieldConflict[] } {
  const manager = managerOf(change, 'Apply')
  const key = managerKey(manager)
  const last = before.get(key)
  const entries = new Map(before)
  entries.set(key, { manager, fields: tracked(change, fieldsOf(atom, change.applied)), time: last?.time })
  const merged = mergeValues(atom, live, change.applied)
  const pruned = pruneUnowned(atom, merged, entries, last?.fields)
  const object = isRecord(pruned) ? pruned : {}
  const after = othersAfter(change, entries, key, compareTracked(change, atom, live, object))
  if (!change.force && after.conflicts.length > 0) return { conflicts: after.conflicts }
  const left = withoutUntracked(after.entries, manager)
  const own = left.get(key)
  // Who only shares what is there already has changed nothing, and gets no time.
  const changed = !sameJson(live, object)
  if (changed && own !== undefined) left.set(key, { ...own, time: change.time })
  return { object: changed ? object : live, entries: left }
}

/** Without the fields that the manager applied the last time, that are not applied now, and that nobody else owns. */
function pruneUnowned(atom: Atom, merged: unknown, entries: ManagedEntries, last: FieldSet | undefined): unknown {
  if (last === undefined || last.isEmpty()) return merged
  const lastNamed = withNamedFields(atom, last)
  const mergedFields = withNamedFields(atom, fieldsOf(atom, merged))
  const owned = new FieldSet()
  for (const { fields } of entries.values()) owned.absorb(fields)
  const bare = removeFields(atom, merged, lastNamed)
  const keptBare = withNamedFields(atom, fieldsOf(atom, bare)).union(withNamedFields(atom, owned))
  const kept = removeFields(atom, merged, mergedFields.difference(keptBare))
  const keptFields = withNamedFields(atom, fieldsOf(atom, kept))
  const pruned = removeFields(atom, merged, mergedFields.difference(keptFields).intersection(lastNamed))
  return withoutHoles(merged, pruned)
}

/** Nothing left of a map or list that stays itself, because somebody owns it: then it is empty, not null. */
function withoutHoles(before: unknown, after: unknown): unknown {
  if (after === null && Array.isArray(before)) return []
  if (after === null && isRecord(before)) return {}
  if (!isRecord(before) || !isRecord(after)) return after
  return Object.fromEntries(
    Object.entries(after).map(([key, member]): [string, unknown] => [
      key,
      withoutHoles(Object.hasOwn(before, key) ? before[key] : undefined, member),
    ]),
  )
}
