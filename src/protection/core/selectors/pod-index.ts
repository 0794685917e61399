// Index of a cell's pods by label, to find the few among many that a selector matches: starts with the requirement that the fewest pods
// meet, and checks the rest on those.

import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { type CompiledSelector, compileSelector } from '../../../kube/core/selectors/compile-selector.ts'
import type { LabelRequirement, Labels } from '../../../kube/core/selectors/label-requirement.ts'

interface IndexedPod<T> {
  readonly uid: string
  readonly namespace: string
  readonly labels: Labels
  readonly value: T
}

interface LabelEntries<T> {
  /** Pods that have the label. */
  count: number
  readonly values: Map<string, Set<IndexedPod<T>>>
}

interface NamespaceEntries<T> {
  readonly all: Set<IndexedPod<T>>
  readonly labels: Map<string, LabelEntries<T>>
}

export class PodIndex<T> {
  readonly #entries = new Map<string, IndexedPod<T>>()
  readonly #namespaces = new Map<string, NamespaceEntries<T>>()
  /** Cache: the same selectors are used again and again. */
  readonly #compiled = new WeakMap<LabelSelector, CompiledSelector>()

  get size(): number {
    return this.#entries.size
  }

  uids(): Iterable<string> {
    return this.#entries.keys()
  }

  get(uid: string): T | undefined {
    return this.#entries.get(uid)?.value
  }

  /** Adds a pod or replaces the one with this uid. `labels` is kept and must not change. */
  put(uid: string, namespace: string, labels: Labels, value: T): void {
    this.remove(uid)
    const entry: IndexedPod<T> = { uid, namespace, labels, value }
    this.#entries.set(uid, entry)
    let entries = this.#namespaces.get(namespace)
    if (entries === undefined) {
      entries = { all: new Set(), labels: new Map() }
      this.#namespaces.set(namespace, entries)
    }
    entries.all.add(entry)
    for (const label in labels) file(entries, label, labels[label] ?? '', entry)
  }

  remove(uid: string): void {
    const entry = this.#entries.get(uid)
    if (entry === undefined) return
    this.#entries.delete(uid)
    const entries = this.#namespaces.get(entry.namespace)
    if (entries === undefined) return
    entries.all.delete(entry)
    if (entries.all.size === 0) return void this.#namespaces.delete(entry.namespace)
    for (const label in entry.labels) unfile(entries, label, entry.labels[label] ?? '', entry)
  }

  /**
   * The values of all matching pods of the namespace, as of now, in no particular order.
   * @throws {SyntaxError} as compileSelector
   */
  select(namespace: string, selector: LabelSelector): Iterable<T> {
    let compiled = this.#compiled.get(selector)
    if (compiled === undefined) {
      compiled = compileSelector(selector)
      this.#compiled.set(selector, compiled)
    }
    const entries = this.#namespaces.get(namespace)
    const found: T[] = []
    if (entries === undefined) return found
    for (const candidates of fewest(entries, compiled.requirements)) {
      for (const { labels, value } of candidates) if (compiled.matches(labels)) found.push(value)
    }
    return found
  }
}

function file<T>({ labels }: NamespaceEntries<T>, label: string, value: string, entry: IndexedPod<T>): void {
  let entries = labels.get(label)
  if (entries === undefined) {
    entries = { count: 0, values: new Map() }
    labels.set(label, entries)
  }
  entries.count++
  const same = entries.values.get(value)
  if (same === undefined) entries.values.set(value, new Set([entry]))
  else same.add(entry)
}

function unfile<T>({ labels }: NamespaceEntries<T>, label: string, value: string, entry: IndexedPod<T>): void {
  const entries = labels.get(label)
  if (entries === undefined) return
  entries.count--
  if (entries.count === 0) return void labels.delete(label)
  const same = entries.values.get(value)
  same?.delete(entry)
  if (same?.size === 0) entries.values.delete(value)
}

/** Disjoint sets that contain all matching pods: those of the most selective requirement, or all pods. */
function fewest<T>(
  entries: NamespaceEntries<T>,
  requirements: readonly LabelRequirement[],
): Iterable<Iterable<IndexedPod<T>>> {
  let size = entries.all.size
  let best: LabelRequirement | undefined
  for (const requirement of requirements) {
    const count = countOf(entries, requirement)
    if (count >= size) continue
    size = count
    best = requirement
  }
  if (best === undefined) return [entries.all]
  const byValue = entries.labels.get(best.key)?.values
  if (byValue === undefined) return []
  if (best.operator === 'Exists') return byValue.values()
  return [...best.values].map((value) => byValue.get(value) ?? [])
}

/** How many pods meet it; NotIn and DoesNotExist have no index, so all pods. */
function countOf<T>({ labels, all }: NamespaceEntries<T>, { key, operator, values }: LabelRequirement): number {
  const entries = labels.get(key)
  if (operator === 'Exists') return entries?.count ?? 0
  if (operator !== 'In') return all.size
  let count = 0
  for (const value of values) count += entries?.values.get(value)?.size ?? 0
  return count
}
