// Finds the protectors that select a pod, among many: a tree of selectors per namespace. Each selector is filed under one of its
// requirements: under each value of one label, or under the label itself for Exists. The least crowded place is chosen, so that a label
// common to all costs nothing. A crowded place is split by another requirement. A lookup follows only the pod's own labels, and checks each
// selector found there in full.

import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'

interface IndexedProtector {
  readonly namespace: string
  readonly filed: FiledSelector
}

export class ProtectorIndex {
  readonly #trees = new Map<string, SelectorTree>()
  readonly #entries = new Map<string, IndexedProtector>()

  get size(): number {
    return this.#entries.size
  }

  /**
   * Adds a selector or replaces the one of this key.
   * @throws {SyntaxError} as compileSelector; the previous one stays
   */
  put(key: string, namespace: string, selector: LabelSelector): void {
    const compiled = compileSelector(selector)
    this.remove(key)
    let tree = this.#trees.get(namespace)
    if (tree === undefined) {
      tree = new SelectorTree()
      this.#trees.set(namespace, tree)
    }
    const filed: FiledSelector = { key, selector: compiled, places: placesOf(compiled) }
    tree.add(filed)
    this.#entries.set(key, { namespace, filed })
  }

  remove(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    const tree = this.#trees.get(entry.namespace)
    tree?.delete(entry.filed)
    if (tree?.size === 0) this.#trees.delete(entry.namespace)
  }

  /** Keys of the selectors that match, sorted. */
  query(namespace: string, labels: Labels): string[] {
    const found: string[] = []
    this.#trees.get(namespace)?.collect(labels, found)
    return found.length > 1 ? found.sort(byText) : found
  }

  /** Snapshot of the namespaces with a selector. */
  namespaces(): ReadonlySet<string> {
    return new Set(this.#trees.keys())
  }
}

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}

interface FiledSelector {
  readonly key: string
  readonly selector: CompiledSelector
  readonly places: readonly Place[]
}

/** A place where a selector can be filed. */
type Place =
  /** Matches only objects with one of the values; no values = nothing can match. */
  { readonly label: string; readonly values: ReadonlySet<string> } | { readonly label: string; readonly values: 'any' }

/** A place with at most this many selectors is not split. */
const CROWD = 8
/** Maximum number of splits; together with NARROW it keeps memory linear in the size of the selectors. */
const MAX_DEPTH = 3
/** Below the top, a selector is filed under at most this many values: products of values would otherwise grow without bound. */
const NARROW = 4

type Branch = FiledSelector[] | SelectorTree

interface LabelBranches {
  any: Branch | undefined
  readonly values: Map<string, Branch>
}

class SelectorTree {
  readonly #depth: number
  /** The place of each selector; undefined = in `#rest`. */
  readonly #placeOf = new Map<FiledSelector, Place | undefined>()
  readonly #labels = new Map<string, LabelBranches>()
  /** Selectors without a place. */
  readonly #rest = new Set<FiledSelector>()

  constructor(depth = 0) {
    this.#depth = depth
  }

  get size(): number {
    return this.#placeOf.size
  }

