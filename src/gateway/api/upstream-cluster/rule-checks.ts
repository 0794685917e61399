// Warnings and errors in rules of dispatch policies, degrade exemptions and access lists. KubeGateway accepts any text in a rule; here, rules that
// can never match cause a warning, and rules that match by accident are refused.

import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { childPath, type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { isCidr } from '../../../kit/api/validation/name-syntax.ts'
import { nearestName } from '../../../kit/api/validation/nearest-name.ts'
import type { AccessRule, DispatchRule, ShareWeight } from './upstream-cluster.ts'

type Entries = readonly (string | undefined)[]

/** Lists in which a star must be the whole entry; otherwise it is literal, which is never intended. */
const EXACT_LISTS = ['verbs', 'apiGroups', 'resourceNames', 'userGroups'] as const
const GLOB_LISTS = ['users', 'namespaces', 'userAgents', 'nonResourceURLs'] as const

export function checkRules(rules: readonly (Loose<DispatchRule> | undefined)[], path: string, out: FieldErrors): void {
  for (const [index, rule] of rules.entries()) if (rule !== undefined) checkRule(rule, `${path}[${index}]`, out)
}

function checkRule(rule: Loose<DispatchRule>, path: string, out: FieldErrors): void {
  for (const field of EXACT_LISTS) checkExactList(rule[field] ?? [], childPath(path, field), out)
  for (const field of GLOB_LISTS) checkList(rule[field] ?? [], childPath(path, field), out)
  checkList(rule.resources ?? [], childPath(path, 'resources'), out)
  for (const [index, entry = ''] of (rule.resources ?? []).entries()) {
    if (!/.\/\*$/.test(entry)) continue
    const fix = 'name the subresource, such as pods/log; */log is that of all resources'
    out.warning(`${path}.resources[${index}]`, `${shown(entry)} names no subresource that exists`, fix)
  }
  checkWords(rule, path, out)
  for (const [index, url = ''] of (rule.nonResourceURLs ?? []).entries()) {
    if (/^-?[/*]/.test(url)) continue
    out.warning(`${path}.nonResourceURLs[${index}]`, `${shown(url)} matches nothing: paths begin with /`, 'add the /')
  }
  for (const [index, account] of (rule.serviceAccounts ?? []).entries()) {
    if (account === undefined || ((account.namespace ?? '') !== '' && (account.name ?? '') !== '')) continue
    out.warning(`${path}.serviceAccounts[${index}]`, 'matches no service account', 'give both namespace and name')
  }
  checkEmptyLists(rule, path, out)
}

/** Kubernetes verbs (apiserver/pkg/endpoints/request/requestinfo.go), and HTTP methods, which are the verbs of other paths. */
const VERBS: ReadonlySet<string> = new Set([
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'proxy'],
  ...['head', 'options', 'post', 'put', 'connect', 'trace'],
])
const MOST_WORDS = 'get, list, watch, create, update, patch, delete and deletecollection'

/** Words that occur in no request: a rule with nothing else matches nothing, and its users get 403. */
function checkWords(rule: Loose<DispatchRule>, path: string, out: FieldErrors): void {
  const warn = (field: string, index: number, entry: string, fix: string): void =>
    out.warning(`${path}.${field}[${index}]`, `${shown(entry)} is in no request, so it matches nothing`, fix)
  for (const [index, entry] of wordsOf(rule.verbs)) {
    // A star that is only part of an entry has a warning of its own.
    if (VERBS.has(entry) || entry.includes('*')) continue
    const known = VERBS.has(entry.toLowerCase()) ? entry.toLowerCase() : nearestName(entry, VERBS)
    const fix = known === '' ? `verbs of resources are ${MOST_WORDS}; reading is get, list and watch` : `write ${known}`
    warn('verbs', index, entry, fix)
  }
  for (const [index, entry] of wordsOf(rule.apiGroups)) {
    const fix = apiGroupFix(entry)
    if (fix !== '') warn('apiGroups', index, entry, fix)
  }
  for (const [index, entry] of wordsOf(rule.resources)) {
    if (!/[A-Z]/.test(entry)) continue
    warn('resources', index, entry, `resources are plural and in small letters: write ${entry.toLowerCase()}`)
  }
}

/** '' = it may be a valid group. */
function apiGroupFix(entry: string): string {
  const [group = '', version = ''] = entry.toLowerCase().split('/')
  if (group === 'core' || (/^v\d/.test(group) && version === '')) return 'the group of pods and services is written ""'
  if (version !== '' || entry.includes('/')) return `leave the version out: write ${group === '' ? '""' : group}`
  return group === entry ? '' : `groups are in small letters: write ${group}`
}

/** Entries without stars, and without the mark of inverted entries. */
function wordsOf(entries: Entries = []): readonly (readonly [number, string])[] {
  return entries.flatMap((entry = '', index) => {
    const word = entry.replace(/^-/, '')
    return word === '' || word.startsWith('*') ? [] : [[index, word] as const]
  })
}

/** Absent verbs, or only one of resources and groups, make a rule that never matches. */
function checkEmptyLists(rule: Loose<DispatchRule>, path: string, out: FieldErrors): void {
  const isEmpty = (field: 'verbs' | 'apiGroups' | 'resources' | 'nonResourceURLs'): boolean =>
    (rule[field] ?? []).length === 0
  const warn = (field: string, what: string): void =>
    out.warning(childPath(path, field), `is empty, so the rule matches no ${what}`, `add ${field}; ["*"] is all`)
  if (isEmpty('verbs')) warn('verbs', 'request')
  // A rule only for non-resource requests is complete.
  if (isEmpty('apiGroups') && isEmpty('resources') && !isEmpty('nonResourceURLs')) return
  if (isEmpty('apiGroups')) warn('apiGroups', 'resource request')
  if (isEmpty('resources')) warn('resources', 'resource request')
}

export function checkAccessRules(
  rules: readonly (Loose<AccessRule> | undefined)[],
  path: string,
  out: FieldErrors,
): void {
  for (const [index, rule] of rules.entries()) {
    if (rule === undefined) continue
    const at = `${path}[${index}]`
    const { users = [], userGroups = [], userAgents = [], sourceIPs = [] } = rule
    checkList(users, `${at}.users`, out)
    checkExactList(userGroups, `${at}.userGroups`, out)
    checkList(userAgents, `${at}.userAgents`, out)
    for (const [i, source] of sourceIPs.entries()) {
      if (source === undefined || isCidr(source)) continue
      const fix = 'write an address or a block, such as 10.0.0.0/8 or fd00::/8'
      out.invalid(`${at}.sourceIPs[${i}]`, `${shown(source)} is neither an IP address nor a block of them`, fix)
    }
    if (users.length + userGroups.length + userAgents.length + sourceIPs.length > 0) continue
    out.warning(at, 'names nothing, so it matches every client', 'add users, userGroups, userAgents or sourceIPs')
  }
}

export function checkShareWeights(
  weights: readonly (Loose<ShareWeight> | undefined)[],
  path: string,
  out: FieldErrors,
): void {
  for (const [index, rule] of weights.entries()) {
    if (rule === undefined) continue
    const at = `${path}[${index}]`
    const { users = [], userGroups = [] } = rule
    checkList(users, `${at}.users`, out)
    checkExactList(userGroups, `${at}.userGroups`, out)
    if (users.length + userGroups.length > 0) continue
    out.warning(at, 'names no user or group, so all users have this weight', 'add users or userGroups')
  }
}

function checkExactList(entries: Entries, path: string, out: FieldErrors): void {
  checkList(entries, path, out)
  for (const [index, entry = ''] of entries.entries()) {
    if (!entry.includes('*') || isAllStars(entry.replace(/^-/, ''))) continue
    const fix = 'write the whole word, or * alone for all'
    out.warning(`${path}[${index}]`, `${shown(entry)} is not a pattern here: the star stands for itself`, fix)
  }
}

function checkList(entries: Entries, path: string, out: FieldErrors): void {
  for (const [index, entry = ''] of entries.entries()) {
    if (!entry.startsWith('-') || !isAllStars(entry.slice(1))) continue
    out.invalid(
      `${path}[${index}]`,
      `${shown(entry)} means nothing at all`,
      'leave the rule out, or name what is excluded',
    )
  }
  const known = entries.filter((entry) => entry !== undefined)
  if (known.includes('*') || !isMixed(known, path)) return
  const fix = 'use positive entries or inverted ones, not both'
  out.warning(path, 'mixes positive and inverted entries: the inverted ones are ignored', fix)
}

/**
 * A user has one name but several groups: `[a, -b]` in userGroups is a common, harmless way to stress that b is excluded. There, only a group that is
 * both included and excluded counts as mixed.
 */
function isMixed(entries: readonly string[], path: string): boolean {
  const inverted = entries.filter((entry) => entry.startsWith('-'))
  if (inverted.length === 0 || inverted.length === entries.length) return false
  const all = new Set(entries)
  return !path.endsWith('.userGroups') || inverted.some((entry) => all.has(entry.slice(1)))
}

function isAllStars(text: string): boolean {
  return /^\*+$/.test(text)
}
