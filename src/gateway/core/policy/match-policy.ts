// Which dispatch policy decides about a request: policies in order, the first whose rule matches; rules are ORed, fields ANDed. A resource
// request is matched by groups, resources, names and namespaces, any other by nonResourceURLs alone.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledList, CompiledPolicy, CompiledRule } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { combinedResource } from './match-rule.ts'
import { PrefixTree } from './prefix-tree.ts'

/** Built on first use: a compiled cluster is plain data, so that it can be posted to a thread. */
const indexes = new WeakMap<readonly CompiledPolicy[], PolicyIndex>()

/** undefined = no policy matches: the request is refused with 403. */
export function matchPolicy(
  policies: readonly CompiledPolicy[],
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): PolicyMatch | undefined {
  let index = indexes.get(policies)
  if (index === undefined) {
    index = new PolicyIndex(policies)
    indexes.set(policies, index)
  }
  return index.find(info, user, userAgent)
}

/** Indexes into spec.dispatchPolicies and the policy's rules. */
export interface PolicyMatch {
  readonly policy: number
  readonly rule: number
}

interface PlacedRule {
  readonly rule: CompiledRule
  readonly match: PolicyMatch
}

type Field = keyof CompiledRule

/** Fields that decide about resource and path requests. */
const RESOURCE_FIELDS: readonly Field[] = [
  'users',
  'userGroups',
  'userAgents',
  'verbs',
  'resources',
  'apiGroups',
  'resourceNames',
  'namespaces',
]
const PATH_FIELDS: readonly Field[] = ['users', 'userGroups', 'userAgents', 'verbs', 'nonResourceURLs']

/**
 * Index of all dispatch policies' rules: a bit for each rule, 32 to a word. Each field says which rules match the request's value of it, the
 * fields are ANDed, and the first bit left is the first matching rule in written order. A field starts from the rules that match a value that no
 * rule names, and changes the words in which rules name this value: a lookup reads no rule, and memory is linear in what is written.
 */
export class PolicyIndex {
  readonly #forResources: RuleIndex
  readonly #forPaths: RuleIndex

  constructor(policies: readonly CompiledPolicy[]) {
    const rules = policies.flatMap((policy) =>
      policy.rules.map((rule, at) => ({ rule, match: { policy: policy.index, rule: at } })),
    )
    this.#forResources = new RuleIndex(rules, RESOURCE_FIELDS)
    this.#forPaths = new RuleIndex(rules, PATH_FIELDS)
  }

  /** The first matching rule in written order. */
  find(info: RequestInfo, user: UserInfo, userAgent: string): PolicyMatch | undefined {
    return (info.isResourceRequest ? this.#forResources : this.#forPaths).find(info, user, userAgent)
  }
}

/** The rules for one kind of request. A field is undefined if every rule matches any value of it. */
class RuleIndex {
  readonly #matches: readonly PolicyMatch[]
  readonly #users: FieldIndex | undefined
  readonly #groups: FieldIndex | undefined
  readonly #agents: FieldIndex | undefined
  readonly #verbs: FieldIndex | undefined
  readonly #resources: FieldIndex | undefined
  readonly #apiGroups: FieldIndex | undefined
  readonly #names: FieldIndex | undefined
  readonly #namespaces: FieldIndex | undefined
  readonly #paths: FieldIndex | undefined
  /** For the request being looked up: the rules that match by the fields so far. */
  readonly #left: Int32Array

  constructor(all: readonly PlacedRule[], fields: readonly Field[]) {
    const placed = all.filter(({ rule }) => fields.every((field) => rule[field].kind !== 'none'))
    const indexOf = (field: Field): FieldIndex | undefined =>
      fields.includes(field) ? fieldIndex(placed.map(({ rule }) => rule[field])) : undefined
    this.#matches = placed.map(({ match }) => match)
    this.#users = indexOf('users')
    this.#groups = indexOf('userGroups')
    this.#agents = indexOf('userAgents')
    this.#verbs = indexOf('verbs')
    this.#resources = indexOf('resources')
    this.#apiGroups = indexOf('apiGroups')
    this.#names = indexOf('resourceNames')
    this.#namespaces = indexOf('namespaces')
    this.#paths = indexOf('nonResourceURLs')
    this.#left = new Int32Array(wordsFor(placed.length))
  }

