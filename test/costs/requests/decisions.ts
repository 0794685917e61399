// What a request is compared with, of which its client has written nothing: dispatch policies, and PodProtectors.

import type { DispatchRule } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { compileRule } from '../../../src/gateway/core/cluster/compile-rules.ts'
import { matchPolicy } from '../../../src/gateway/core/policy/match-policy.ts'
import { parseRequestInfo, type RequestInfo } from '../../../src/gateway/core/request/request-info.ts'
import { ProtectorIndex } from '../../../src/protection/core/selectors/protector-index.ts'
import { type Parser, parserOf } from '../parser.ts'
import { KIB, repeat } from '../shapes.ts'

/** As many as an UpstreamCluster may have, and more. */
const POLICIES = 1_000

function policies(rule: (n: number) => DispatchRule) {
  return Array.from({ length: POLICIES }, (_, index) => ({
    index,
    rules: [compileRule(rule(index))],
    strategy: 'RoundRobin' as const,
    endpoints: [0],
    schema: -1,
    logMode: '' as const,
    deny: false,
    shadow: false,
  }))
}

const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
const LONG = 'a'.repeat(60)
/** Rules that no user matches, so that all are looked at: prefixes of users and agents that are right but for their ends. */
const WILDCARDS = {
  users: policies((n) => ({ ...ALL, users: [`${LONG}${n}*`] })),
  agents: policies((n) => ({ ...ALL, userAgents: [`${LONG}${n}*`] })),
  inverted: policies((n) => ({ ...ALL, users: ['-b*', `-a*`, `-c${n}*`] })),
  paths: policies((n) => ({ verbs: ['*'], nonResourceURLs: [`/${LONG}${n}*`] })),
  namespaces: policies((n) => ({ ...ALL, namespaces: [`${LONG}${n}*`] })),
}

function infoOf(target: string): RequestInfo {
  const info = parseRequestInfo('GET', target)
  if ('failure' in info) throw new SyntaxError(info.failure)
  return info
}

const PODS = infoOf('/api/v1/namespaces/default/pods')

/** The place of each kind of value in its line. */
function matched(text: string): void {
  const user = { name: text, uid: '', groups: text.split(','), extra: {} }
  for (const [name, rules] of Object.entries(WILDCARDS)) {
    matchPolicy(rules, name === 'paths' ? { ...PODS, isResourceRequest: false, path: `/${text}` } : PODS, user, text)
    if (name === 'namespaces') matchPolicy(rules, { ...PODS, namespace: text }, user, text)
  }
}

/** The labels of a pod are the text; the selectors of the namespace are as many as it is long. */
function protectorsOf(text: string, selector: (n: number) => Parameters<ProtectorIndex['put']>[2]) {
  const index = new ProtectorIndex()
  for (let n = 0; n < text.length / 64; n++) index.put(`ns/p${n}`, 'ns', selector(n))
  return () => index.query('ns', { app: 'a', tier: 'b', text })
}

const OUT = Array.from({ length: 16 }, (_, n) => `v${n}`)
const SELECTORS = {
  'for one app': () => ({ matchLabels: { app: 'a' } }),
  'for different apps': (n: number) => ({ matchLabels: { app: `a${n}` } }),
  'for any app': () => ({ matchExpressions: [{ key: 'app', operator: 'Exists' as const }] }),
  'for all but some': (n: number) => ({
    matchExpressions: [{ key: 'app', operator: 'NotIn' as const, values: [...OUT, `w${n}`] }],
  }),
  'for all without a label': (n: number) => ({
    matchExpressions: [{ key: `k${n}`, operator: 'DoesNotExist' as const }],
  }),
  'with many values': (n: number) => ({
    matchExpressions: [{ key: 'app', operator: 'In' as const, values: ['a', ...OUT, `w${n}`] }],
  }),
}

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'policies of wildcards',
    limit: 256 * KIB,
    prepare: (text: string) => text,
    read: matched,
    tokens: [LONG, 'a', ',', '-', '*', '/', ':', 'system:'],
    shapes: {
      'a name that begins as theirs do': repeat('a'),
      'groups that differ': repeat('g{n},'),
      'groups that are the same': repeat('a,'),
      slashes: repeat('/'),
      stars: repeat('*'),
    },
  }),
  ...Object.entries(SELECTORS).map(([name, selector]) =>
    parserOf({
      name: `PodProtectors of a namespace, ${name}`,
      limit: 256 * KIB,
      fillsMaps: true,
      prepare: (text: string) => protectorsOf(text, selector),
      read: (query) => query(),
      shapes: { 'a pod that is deleted': repeat('a') },
    }),
  ),
]
