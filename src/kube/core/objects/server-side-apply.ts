// Server-side apply (k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go,
// sigs.k8s.io/structured-merge-diff/v6/merge/update.go).
// https://kubernetes.io/docs/reference/using-api/server-side-apply/

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import { StatusError, statusError } from '../../api/status.ts'
import { type Atom, deduced, type ListAtom, type MapAtom, memberAtom, objectAtom } from './atom.ts'
import { MOST_ERRORS } from './field-error.ts'
import { FieldSet } from './field-set.ts'
import { goJson } from './go-values.ts'
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
import { memberElement } from './path-element.ts'
import { withDefaults } from './structural-schema.ts'
import { compareValues } from './typed-compare.ts'
import { elementOf, fieldsOf, typeErrors } from './typed-fields.ts'

interface ApplyChange extends Writing {
  /** undefined = the object is being created. */
  readonly live: JsonObject | undefined
  /** The manager's configuration as sent: neither shaped nor with defaults. */
  readonly applied: JsonObject
  /** Takes over fields owned by others. */
  readonly force: boolean
}

/** Owner of everything in an object that was not tracked before the first apply. */
const BEFORE_FIRST_APPLY = 'before-first-apply'

/**
 * The live object with the configuration applied, defaults and managedFields; or the conflicts. Fields that the manager applied last time
 * and no longer does are removed, unless another manager owns them. Nulls in the configuration stay, for validation to find. The caller
 * checks that names, apiVersion and kind match the request.
 * @throws {StatusError} 400 if the configuration has managedFields, 500 if it does not fit the schema (both as in kube-apiserver)
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
  // A manager that only shares existing values changed nothing, and gets no time.
  const changed = !sameJson(live, object)
  if (changed && own !== undefined) left.set(key, { ...own, time: change.time })
  return { object: changed ? object : live, entries: left }
}

/** Removes the fields that the manager applied last time, does not apply now, and that no other manager owns. */
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

/** If nothing is left of a map or list that stays because it is owned, it is empty, not null. */
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

// Removes fields from a value (sigs.k8s.io/structured-merge-diff/v6/typed/remove.go), and adds to a set the fields that lead to its members
// (fieldpath/set.go, EnsureNamedFieldsAreMembers).

/** null if nothing is left of a map or list that was not itself to be removed. */
function removeFields(atom: Atom, value: unknown, fields: FieldSet): unknown {
  const { map, list, scalar } = deduced(atom, value)
  if (map !== undefined) {
    if (!isRecord(value) || map.atomic) return null
    const kept: [string, unknown][] = []
    for (const [key, member] of Object.entries(value)) {
      const below = fields.children.get(memberElement(key))
      const of = memberAtom(map, key)
      if (below?.member === true) continue
      const some = below !== undefined && !below.isEmpty() && of !== undefined
      kept.push([key, some ? removeFields(of, member, below) : member])
    }
    return kept.length === 0 ? null : Object.fromEntries(kept)
  }
  if (scalar !== undefined) return value
  if (list === undefined || !Array.isArray(value) || list.atomic) return null
  const kept: unknown[] = []
  for (const item of value) {
    const below = fields.children.get(elementOf(list, item))
    if (below?.member === true) continue
    kept.push(below !== undefined && !below.isEmpty() ? removeFields(list.items, item, below) : item)
  }
  return kept.length === 0 ? null : kept
}

/** The set, plus the fields named in the schema on the way to its members: `a` for `a.b.c`, but not a map key. */
function withNamedFields(atom: Atom | undefined, set: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [element, child] of set.children) {
    const name = element.startsWith('f:') ? element.slice(2) : undefined
    const map = atom?.map
    const named = name !== undefined && map?.field(name) !== undefined && child.children.size > 0
    let below: Atom | undefined
    if (name !== undefined) below = map === undefined ? undefined : memberAtom(map, name)
    else if (element.startsWith('k:')) below = atom?.list?.items
    const inner = withNamedFields(below, child)
    children.set(element, new FieldSet(child.member || named, inner.children))
  }
  return new FieldSet(set.member, children)
}

// kubectl migrates objects from client-side to server-side apply with the server's help: `kubectl apply --server-side` may take over what
// `kubectl apply` wrote before, and the annotation left by the latter is kept up to date for the way back
// (k8s.io/apimachinery/pkg/util/managedfields/internal/{lastappliedmanager,lastappliedupdater}.go).
const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration'
const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** The only manager for which the server does this. */
const KUBECTL = 'kubectl'

/** Paths (`.spec.x`) written by client-side apply and unchanged since. */
function appliedByClient(atom: Atom, live: JsonObject, apiVersion: string): ReadonlySet<string> {
  const applied = lastApplied(live)
  if (applied === undefined || applied['apiVersion'] !== apiVersion) return new Set()
  if (typeErrors(atom, applied).length > 0) return new Set()
  const { modified, added, removed } = compareValues(atom, applied, withoutManagedFields(live))
  return new Set(fieldsOf(atom, applied).difference(modified).difference(added).difference(removed).paths())
}

