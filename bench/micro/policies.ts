// What it costs to find the policy of a request among ten and among a thousand: policies as KubeGateway's users write them, with trailing
// globs in users, namespaces, URLs and user agents, inverted entries, and several fields each. The request is one that the last policy
// matches. CPU time of this process, so that other programs disturb little; `node bench/micro/policies.ts`

import type { DispatchRule } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { compileRule } from '../../src/gateway/core/cluster/compile-rules.ts'
import type { CompiledPolicy } from '../../src/gateway/core/cluster/compiled-cluster.ts'
import { matchPolicy } from '../../src/gateway/core/policy/match-policy.ts'
import { parseRequestInfo, type RequestInfo } from '../../src/gateway/core/request/request-info.ts'
import type { UserInfo } from '../../src/kube/api/user.ts'

const ROUNDS = 30
const CALLS = 20_000
/** Requests come with texts of their own, whose hash nothing has asked for yet. */
const USERS = 64
const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

const KINDS: Readonly<Record<string, (i: number) => DispatchRule>> = {
  'one user each': (i) => ({ ...ALL, users: [`user${i}`] }),
  'globs in users': (i) => ({ ...ALL, users: [`team-${i}-*`] }),
  'globs in namespaces': (i) => ({ ...ALL, namespaces: [`team-${i}-*`] }),
  'globs in user agents': (i) => ({ ...ALL, userAgents: [`operator-${i}/*`] }),
  'inverted users and namespaces': (i) => ({ ...ALL, users: ['-team-9999-*', `-other${i}`], namespaces: ['-kube-*'] }),
  'several fields': (i) => ({
    verbs: i % 2 === 0 ? ['get', 'list', 'watch'] : ['-delete', '-deletecollection'],
    apiGroups: i % 3 === 0 ? ['*'] : ['', 'apps'],
    resources: i % 5 === 0 ? ['-secrets', '-pods/exec'] : ['pods', 'configmaps', '*/status'],
    users: [`team-${i}-*`, `system:serviceaccount:team-${i}:*`],
    namespaces: i % 7 === 0 ? ['-kube-*'] : [`team-${i}-*`, 'shared-*'],
    userAgents: i % 4 === 0 ? ['kubectl/*', 'Lens/*'] : ['*'],
    nonResourceURLs: [`/team-${i}/*`],
  }),
}

function policiesOf(rule: (i: number) => DispatchRule, count: number): CompiledPolicy[] {
  return Array.from({ length: count }, (_, index) => ({
    index,
    // The last one matches, whatever its kind.
    rules: [compileRule(index === count - 1 ? { ...ALL, nonResourceURLs: ['*'] } : rule(index))],
    strategy: 'RoundRobin',
    endpoints: [],
    schema: -1,
    logMode: '',
    deny: false,
    shadow: false,
  }))
}

interface Asked {
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly userAgent: string
}

/** As a request brings them: cut out of what came over the wire. */
function requests(target: string): Asked[] {
  const info = parseRequestInfo('GET', target)
  if ('failure' in info) throw new Error(info.failure)
  return Array.from({ length: USERS }, (_, i) => {
    const name = Buffer.from(`team-9999-user${i}`).toString('latin1')
    const namespace = Buffer.from(info.namespace).toString('latin1')
    const userAgent = Buffer.from('kubectl/v1.36.3 (linux/amd64) kubernetes/1234567').toString('latin1')
    return {
      info: { ...info, namespace },
      user: { name, uid: '', groups: ['dev', 'system:authenticated'], extra: {} },
      userAgent,
    }
  })
}

function measure(policies: readonly CompiledPolicy[], asked: readonly Asked[]): number {
  let best = Number.POSITIVE_INFINITY
  const last = policies.length - 1
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < CALLS; i++) {
      const one = asked[i % USERS]
      if (one === undefined) continue
      if (matchPolicy(policies, one.info, one.user, one.userAgent)?.policy !== last) throw new Error('another policy')
    }
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, ((user + system) * 1000) / CALLS)
  }
  return best
}

const resource = requests('/api/v1/namespaces/team-9998-prod/configmaps/settings')
const path = requests('/team-9998/healthz')
console.log(`${'ns for each lookup, the last policy matches'.padEnd(50)} ${'10'.padStart(8)} ${'1000'.padStart(8)}`)
for (const [kind, rule] of Object.entries(KINDS)) {
  for (const [what, asked] of [
    ['resource', resource],
    ['path', path],
  ] as const) {
    const few = measure(policiesOf(rule, 10), asked)
    const many = measure(policiesOf(rule, 1000), asked)
    console.log(`${`${kind}, ${what}`.padEnd(50)} ${few.toFixed(0).padStart(8)} ${many.toFixed(0).padStart(8)}`)
  }
}
