// Finds the protectors that select a pod, among many: a tree of selectors (selector-tree.ts) for each namespace.

import type { LabelSelector } from '../../../api/pod-protector/pod-protector.ts'
import { compileSelector } from '../../selectors/compile-selector.ts'
import type { Labels } from '../../selectors/label-requirement.ts'
import { type FiledSelector, placesOf, SelectorTree } from './selector-tree.ts'

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
   * @throws {SyntaxError} as compileSelector; then the previous one stays
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

  /** The namespaces with a selector; a snapshot. */
  namespaces(): ReadonlySet<string> {
    return new Set(this.#trees.keys())
  }
}

function byText(a: string, b: string): number {
  return a < b ? -1 : 1
}
