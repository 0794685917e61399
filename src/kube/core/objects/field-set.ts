// Sets of fields, as stored in managedFields (sigs.k8s.io/structured-merge-diff/v6/fieldpath/set.go): a tree of path elements in which
// every node may be a member of the set itself, have members below it, or both.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { isElement, shownElement } from './path-element.ts'

export class FieldSet {
  /** Whether the field at this node belongs to the set. Meaningless for the root. */
  member: boolean
  readonly children: Map<string, FieldSet>

  constructor(member = false, children: Map<string, FieldSet> = new Map()) {
    this.member = member
    this.children = children
  }

  isEmpty(): boolean {
    for (const child of this.children.values()) if (child.member || !child.isEmpty()) return false
    return true
  }

  /** The node of an element, created if needed. */
  child(element: string): FieldSet {
    let child = this.children.get(element)
    if (child === undefined) {
      child = new FieldSet()
      this.children.set(element, child)
    }
    return child
  }

  insert(path: readonly string[]): void {
    let node: FieldSet = this
    for (const element of path) node = node.child(element)
    node.member = true
  }

  has(path: readonly string[]): boolean {
    let node: FieldSet | undefined = this
    for (const element of path) node = node?.children.get(element)
    return node?.member === true
  }

  union(other: FieldSet): FieldSet {
    const children = new Map(this.children)
    for (const [element, theirs] of other.children) {
      const ours = children.get(element)
      children.set(element, ours === undefined ? theirs : ours.union(theirs))
    }
    return new FieldSet(this.member || other.member, children)
  }

  /** Adds all of another set, which is not modified: many sets are joined in time linear in their total size. */
  absorb(other: FieldSet): void {
    this.member ||= other.member
    for (const [element, theirs] of other.children) this.child(element).absorb(theirs)
  }

  intersection(other: FieldSet): FieldSet {
    return this.#combine(other, (ours, theirs) => {
      return theirs === undefined
        ? undefined
        : new FieldSet(ours.member && theirs.member, ours.intersection(theirs).children)
    })
  }

  /** Removes the members of the other set; what is below them stays. */
  difference(other: FieldSet): FieldSet {
    return this.#combine(other, (ours, theirs) => {
      return theirs === undefined ? ours : new FieldSet(ours.member && !theirs.member, ours.difference(theirs).children)
    })
  }

  /** Removes the members of the other set and everything below them. */
  without(other: FieldSet): FieldSet {
    return this.#combine(other, (ours, theirs) => {
      if (theirs === undefined) return ours
      return theirs.member ? undefined : new FieldSet(ours.member, ours.without(theirs).children)
    })
  }

  #combine(other: FieldSet, choose: (ours: FieldSet, theirs: FieldSet | undefined) => FieldSet | undefined): FieldSet {
    const children = new Map<string, FieldSet>()
    for (const [element, ours] of this.children) {
      const kept = choose(ours, other.children.get(element))
      if (kept === undefined) continue
      // A combined set has no empty nodes left; only one taken over unchanged must be searched for them.
      const empty = kept === ours ? kept.isEmpty() : kept.children.size === 0
      if (kept.member || !empty) children.set(element, kept)
    }
    return new FieldSet(this.member, children)
  }

  equals(other: FieldSet): boolean {
    return JSON.stringify(encodeFieldSet(this)) === JSON.stringify(encodeFieldSet(other))
  }

  /** All members, as `.spec.ports[name="x"].port`; members of a node before what is below it. */
  *paths(prefix = ''): Generator<string> {
    const elements = [...this.children].sort(([a], [b]) => compareText(a, b))
    for (const [element, child] of elements) if (child.member) yield prefix + shownElement(element)
    for (const [element, child] of elements) yield* child.paths(prefix + shownElement(element))
  }
}

/** @param paths each a list of elements: `['f:metadata', 'f:name']` */
export function fieldSetOf(paths: readonly (readonly string[])[]): FieldSet {
  const set = new FieldSet()
  for (const path of paths) set.insert(path)
  return set
}

/** fieldsV1: `{}` is a member, `.` marks a member that has others below it. */
export function encodeFieldSet(set: FieldSet): Readonly<Record<string, unknown>> {
  const entries: [string, unknown][] = []
  for (const [element, child] of [...set.children].sort(([a], [b]) => compareText(a, b))) {
    const below = encodeFieldSet(child)
    if (Object.keys(below).length === 0) {
      if (child.member) entries.push([element, {}])
    } else entries.push([element, child.member ? { '.': {}, ...below } : below])
  }
  return Object.fromEntries(entries)
}

/** undefined if it is not a field set. */
export function decodeFieldSet(fields: unknown): FieldSet | undefined {
  if (!isRecord(fields)) return undefined
  const set = new FieldSet()
  for (const [element, below] of Object.entries(fields)) {
    if (element === '.') {
      set.member = true
      continue
    }
    const child = isElement(element) ? decodeFieldSet(below) : undefined
    if (child === undefined) return undefined
    if (child.children.size === 0) child.member = true
    set.children.set(element, child)
  }
  return set
}
