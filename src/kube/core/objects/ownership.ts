// How a change of an object affects the owners of its fields (sigs.k8s.io/structured-merge-diff/v6/merge/update.go,
// k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go).

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../../kit/api/json/json-schema.ts'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { type Atom, objectAtom } from './atom.ts'
import { type FieldSet, fieldSetOf } from './field-set.ts'
import { capUpdaters, type ManagedEntries, type ManagedEntry, type Manager, managerKey } from './managed-entries.ts'
import { compareValues, type FieldComparison } from './typed-compare.ts'

/** Properties of a write, whatever its method. */
export interface Writing {
  /** '' = `unknown`. */
  readonly manager: string
  readonly subresource: '' | 'status'
  readonly apiVersion: string
  /** Current time, RFC 3339 in UTC to the second. */
  readonly time: string
  readonly schema: JsonSchema
  /** Whether there is a status subresource: then only writes to it track `status`, and nothing else. */
  readonly hasStatus: boolean
}

/** A field that another manager owns with a different value. */
export interface FieldConflict {
  readonly manager: string
  /** `.spec.ports[name="x"].port` */
  readonly field: string
  /** `conflict with "kubectl-create" using proxy.kubegateway.io/v1alpha1` */
  readonly message: string
}

const STATUS = fieldSetOf([['f:status']])
const NOT_STATUS = fieldSetOf([['f:metadata'], ['f:spec']])

/** Fields that are never owned: set by the server, or identifying the object. */
const UNTRACKED = fieldSetOf([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...['name', 'namespace', 'creationTimestamp', 'selfLink', 'uid', 'clusterName', 'generation'].map(metadataPath),
  ...['managedFields', 'resourceVersion'].map(metadataPath),
])

function metadataPath(name: string): string[] {
  return ['f:metadata', `f:${name}`]
}

export function managerOf(writing: Writing, operation: Manager['operation']): Manager {
  const { manager, subresource, apiVersion } = writing
  return { name: manager === '' ? 'unknown' : manager, operation, subresource, apiVersion }
}

/** Drops the fields that this write can't change. */
export function tracked(writing: Writing, set: FieldSet): FieldSet {
  if (writing.subresource === 'status') return set.without(NOT_STATUS)
  return writing.hasStatus ? set.without(STATUS) : set
}

export function withoutUntracked(entries: ManagedEntries, manager: Manager): Map<string, ManagedEntry> {
  const key = managerKey(manager)
  const stripped = new Map(entries)
  const entry = entries.get(key)
  if (entry === undefined) return stripped
  const fields = entry.fields.difference(UNTRACKED)
  if (fields.isEmpty()) stripped.delete(key)
  else stripped.set(key, { ...entry, fields })
  return stripped
}

export function compareTracked(writing: Writing, atom: Atom, before: JsonObject, after: JsonObject): FieldComparison {
  const { added, modified, removed } = compareValues(atom, before, after)
  return { added: tracked(writing, added), modified: tracked(writing, modified), removed: tracked(writing, removed) }
}

/**
 * The entries of everyone but `writer` after the change: fields that were changed or removed are no longer theirs. Entries without fields
 * vanish, and so do those of versions that the kind no longer has.
 */
export function othersAfter(
  writing: Writing,
  entries: ManagedEntries,
  writer: string,
  { added, modified, removed }: FieldComparison,
): { readonly entries: Map<string, ManagedEntry>; readonly conflicts: readonly FieldConflict[] } {
  const left = new Map<string, ManagedEntry>()
  const conflicts: FieldConflict[] = []
  const changed = modified.union(added)
  for (const [key, entry] of [...entries].sort(([, a], [, b]) => compareText(a.manager.name, b.manager.name))) {
    if (entry.manager.apiVersion !== writing.apiVersion && key !== writer) continue
    const taken = key === writer ? undefined : entry.fields.intersection(changed)
    if (taken !== undefined && !taken.isEmpty()) {
      for (const conflict of conflictsWith(entry.manager, taken)) conflicts.push(conflict)
    }
    const fields = taken === undefined ? entry.fields : entry.fields.difference(taken).difference(removed)
    if (!fields.isEmpty()) left.set(key, { ...entry, fields })
  }
  return { entries: left, conflicts }
}

function conflictsWith(manager: Manager, fields: FieldSet): FieldConflict[] {
  const subresource = manager.subresource === '' ? '' : ` with subresource ${JSON.stringify(manager.subresource)}`
  const using = manager.operation === 'Update' ? ` using ${manager.apiVersion}` : ''
  const message = `conflict with ${JSON.stringify(manager.name)}${subresource}${using}`
  return [...fields.paths()].map((field) => ({ manager: manager.name, field, message }))
}

/** The entries after `before` was replaced by `after`: what is new or different belongs to the writer alone. */
export function entriesAfterUpdate(
  writing: Writing,
  entries: ManagedEntries,
  before: JsonObject,
  after: JsonObject,
): ManagedEntries {
  const comparison = compareTracked(writing, objectAtom(writing.schema), before, after)
  const manager = managerOf(writing, 'Update')
  const key = managerKey(manager)
  // The writer's own entry is treated like any other, then joined with the current changes.
  const { entries: left } = othersAfter(writing, entries, '', comparison)
  const own = new Map(left)
  const fields = comparison.modified.union(comparison.added).difference(UNTRACKED)
  if (!fields.isEmpty()) {
    const earlier = left.get(key)
    own.set(key, { manager, fields: earlier === undefined ? fields : fields.union(earlier.fields), time: writing.time })
  }
  return capUpdaters(own)
}
