// Index of all dispatch policies' rules. Each rule is indexed once, by its most selective field (the one whose values fewest other rules
// name), or goes into the rest if none of its fields is a plain list of values (no globs, not inverted). A request checks only the lists
// under its own values, so the cost depends on the rules that could match, not on the total. Memory is linear in the rules.

import type { UserInfo } from '../../../kube/api/user.ts'
import type { CompiledList, CompiledPolicy, CompiledRule } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { combinedResource, matchesCombined } from './match-rule.ts'

/** Indexes into spec.dispatchPolicies and the policy's rules. */
export interface PolicyMatch {
  readonly policy: number
  readonly rule: number
}

/** A rule and its position: rules are numbered across all policies, in written order. */
interface PlacedRule {
  readonly rule: CompiledRule
  readonly place: number
  readonly match: PolicyMatch
}

type Field = Exclude<keyof CompiledRule, 'userAgents'>
type Lists = ReadonlyMap<string, readonly PlacedRule[]>

/** Fields by which resource and path requests are indexed; among equally selective ones the first wins. */
const RESOURCE_FIELDS: readonly Field[] = [
  'users',
  'resources',
  'resourceNames',
  'namespaces',
  'userGroups',
  'apiGroups',
  'verbs',
]
const PATH_FIELDS: readonly Field[] = ['users', 'nonResourceURLs', 'userGroups', 'verbs']

export class PolicyIndex {
  readonly #forResources: RuleIndex
  readonly #forPaths: RuleIndex

  constructor(policies: readonly CompiledPolicy[]) {
    const rules: PlacedRule[] = []
    for (const policy of policies) {
      for (const [at, rule] of policy.rules.entries()) {
        rules.push({ rule, place: rules.length, match: { policy: policy.index, rule: at } })
      }
    }
    this.#forResources = new RuleIndex(rules, RESOURCE_FIELDS)
    this.#forPaths = new RuleIndex(rules, PATH_FIELDS)
  }

  /** The first matching rule in written order. */
  find(info: RequestInfo, user: UserInfo, userAgent: string): PolicyMatch | undefined {
    const index = info.isResourceRequest ? this.#forResources : this.#forPaths
    return index.find(info, combinedResource(info), user, userAgent)?.match
  }
}

/** The rules for one kind of request. */
class RuleIndex {
  readonly #users: Lists | undefined
  readonly #resources: Lists | undefined
  readonly #subresources: Lists | undefined
  readonly #resourceNames: Lists | undefined
  readonly #namespaces: Lists | undefined
  readonly #paths: Lists | undefined
  readonly #groups: Lists | undefined
  readonly #apiGroups: Lists | undefined
  readonly #verbs: Lists | undefined
  readonly #rest: readonly PlacedRule[]

  constructor(all: readonly PlacedRule[], fields: readonly Field[]) {
    const rules = all.filter(({ rule }) => fields.every((field) => rule[field].kind !== 'none'))
    const counts = countValues(rules, fields)
    const byField = Map.groupBy(rules, ({ rule }) => rarestField(rule, fields, counts))
    const lists = (field: Field): Lists | undefined => listsOf(byField.get(field), (rule) => rule[field].exact)
    this.#users = lists('users')
    this.#resources = lists('resources')
    this.#subresources = listsOf(byField.get('resources'), (rule) => rule.resources.subresources)
    this.#resourceNames = lists('resourceNames')
    this.#namespaces = lists('namespaces')
    this.#paths = lists('nonResourceURLs')
    this.#groups = lists('userGroups')
    this.#apiGroups = lists('apiGroups')
    this.#verbs = lists('verbs')
    this.#rest = byField.get('none') ?? []
  }

