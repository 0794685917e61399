// A value without some of its fields (sigs.k8s.io/structured-merge-diff/v6/typed/remove.go), and sets with the fields that
// lead to their members (fieldpath/set.go, EnsureNamedFieldsAreMembers).

import { isRecord } from '../../api/kube/object-shape.ts'
import { type Atom, deduced, memberAtom } from './atom.ts'
import { FieldSet } from './field-set.ts'
import { memberElement } from './path-element.ts'
import { elementOf } from './typed-fields.ts'

/** null where nothing is left of a map or a list that itself was not to be removed. */
export function removeFields(atom: Atom, value: unknown, fields: FieldSet): unknown {
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

/** The set, and the fields named by the schema on the way to its members: `a` for `a.b.c`, but not a key of a map. */
export function withNamedFields(atom: Atom | undefined, set: FieldSet): FieldSet {
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