  /** @param taken the places that lead here */
  add(filed: FiledSelector, taken: readonly Place[] = []): void {
    const place = this.#emptiest(filed, taken)
    this.#placeOf.set(filed, place)
    if (place === undefined) return void this.#rest.add(filed)
    let branches = this.#labels.get(place.label)
    if (branches === undefined) {
      branches = { any: undefined, values: new Map() }
      this.#labels.set(place.label, branches)
    }
    const path = [...taken, place]
    if (place.values === 'any') branches.any = this.#grow(branches.any, filed, path)
    else {
      const { values } = branches
      for (const value of place.values) values.set(value, this.#grow(values.get(value), filed, path))
    }
  }

  delete(filed: FiledSelector): void {
    const place = this.#placeOf.get(filed)
    this.#placeOf.delete(filed)
    if (place === undefined) return void this.#rest.delete(filed)
    const branches = this.#labels.get(place.label)
    if (branches === undefined) return
    if (place.values === 'any') branches.any = shrink(branches.any, filed)
    else {
      for (const value of place.values) {
        const branch = shrink(branches.values.get(value), filed)
        if (branch === undefined) branches.values.delete(value)
        else branches.values.set(value, branch)
      }
    }
    if (branches.any === undefined && branches.values.size === 0) this.#labels.delete(place.label)
  }

  /** Adds the keys of all matching selectors, each once, in no particular order. */
  collect(labels: Labels, found: string[]): void {
    for (const filed of this.#rest) if (filed.selector.matches(labels)) found.push(filed.key)
    // A split place has one or two labels; a pod has more.
    if (this.#labels.size <= 2) {
      for (const [label, branches] of this.#labels) collectLabel(branches, labels[label], labels, found)
      return
    }
    for (const label in labels) {
      const branches = this.#labels.get(label)
      if (branches !== undefined) collectLabel(branches, labels[label], labels, found)
    }
  }

  #emptiest({ places }: FiledSelector, taken: readonly Place[]): Place | undefined {
    if (this.#depth === MAX_DEPTH) return undefined
    let best: Place | undefined
    let fewest = Number.POSITIVE_INFINITY
    for (const place of places) {
      if (taken.includes(place) || (this.#depth > 0 && place.values !== 'any' && place.values.size > NARROW)) continue
      const size = this.#crowdAt(place)
      if (size >= fewest) continue
      best = place
      fewest = size
      if (size === 0) break
    }
    return best
  }

  /** Number of selectors filed there; with several values, under the most crowded one. */
  #crowdAt({ label, values }: Place): number {
    const branches = this.#labels.get(label)
    if (branches === undefined) return 0
    if (values === 'any') return sizeOf(branches.any)
    let most = 0
    for (const value of values) most = Math.max(most, sizeOf(branches.values.get(value)))
    return most
  }

  #grow(branch: Branch | undefined, filed: FiledSelector, path: readonly Place[]): Branch {
    if (branch === undefined) return [filed]
    if (branch instanceof SelectorTree) {
      branch.add(filed, path)
      return branch
    }
    branch.push(filed)
    if (branch.length <= CROWD) return branch
    const divided = new SelectorTree(this.#depth + 1)
    // Each has its own place under the same label.
    for (const other of branch) divided.add(other, other === filed ? path : this.#pathOf(other, path))
    return divided
  }

  #pathOf(filed: FiledSelector, path: readonly Place[]): readonly Place[] {
    const labels = new Set(path.map(({ label }) => label))
    return filed.places.filter(({ label }) => labels.has(label))
  }
}

function collectLabel(branches: LabelBranches, value: unknown, labels: Labels, found: string[]): void {
  if (typeof value !== 'string') return
  if (branches.any !== undefined) collectBranch(branches.any, labels, found)
  const branch = branches.values.get(value)
  if (branch !== undefined) collectBranch(branch, labels, found)
}

function collectBranch(branch: Branch, labels: Labels, found: string[]): void {
  if (branch instanceof SelectorTree) {
    branch.collect(labels, found)
    return
  }
  for (let i = 0; i < branch.length; i++) {
    const filed = branch[i]
    if (filed?.selector.matches(labels) === true) found.push(filed.key)
  }
}

function shrink(branch: Branch | undefined, filed: FiledSelector): Branch | undefined {
  if (branch instanceof SelectorTree) {
    branch.delete(filed)
    return branch.size === 0 ? undefined : branch
  }
  const left = branch?.filter((other) => other !== filed)
  return left === undefined || left.length === 0 ? undefined : left
}

function sizeOf(branch: Branch | undefined): number {
  if (branch === undefined) return 0
  return branch instanceof SelectorTree ? branch.size : branch.length
}

/** Places that every matching pod leads to: one per label, few values before many, Exists last. */
function placesOf({ requirements }: CompiledSelector): readonly Place[] {
  const places = new Map<string, Place>()
  for (const { key, operator, values } of requirements) {
    const known = places.get(key)?.values ?? 'any'
    // Two requirements on one label leave only the values that both allow.
    if (operator === 'In') places.set(key, { label: key, values: known === 'any' ? values : inBoth(known, values) })
    else if (operator === 'Exists' && !places.has(key)) places.set(key, { label: key, values: 'any' })
  }
  return [...places.values()].sort((a, b) => widthOf(a) - widthOf(b))
}

function inBoth(some: ReadonlySet<string>, others: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...some].filter((value) => others.has(value)))
}

function widthOf({ values }: Place): number {
  return values === 'any' ? Number.MAX_SAFE_INTEGER : values.size
}
