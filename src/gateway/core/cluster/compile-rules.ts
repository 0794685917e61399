// Compiles the rules of dispatch policies, degrade exemptions and access lists: resolves `-x`, `*`, trailing stars and empty lists once per
// change, so that matching is only a lookup.

import { complete, fieldOf, type Schema } from '../../../kit/api/json/json-schema.ts'
import type { CompiledCidr } from '../../../kit/core/dial/cidr.ts'
import { parseCidr } from '../../../kit/core/dial/cidr.ts'
import { SERVICE_ACCOUNT_PREFIX } from '../../../kube/api/user.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import type {
  AccessControl,
  AccessRule,
  DispatchRule,
  ShareWeight,
} from '../../api/upstream-cluster/upstream-cluster.ts'
import type {
  CompiledAccess,
  CompiledAccessRule,
  CompiledList,
  CompiledRule,
  CompiledWeight,
} from './compiled-cluster.ts'

/** The list that matches everything. */
export const ALL: CompiledList = {
  kind: 'all',
  exact: new Set(),
  prefixes: [],
  subresources: new Set(),
  except: new Set(),
}
const NONE: CompiledList = { ...ALL, kind: 'none' }
const ACCESS_CONTROL = fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'accessControl')

type Entries = readonly string[] | undefined

export function compileRule(rule: DispatchRule): CompiledRule {
  return {
    verbs: compileExact(rule.verbs, NONE),
    apiGroups: compileExact(rule.apiGroups, NONE),
    resources: compileResources(rule.resources),
    resourceNames: compileExact(rule.resourceNames, ALL),
    users: compileUsers(rule),
    userGroups: compileExact(rule.userGroups, ALL),
    nonResourceURLs: compileGlobs(rule.nonResourceURLs, NONE),
    namespaces: compileGlobs(rule.namespaces, ALL),
    userAgents: compileGlobs(rule.userAgents, ALL),
  }
}

/**
 * The effective entries of a list: `*` alone if present, else the positive ones, else the inverted ones, which together mean "none of
 * these".
 */
export function effectiveEntries(entries: readonly string[]): readonly string[] {
  if (entries.includes('*')) return ['*']
  const positive = entries.filter((entry) => !entry.startsWith('-'))
  return positive.length > 0 ? positive : entries
}

export function compileAccess(access: AccessControl, schema: Schema<AccessControl> = ACCESS_CONTROL): CompiledAccess {
  return {
    allow: (access.allow ?? []).map(compileAccessRule),
    deny: (access.deny ?? []).map(compileAccessRule),
    shadow: complete(schema, access).shadow,
  }
}

function compileAccessRule(rule: AccessRule): CompiledAccessRule {
  return {
    name: rule.name ?? '',
    users: compileGlobs(rule.users, ALL),
    userGroups: compileExact(rule.userGroups, ALL),
    userAgents: compileGlobs(rule.userAgents, ALL),
    sources: compileSources(rule.sourceIPs ?? []),
  }
}

export function compileWeight({ weight, users, userGroups }: ShareWeight): CompiledWeight {
  return { weight, users: compileGlobs(users, ALL), userGroups: compileExact(userGroups, ALL) }
}

/** An invalid address matches no client; it never makes the rule match all. */
function compileSources(entries: readonly string[]): readonly CompiledCidr[] {
  const sources: CompiledCidr[] = []
  for (const entry of entries) sources.push(parseCidr(entry) ?? { bytes: new Uint8Array(0), bits: 0 })
  return sources
}

/** `any-of` or `none-of`, with the entries without their dash; `all` for a star; undefined for an empty list. */
function polarity(entries: Entries): { kind: 'any-of' | 'none-of'; values: readonly string[] } | 'all' | undefined {
  if (entries === undefined || entries.length === 0) return undefined
  const effective = effectiveEntries(entries)
  if (effective.includes('*')) return 'all'
  const inverted = effective.every((entry) => entry.startsWith('-'))
  return inverted
    ? { kind: 'none-of', values: effective.map((entry) => entry.slice(1)) }
    : { kind: 'any-of', values: effective }
}

function compileExact(entries: Entries, empty: CompiledList): CompiledList {
  const list = polarity(entries)
  if (list === undefined) return empty
  if (list === 'all') return ALL
  // Validation rejects `-*`, which would match nothing.
  if (list.kind === 'none-of' && list.values.includes('*')) return NONE
  return { ...ALL, kind: list.kind, exact: new Set(list.values) }
}

/** Entries that may end with a star. @param empty meaning of a list without entries */
export function compileGlobs(entries: Entries, empty: CompiledList): CompiledList {
  const list = polarity(entries)
  if (list === undefined) return empty
  if (list === 'all') return ALL
  const exact = new Set<string>()
  const prefixes: string[] = []
  for (const value of list.values) {
    if (value.endsWith('*')) prefixes.push(withoutStars(value))
    else exact.add(value)
  }
  // Only stars: matches everything.
  if (prefixes.includes('')) return list.kind === 'any-of' ? ALL : NONE
  return { ...ALL, kind: list.kind, exact, prefixes }
}

/** Like KubeGateway, which trims all trailing stars. */
function withoutStars(glob: string): string {
  let end = glob.length
  while (glob.charCodeAt(end - 1) === 0x2a) end--
  return glob.slice(0, end)
}

function compileResources(entries: Entries): CompiledList {
  const list = compileExact(entries, NONE)
  if (list.kind === 'all' || list.kind === 'none') return list
  const exact = new Set<string>()
  const subresources = new Set<string>()
  for (const value of list.exact) {
    if (value.startsWith('*/') && value.length > 2) subresources.add(value.slice(2))
    else exact.add(value)
  }
  return { ...list, exact, subresources }
}

/** `users` and `serviceAccounts` are ORed. Both empty = all; an entry of `serviceAccounts` needs both parts. */
function compileUsers(rule: DispatchRule): CompiledList {
  const accounts = rule.serviceAccounts ?? []
  const users = compileGlobs(rule.users, accounts.length === 0 ? ALL : NONE)
  const names: string[] = []
  for (const { namespace = '', name = '' } of accounts) {
    if (namespace !== '' && name !== '') names.push(`${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`)
  }
  if (names.length === 0 || users.kind === 'all') return users
  if (users.kind === 'none-of') return { ...users, except: new Set(names) }
  return { ...users, kind: 'any-of', exact: new Set([...users.exact, ...names]) }
}
