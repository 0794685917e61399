// A dispatch policy in one line, as somebody would say it: `list, watch pods of ci-*`.

import type { CompiledList, CompiledPolicy, CompiledRule } from '../cluster/compiled-cluster.ts'

const MAX_NAMES = 4
const MAX_RULES = 3

export function describePolicy({ rules }: Pick<CompiledPolicy, 'rules'>): string {
  if (rules.length === 0) return 'nothing'
  const shown = rules.slice(0, MAX_RULES).map(describeRule)
  return rules.length > MAX_RULES ? `${shown.join('; or ')}; or ${rules.length - MAX_RULES} more` : shown.join('; or ')
}

function describeRule(rule: CompiledRule): string {
  const verbs = namesOf(rule.verbs) ?? 'all verbs'
  const resources = namesOf(rule.resources)
  const urls = namesOf(rule.nonResourceURLs)
  const what =
    rule.resources.kind === 'none' ? (urls ?? 'all URLs') : `${resources ?? 'everything'}${groupsOf(rule.apiGroups)}`
  const parts = [`${verbs} ${what}`]
  const add = (word: string, list: CompiledList): void => {
    const names = namesOf(list)
    if (names !== undefined && list.kind !== 'none') parts.push(`${word} ${names}`)
  }
  add('named', rule.resourceNames)
  add('in', rule.namespaces)
  add('by', rule.users)
  add('by groups', rule.userGroups)
  add('with', rule.userAgents)
  return parts.join(' ')
}

function groupsOf(groups: CompiledList): string {
  const names = namesOf(groups)
  return names === undefined || names === '""' || groups.kind === 'none' ? '' : ` (${names})`
}

/** undefined = all. */
function namesOf({ kind, exact, prefixes, subresources }: CompiledList): string | undefined {
  if (kind === 'all') return undefined
  if (kind === 'none') return 'none'
  const names = [
    ...[...exact].map((name) => (name === '' ? '""' : name)),
    ...prefixes.map((prefix) => `${prefix}*`),
    ...[...subresources].map((name) => `*/${name}`),
  ]
  const shown = names.slice(0, MAX_NAMES).join(', ')
  const all = names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown
  return kind === 'none-of' ? `all but ${all}` : all
}
