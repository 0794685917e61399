// YAML text as Kubernetes reads it (sigs.k8s.io/yaml): the first and only document, as a value that JSON can hold.

import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, Scalar } from 'yaml'
import { goSyntax } from './go-syntax.ts'
import { MAX_DEPTH, MAX_DUPLICATE_TEXT, MAX_DUPLICATES } from './json-text.ts'
import { composeFirstDocument } from './yaml-document.ts'
import { plainScalar, taggedScalar } from './yaml-scalars.ts'

export interface YamlText {
  readonly value: unknown
  /** Paths of the keys that are given twice, each once. The last one holds. */
  readonly duplicates: readonly string[]
  /** The same as Go's YAML library says it: `line 3: key "a" already set in map`. */
  readonly duplicateMessages: readonly string[]
}

/** Nodes that aliases may add to a document: enough for people, not for a bomb. */
const MAX_ALIASED_NODES = 10_000
/** And characters: a few nodes may be long. */
const MAX_ALIASED_TEXT = 1024 * 1024

/**
 * In time linear to the text, and no further than to the first error.
 * @throws {SyntaxError} with a message that begins with `yaml: `
 */
export function parseYaml(text: string): YamlText {
  try {
    const lines = new LineCounter()
    const reader = new Reader(lines)
    const value = reader.read(composeFirstDocument(text, lines), '', 0)
    return { value, duplicates: [...reader.duplicates], duplicateMessages: reader.duplicateMessages }
  } catch (error) {
    // Nesting deeper than the stack of the library.
    if (error instanceof RangeError) throw new SyntaxError('yaml: exceeded max depth')
    throw error
  }
}

class Reader {
  readonly duplicates = new Set<string>()
  readonly duplicateMessages: string[] = []
  readonly #lines: LineCounter
  readonly #anchors = new Map<string, Node>()
  /** Nodes whose aliases are being read: one inside another of the same name never ends. */
  readonly #open = new Set<Node>()
  #aliases = 0
  /** Characters of the paths of duplicates so far. */
  #told = 0
  #aliasedNodes = 0
  #aliasedText = 0

  constructor(lines: LineCounter) {
    this.#lines = lines
  }

  read(node: unknown, path: string, depth: number): unknown {
    if (depth > MAX_DEPTH) throw new SyntaxError('yaml: exceeded max depth')
    if (this.#aliases > 0 && ++this.#aliasedNodes > MAX_ALIASED_NODES) {
      throw new SyntaxError('yaml: document contains excessive aliasing')
    }
    if (isAlias(node)) return this.#alias(node.source, path, depth)
    if (isScalar(node)) return this.#scalar(node)
    if (!isMap(node) && !isSeq(node)) return null
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    this.#open.add(node)
    const value = isSeq(node)
      ? node.items.map((item, index) => this.read(item, `${path}[${index}]`, depth + 1))
      : this.#map(node.items, path, depth)
    this.#open.delete(node)
    return value
  }

  #alias(name: string, path: string, depth: number): unknown {
    const target = this.#anchors.get(name)
    if (target === undefined) throw new SyntaxError(`yaml: unknown anchor '${name}' referenced`)
    if (this.#open.has(target)) throw new SyntaxError(`yaml: anchor '${name}' value contains itself`)
    this.#aliases++
    const value = this.read(target, path, depth)
    this.#aliases--
    return value
  }

  #scalar(node: Scalar): unknown {
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    const text = String(node.value ?? '')
    if (this.#aliases > 0) this.#aliasedText += text.length
    if (this.#aliasedText > MAX_ALIASED_TEXT) throw new SyntaxError('yaml: document contains excessive aliasing')
    const plain = node.type === undefined || node.type === Scalar.PLAIN
    const value = node.tag !== undefined ? taggedScalar(node.tag, text) : plain ? plainScalar(text) : text
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new SyntaxError(`json: unsupported value: ${Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'}`)
    }
    return value
  }

  #map(pairs: readonly Pair<unknown, unknown>[], path: string, depth: number): unknown {
    // No prototype while it is filled: `__proto__` is a key like any other.
    const values = new Map<string, unknown>()
    const merges: Pair<unknown, unknown>[] = []
    for (const pair of pairs) {
      if (isMergeKey(pair.key)) {
        merges.push(pair)
        continue
      }
      const name = this.#key(pair.key, path, depth)
      const key = String(name)
      const at = path === '' ? key : `${path}.${key}`
      if (values.has(key)) this.#duplicate(at, name, pair.key)
      values.set(key, this.read(pair.value, at, depth + 1))
    }
    for (const merge of merges) this.#merge(values, this.read(merge.value, path, depth + 1))
    return Object.fromEntries(values)
  }

  #key(node: unknown, path: string, depth: number): string | number | boolean {
    const key = this.read(node, path, depth + 1)
    if (typeof key === 'string' || typeof key === 'number' || typeof key === 'boolean') return key
    const what = key === null ? '<nil>' : Array.isArray(key) ? 'a list' : 'a map'
    throw new SyntaxError(`yaml: unsupported map key of type: ${what}, in ${path === '' ? 'the document' : path}`)
  }

  #duplicate(path: string, key: string | number | boolean, node: unknown): void {
    if (this.#aliases > 0 || this.duplicates.size >= MAX_DUPLICATES || this.#told > MAX_DUPLICATE_TEXT) return
    this.#told += path.length
    if (this.duplicates.has(path)) return
    this.duplicates.add(path)
    const offset = isScalar(node) ? (node.range?.[0] ?? 0) : 0
    this.duplicateMessages.push(`line ${this.#lines.linePos(offset).line}: key ${goSyntax(key)} already set in map`)
  }

  /** `<<: *defaults`: what the map itself does not say. */
  #merge(values: Map<string, unknown>, from: unknown): void {
    for (const source of Array.isArray(from) ? from : [from]) {
      if (typeof source !== 'object' || source === null || Array.isArray(source)) {
        throw new SyntaxError('yaml: map merge requires map or sequence of maps as the value')
      }
      for (const [key, value] of Object.entries(source)) if (!values.has(key)) values.set(key, value)
    }
  }
}

function isMergeKey(node: unknown): boolean {
  return isScalar(node) && node.value === '<<' && node.type === Scalar.PLAIN && node.tag === undefined
}