function lastApplied(object: JsonObject): JsonObject | undefined {
  const text = annotationsOf(object)?.[ANNOTATION]
  if (typeof text !== 'string') return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Updates the annotation, if the object has it, to what was applied now. */
function withLastApplied(object: JsonObject, applied: JsonObject): JsonObject {
  const annotations = annotationsOf(object)
  const before = annotations?.[ANNOTATION]
  if (annotations === undefined || typeof before !== 'string' || before === '') return object
  const updated: Record<string, unknown> = { ...annotations, [ANNOTATION]: `${goJson(withoutAnnotation(applied))}\n` }
  const size = Object.entries(updated).reduce((sum, [key, text]) => sum + Buffer.byteLength(key + String(text)), 0)
  if (size > MAX_ANNOTATIONS_BYTES) delete updated[ANNOTATION]
  return withAnnotations(object, updated)
}

function withoutAnnotation(applied: JsonObject): JsonObject {
  const annotations = annotationsOf(applied)
  if (annotations === undefined) return applied
  const { [ANNOTATION]: _, ...others } = annotations
  return withAnnotations(applied, others)
}

function annotationsOf(object: JsonObject): JsonObject | undefined {
  const metadata = object['metadata']
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined
  return isRecord(annotations) ? annotations : undefined
}

function withAnnotations(object: JsonObject, annotations: JsonObject): JsonObject {
  const metadata = object['metadata']
  return { ...object, metadata: { ...(isRecord(metadata) ? metadata : {}), annotations } }
}

/** Applies one value on top of another (sigs.k8s.io/structured-merge-diff/v6/typed/merge.go); undefined = absent. */
function mergeValues(atom: Atom, live: unknown, applied: unknown): unknown {
  const { map, list, scalar } = deduced(atom, applied === undefined ? live : applied)
  if (map !== undefined) return mergeMaps(map, live, applied)
  if (scalar !== undefined || list === undefined) return topmost(live, applied)
  return mergeLists(list, live, applied)
}

function topmost(live: unknown, applied: unknown): unknown {
  return applied === undefined ? live : applied
}

function mergeMaps(map: MapAtom, live: unknown, applied: unknown): unknown {
  const below = isRecord(live) ? live : {}
  const above = isRecord(applied) ? applied : {}
  const keys = new Set([...Object.keys(below), ...Object.keys(above)])
  if (map.atomic || keys.size === 0) return topmost(live, applied)
  const merged: [string, unknown][] = []
  for (const key of keys) {
    const atom = memberAtom(map, key)
    const old = Object.hasOwn(below, key) ? below[key] : undefined
    const value = atom === undefined ? old : mergeValues(atom, old, Object.hasOwn(above, key) ? above[key] : undefined)
    if (value !== undefined) merged.push([key, value])
  }
  return merged.length === 0 ? undefined : Object.fromEntries(merged)
}

function mergeLists(list: ListAtom, live: unknown, applied: unknown): unknown {
  const below: readonly unknown[] = Array.isArray(live) ? live : []
  const above: readonly unknown[] = Array.isArray(applied) ? applied : []
  if (list.atomic || (below.length === 0 && above.length === 0)) return topmost(live, applied)
  const merged = mergeItems(list, below, above)
  return merged.length === 0 ? undefined : merged
}

/** Items in both lists come in the order of the applied list; the others stay next to their neighbours. */
function mergeItems(list: ListAtom, live: readonly unknown[], applied: readonly unknown[]): unknown[] {
  const liveElements = live.map((item) => elementOf(list, item))
  const appliedElements = applied.map((item) => elementOf(list, item))
  const liveItems = uniqueItems(liveElements, live)
  const appliedItems = uniqueItems(appliedElements, applied)
  const shared = appliedElements.filter((element) => liveItems.has(element))
  const out: unknown[] = []
  const taken = new Set<string>()
  // An index, because shifting a long list moves all of it.
  let sharedSoFar = 1
  let nextShared = shared[0]
  const put = (old: unknown, now: unknown): void => {
    const value = mergeValues(list.items, old, now)
    if (value !== undefined) out.push(value)
  }
  for (let at = 0, to = 0; at < live.length || to < applied.length; ) {
    const old = liveElements[at]
    const now = appliedElements[to]
    if (old !== undefined && now !== undefined && old !== now) {
      if (appliedItems.has(old) && nextShared !== undefined && nextShared !== old) {
        at++
        continue
      }
    }
    if (old !== undefined && old !== now) {
      if (!appliedItems.has(old)) {
        put(live[at++], undefined)
        continue
      }
      if (taken.has(old)) at++
    }
    if (now === undefined) continue
    if (old === now) at++
    taken.add(now)
    put(liveItems.get(now), appliedItems.get(now))
    to++
    if (old === now || nextShared === now) nextShared = shared[sharedSoFar++]
  }
  return out
}

/** Duplicate items are not merged with anything. */
function uniqueItems(elements: readonly string[], items: readonly unknown[]): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [at, element] of elements.entries()) found.set(element, found.has(element) ? null : items[at])
  return found
}
