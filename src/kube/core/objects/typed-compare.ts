// Compares two versions of a value field by field (sigs.k8s.io/structured-merge-diff/v6/typed/compare.go).

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { sameJson } from '../../../kit/core/text/same-json.ts'
import { type Atom, deduced, kindOfAtom, type ListAtom, type MapAtom, memberAtom, sameAtom } from './atom.ts'
import { FieldSet } from './field-set.ts'
import { memberElement } from './path-element.ts'
import { elementOf } from './typed-fields.ts'

export interface FieldComparison {
  readonly added: FieldSet
  readonly modified: FieldSet
  readonly removed: FieldSet
}

export function compareValues(atom: Atom, before: unknown, after: unknown): FieldComparison {
  const comparing = new Comparing()
  comparing.compare(atom, before, after, [])
  return comparing
}

class Comparing implements FieldComparison {
  readonly added = new FieldSet()
  readonly modified = new FieldSet()
  readonly removed = new FieldSet()

  /** undefined = absent. */
  compare(atom: Atom, before: unknown, after: unknown, path: readonly string[]): void {
    const was = deduced(atom, before)
    const is = deduced(atom, after)
    let leaf: boolean
    if (after === undefined) leaf = this.#as(was, before, after, path)
    else {
      if (before !== undefined && !sameAtom(was, is)) this.#as(was, before, after, path)
      leaf = this.#as(is, before, after, path)
    }
    if (leaf) return
    if (before === undefined) this.added.insert(path)
    else if (after === undefined) this.removed.insert(path)
  }

  /** @returns whether it was compared as one value */
  #as(atom: Atom, before: unknown, after: unknown, path: readonly string[]): boolean {
    const { map, list } = atom
    const kind = kindOfAtom(atom)
    if (kind === 'map' && map !== undefined) {
      const was = isRecord(before) ? before : {}
      const is = isRecord(after) ? after : {}
      if (map.atomic || (Object.keys(was).length === 0 && Object.keys(is).length === 0)) {
        return this.#leaf(before, after, path)
      }
      this.#members(map, was, is, path)
      return false
    }
    if (kind === 'list' && list !== undefined) {
      const was: readonly unknown[] = Array.isArray(before) ? before : []
      const is: readonly unknown[] = Array.isArray(after) ? after : []
      if (list.atomic || (was.length === 0 && is.length === 0)) return this.#leaf(before, after, path)
      this.#items(list, was, is, path)
      return false
    }
    return this.#leaf(before, after, path)
  }

  #leaf(before: unknown, after: unknown, path: readonly string[]): true {
    if (before === undefined) this.added.insert(path)
    else if (after === undefined) this.removed.insert(path)
    else if (!sameJson(before, after)) this.modified.insert(path)
    return true
  }

  #members(
    map: MapAtom,
    before: Readonly<Record<string, unknown>>,
    after: Readonly<Record<string, unknown>>,
    path: readonly string[],
  ): void {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const atom = memberAtom(map, key)
      const was = Object.hasOwn(before, key) ? before[key] : undefined
      const is = Object.hasOwn(after, key) ? after[key] : undefined
      if (atom !== undefined) this.compare(atom, was, is, [...path, memberElement(key)])
    }
  }

  #items(list: ListAtom, before: readonly unknown[], after: readonly unknown[], path: readonly string[]): void {
    const was = byElement(list, before)
    const is = byElement(list, after)
    for (const element of new Set([...was.keys(), ...is.keys()])) {
      const at = [...path, element]
      const old = was.get(element) ?? []
      const now = is.get(element) ?? []
      if (old.length <= 1 && now.length <= 1) this.compare(list.items, old[0], now[0], at)
      else if (old.length >= 2 && now.length >= 2) {
        if (!sameJson(old, now)) this.modified.insert(at)
      } else if (old.length >= 2) {
        // Duplicate items were one field; a single item has fields of its own.
        if (now.length === 1) this.compare(list.items, undefined, now[0], at)
        this.removed.insert(at)
      } else {
        if (old.length === 1) this.compare(list.items, old[0], undefined, at)
        this.added.insert(at)
      }
    }
  }
}

function byElement(list: ListAtom, items: readonly unknown[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>()
  for (const item of items) {
    const element = elementOf(list, item)
    const same = found.get(element)
    if (same === undefined) found.set(element, [item])
    else same.push(item)
  }
  return found
}
