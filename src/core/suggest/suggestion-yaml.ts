// Suggested limits as YAML for `kubectl patch --patch-file`, with comments that say where each number comes from. Names come from clients:
// they are quoted as JSON strings, which YAML reads the same, and comments have no control character.

import type { DispatchRule } from '../../api/upstream-cluster/upstream-cluster.ts'
import type { ClusterDemand } from './measure.ts'
import type { SuggestedLimit, SuggestedLimits, SuggestedPolicy } from './suggest-limits.ts'

const CONTROL = /[\p{Cc}\u2028\u2029\ufeff]/gu

export function suggestionYaml(
  { cluster, limits, policies }: SuggestedLimits,
  { requests, fromMs, toMs }: ClusterDemand,
): string {
  const times = `${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}`
  const lines = [
    comment(`Limits for UpstreamCluster ${cluster}, from ${requests} requests, ${times}.`),
    comment('All are in shadow mode: they count, warn and are logged, but refuse nothing. To apply:'),
    comment(`  kubectl patch upstreamcluster ${cluster} --type merge --patch-file FILE`),
    comment(
      'It replaces the dispatchPolicies and flowControlSchemas that are there: keep those that deny, or choose endpoints, before these.',
    ),
    comment('Watch portcullis_shadow_refusals_total; when it stays at 0, remove the lines `shadow: true`.'),
    'apiVersion: proxy.kubegateway.io/v1alpha1',
    'kind: UpstreamCluster',
    'metadata:',
    `  name: ${quote(cluster)}`,
    'spec:',
    '  flowControl:',
    '    flowControlSchemas:',
    ...limits.flatMap(limitLines),
    '  dispatchPolicies:',
    ...policies.flatMap(policyLines),
  ]
  return `${lines.join('\n')}\n`
}

function limitLines({ name, kind, qps, burst, max, maxWatches, perUser, why }: SuggestedLimit): string[] {
  const lines = [...why.map((text) => `      ${comment(text)}`), `      - name: ${quote(name)}`]
  if (kind === 'exempt') return [...lines, '        exempt: {}']
  if (kind === 'tokenBucket') lines.push('        tokenBucket:', `          qps: ${qps}`, `          burst: ${burst}`)
  else lines.push('        maxRequestsInflight:', `          max: ${max}`)
  if (maxWatches > 0) lines.push(`        maxWatches: ${maxWatches}`)
  if (perUser) lines.push('        perUser: true')
  return [...lines, '        shadow: true']
}

function policyLines({ rule, limit, about }: SuggestedPolicy): string[] {
  const [first = '', ...rest] = ruleLines(rule)
  return [
    `    ${comment(about)}`,
    '    - rules:',
    `        - ${first}`,
    ...rest.map((line) => `          ${line}`),
    `      flowControlSchemaName: ${quote(limit)}`,
  ]
}

const RULE_FIELDS = ['verbs', 'apiGroups', 'resources', 'nonResourceURLs', 'users', 'userGroups'] as const

function ruleLines(rule: DispatchRule): string[] {
  return RULE_FIELDS.flatMap((field) => {
    const values = rule[field]
    return values === undefined ? [] : [`${field}: [${values.map(quote).join(', ')}]`]
  })
}

function comment(text: string): string {
  return `# ${text.replace(CONTROL, ' ')}`
}

/** A JSON string is a YAML one; what JSON leaves as it is but YAML does not print is escaped. */
function quote(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => {
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