  find(info: RequestInfo, user: UserInfo, userAgent: string): PolicyMatch | undefined {
    const left = this.#left
    for (let i = 0; i < left.length; i++) left[i] = -1
    if (this.#users?.leaves(left, user.name) === false) return undefined
    if (this.#namespaces?.leaves(left, info.namespace) === false) return undefined
    if (this.#paths?.leaves(left, info.path) === false) return undefined
    if (this.#resources?.leavesResource(left, combinedResource(info), info.subresource) === false) return undefined
    if (this.#names?.leaves(left, info.name) === false) return undefined
    if (this.#groups?.leavesAny(left, user.groups) === false) return undefined
    if (this.#apiGroups?.leaves(left, info.apiGroup) === false) return undefined
    if (this.#verbs?.leaves(left, info.verb) === false) return undefined
    if (this.#agents?.leaves(left, userAgent) === false) return undefined
    return this.#matches[firstBit(left)]
  }
}

function wordsFor(rules: number): number {
  return (rules + 31) >>> 5
}

/** The last bits of the last word belong to no rule. */
function firstBit(words: Int32Array): number {
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? 0
    if (word !== 0) return (i << 5) + 31 - Math.clz32(word & -word)
  }
  return -1
}

/** The rules of one field that name a value, a prefix or a subresource. Parallel arrays: only the words that have any. */
class Named {
  readonly words: Int32Array
  /** Rules that match because of it: it is on their list, or excepted from an inverted one. */
  readonly matching: Int32Array
  /** Rules that don't, because it is on their inverted list. */
  readonly excluding: Int32Array
  /** Every word, for a request whose value nothing else names; kept if many words change, so that memory stays linear. */
  readonly row: Int32Array | undefined
  /** The lookup that has found it last: one group that a request names many times costs as much as once. */
  foundBy = 0

  constructor({ words, matching, excluding }: NamedWords, others: Int32Array) {
    this.words = Int32Array.from(words)
    this.matching = Int32Array.from(matching)
    this.excluding = Int32Array.from(excluding)
    if (words.length * 4 < others.length) return
    this.row = others.slice()
    this.exclude(this.row)
    this.match(this.row)
  }

  exclude(row: Int32Array): void {
    const { words, excluding } = this
    for (let i = 0; i < words.length; i++) {
      const word = words[i] ?? 0
      row[word] = (row[word] ?? 0) & ~(excluding[i] ?? 0)
    }
  }

  match(row: Int32Array): void {
    const { words, matching } = this
    for (let i = 0; i < words.length; i++) {
      const word = words[i] ?? 0
      row[word] = (row[word] ?? 0) | (matching[i] ?? 0)
    }
  }
}

/** One field of all rules. */
class FieldIndex {
  /** Rules that match a value that no rule names. */
  readonly #others: Int32Array
  readonly #exact: ReadonlyMap<string, Named>
  readonly #prefixes: PrefixTree<Named> | undefined
  readonly #subresources: ReadonlyMap<string, Named>
  /** For the request being looked up: what names its value, and how many there are. */
  readonly #found: Named[] = []
  #count = 0
  #lookup = 0
  readonly #row: Int32Array

  constructor(
    others: Int32Array,
    exact: ReadonlyMap<string, Named>,
    prefixes: PrefixTree<Named> | undefined,
    subresources: ReadonlyMap<string, Named>,
  ) {
    this.#others = others
    this.#exact = exact
    this.#prefixes = prefixes
    this.#subresources = subresources
    this.#row = new Int32Array(others.length)
  }

  /** Takes the rules that don't match out of `left`. @returns whether any is left */
  leaves(left: Int32Array, value: string): boolean {
    this.#look(value)
    return this.#narrow(left)
  }

  /** At least one value is on the list; of an inverted list none is. Groups, which have no globs. */
  leavesAny(left: Int32Array, values: readonly string[]): boolean {
    this.#lookup++
    for (let i = 0; i < values.length; i++) {
      const named = this.#exact.get(values[i] ?? '')
      if (named === undefined || named.foundBy === this.#lookup) continue
      named.foundBy = this.#lookup
      this.#found[this.#count++] = named
    }
    return this.#narrow(left)
  }

  leavesResource(left: Int32Array, combined: string, subresource: string): boolean {
    this.#look(combined)
    const named = subresource === '' ? undefined : this.#subresources.get(subresource)
    if (named !== undefined) this.#found[this.#count++] = named
    return this.#narrow(left)
  }

  #look(value: string): void {
    const named = this.#exact.get(value)
    if (named !== undefined) this.#found[this.#count++] = named
    if (this.#prefixes !== undefined) this.#count = this.#prefixes.collect(value, this.#found, this.#count)
  }

  #narrow(left: Int32Array): boolean {
    const rules = this.#count === 0 ? this.#others : this.#changed()
    let any = 0
    for (let i = 0; i < left.length; i++) any |= left[i] = (left[i] ?? 0) & (rules[i] ?? 0)
    return any !== 0
  }

  #changed(): Int32Array {
    const count = this.#count
    const found = this.#found
    this.#count = 0
    const only = count === 1 ? found[0]?.row : undefined
    if (only !== undefined) return only
    const row = this.#row
    for (let i = 0; i < row.length; i++) row[i] = this.#others[i] ?? 0
    for (let i = 0; i < count; i++) found[i]?.exclude(row)
    // Last: a service account next to inverted users matches although they exclude it.
    for (let i = 0; i < count; i++) found[i]?.match(row)
    return row
  }
}

/** Undefined: every rule matches any value. */
function fieldIndex(lists: readonly CompiledList[]): FieldIndex | undefined {
  if (lists.every(({ kind }) => kind === 'all')) return undefined
  const others = new Int32Array(wordsFor(lists.length))
  const exact = new NamedValues()
  const prefixes = new NamedValues()
  const subresources = new NamedValues()
  for (const [rule, list] of lists.entries()) {
    const matching = list.kind === 'any-of'
    if (!matching) others[rule >>> 5] = (others[rule >>> 5] ?? 0) | (1 << (rule & 31))
    if (list.kind === 'all') continue
    for (const value of list.exact) exact.add(value, rule, matching)
    for (const prefix of list.prefixes) prefixes.add(prefix, rule, matching)
    for (const subresource of list.subresources) subresources.add(subresource, rule, matching)
    if (!matching) for (const value of list.except ?? []) exact.add(value, rule, true)
  }
  let tree: PrefixTree<Named> | undefined
  for (const [prefix, named] of prefixes.all(others)) {
    tree ??= new PrefixTree()
    tree.set(prefix, named)
  }
  return new FieldIndex(others, exact.all(others), tree, subresources.all(others))
}

interface NamedWords {
  readonly words: number[]
  readonly matching: number[]
  readonly excluding: number[]
}

/** Collects what names each value. */
class NamedValues {
  readonly #all = new Map<string, NamedWords>()

  /** Rules come in order, so a value's last word is the rule's, or the rule's is a new one. */
  add(value: string, rule: number, matches: boolean): void {
    let named = this.#all.get(value)
    if (named === undefined) {
      named = { words: [], matching: [], excluding: [] }
      this.#all.set(value, named)
    }
    const { words, matching, excluding } = named
    if (words.at(-1) !== rule >>> 5) {
      words.push(rule >>> 5)
      matching.push(0)
      excluding.push(0)
    }
    const bits = matches ? matching : excluding
    bits[bits.length - 1] = (bits.at(-1) ?? 0) | (1 << (rule & 31))
  }

  all(others: Int32Array): ReadonlyMap<string, Named> {
    return new Map(Array.from(this.#all, ([value, named]) => [value, new Named(named, others)]))
  }
}