  find(info: RequestInfo, combined: string, user: UserInfo, userAgent: string): PlacedRule | undefined {
    let best: PlacedRule | undefined
    if (this.#users !== undefined) best = firstMatch(this.#users.get(user.name), best, info, combined, user, userAgent)
    if (this.#resources !== undefined)
      best = firstMatch(this.#resources.get(combined), best, info, combined, user, userAgent)
    if (this.#subresources !== undefined && info.subresource !== '')
      best = firstMatch(this.#subresources.get(info.subresource), best, info, combined, user, userAgent)
    if (this.#resourceNames !== undefined)
      best = firstMatch(this.#resourceNames.get(info.name), best, info, combined, user, userAgent)
    if (this.#namespaces !== undefined)
      best = firstMatch(this.#namespaces.get(info.namespace), best, info, combined, user, userAgent)
    if (this.#paths !== undefined) best = firstMatch(this.#paths.get(info.path), best, info, combined, user, userAgent)
    if (this.#groups !== undefined) {
      for (let i = 0; i < user.groups.length; i++)
        best = firstMatch(this.#groups.get(user.groups[i] ?? ''), best, info, combined, user, userAgent)
    }
    if (this.#apiGroups !== undefined)
      best = firstMatch(this.#apiGroups.get(info.apiGroup), best, info, combined, user, userAgent)
    if (this.#verbs !== undefined) best = firstMatch(this.#verbs.get(info.verb), best, info, combined, user, userAgent)
    return firstMatch(this.#rest, best, info, combined, user, userAgent)
  }
}

/** The first of `rules` that matches, if it precedes `best`; otherwise `best`. */
function firstMatch(
  rules: readonly PlacedRule[] | undefined,
  best: PlacedRule | undefined,
  info: RequestInfo,
  combined: string,
  user: UserInfo,
  userAgent: string,
): PlacedRule | undefined {
  if (rules === undefined) return best
  for (let i = 0; i < rules.length; i++) {
    const candidate = rules[i]
    if (candidate === undefined || (best !== undefined && candidate.place >= best.place)) return best
    if (matchesCombined(candidate.rule, info, combined, user, userAgent)) return candidate
  }
  return best
}

/** Whether the list matches exactly its values. */
function isPlain(list: CompiledList): boolean {
  return list.kind === 'any-of' && list.prefixes.length === 0
}

function* valuesOf(list: CompiledList): Iterable<string> {
  yield* list.exact
  for (const subresource of list.subresources) yield `*/${subresource}`
}

type Counts = ReadonlyMap<Field, ReadonlyMap<string, number>>

/** Counts the rules that name each value of each field. */
function countValues(rules: readonly PlacedRule[], fields: readonly Field[]): Counts {
  const counts = new Map(fields.map((field) => [field, new Map<string, number>()]))
  for (const [field, count] of counts) {
    for (const { rule } of rules) {
      if (isPlain(rule[field])) for (const value of valuesOf(rule[field])) count.set(value, (count.get(value) ?? 0) + 1)
    }
  }
  return counts
}

/** The field to index the rule by: the one whose most frequent value is rarest. */
function rarestField(rule: CompiledRule, fields: readonly Field[], counts: Counts): Field | 'none' {
  let best: Field | 'none' = 'none'
  let fewest = Number.POSITIVE_INFINITY
  for (const field of fields) {
    if (!isPlain(rule[field])) continue
    let most = 0
    for (const value of valuesOf(rule[field])) most = Math.max(most, counts.get(field)?.get(value) ?? 0)
    if (most >= fewest) continue
    best = field
    fewest = most
  }
  return best
}

/** undefined if no rule uses the field: requests then skip the lookup. */
function listsOf(
  rules: readonly PlacedRule[] | undefined,
  values: (rule: CompiledRule) => ReadonlySet<string>,
): Lists | undefined {
  const lists = new Map<string, PlacedRule[]>()
  for (const placed of rules ?? []) {
    for (const value of values(placed.rule)) {
      const list = lists.get(value)
      if (list === undefined) lists.set(value, [placed])
      else list.push(placed)
    }
  }
  return lists.size === 0 ? undefined : lists
}
