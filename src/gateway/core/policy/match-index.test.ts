// Compares the index with the rule it implements: policies in order, the first whose rule matches.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { DispatchRule } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileRule } from '../cluster/compile-rules.ts'
import type { CompiledPolicy } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { matchPolicy, PolicyIndex, type PolicyMatch } from './match-policy.ts'
import { ruleMatches } from './match-rule.ts'

/** Reference: checks one rule after the other. */
function simpleMatch(
  policies: readonly CompiledPolicy[],
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
): PolicyMatch | undefined {
  for (const { index, rules } of policies) {
    const rule = rules.findIndex((one) => ruleMatches(one, info, user, userAgent))
    if (rule >= 0) return { policy: index, rule }
  }
  return undefined
}

function compilePolicies(written: readonly (readonly DispatchRule[])[]): CompiledPolicy[] {
  return written.map((rules, index) => ({
    index,
    rules: rules.map(compileRule),
    strategy: 'RoundRobin',
    endpoints: [],
    schema: -1,
    logMode: '',
    deny: false,
    shadow: false,
  }))
}

/** Often one value, sometimes several, inverted, everything, or nothing at all. */
function list(...words: string[]): fc.Arbitrary<string[]> {
  const word = fc.constantFrom(...words)
  return fc.oneof(
    { weight: 4, arbitrary: fc.array(word, { minLength: 1, maxLength: 2 }) },
    { weight: 2, arbitrary: fc.constant<string[]>(['*']) },
    {
      weight: 1,
      arbitrary: fc.array(
        word.map((one) => `-${one}`),
        { minLength: 1, maxLength: 2 },
      ),
    },
    { weight: 1, arbitrary: fc.constant<string[]>([]) },
  )
}

/** A field that is usually omitted, as in real objects. */
function optional(...words: string[]): fc.Arbitrary<string[]> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant<string[]>([]) }, { weight: 1, arbitrary: list(...words) })
}

const account = 'system:serviceaccount:ns:sa'
const rules = fc.record({
  verbs: list('get', 'list', 'create'),
  apiGroups: list('', 'apps', 'batch'),
  resources: list('pods', 'nodes', 'pods/exec', '*/exec', '*/status'),
  resourceNames: optional('a', 'b'),
  users: optional('alice', 'al*', 'ali*', 'a*', 'bob', account, 'system:*', 'system:serviceaccount:*'),
  serviceAccounts: fc.array(fc.constant({ namespace: 'ns', name: 'sa' }), { maxLength: 1 }),
  userGroups: optional('g', 'h'),
  nonResourceURLs: optional('/healthz', '/health*', '/version', '*'),
  namespaces: optional('dev', 'd*', 'de*', 'prod*', ''),
  userAgents: optional('kubectl/*', 'kubectl/v1*', 'curl'),
})
const infos: fc.Arbitrary<RequestInfo> = fc.record({
  isResourceRequest: fc.boolean(),
  path: fc.constantFrom('/healthz', '/healthz/etcd', '/version', '/other'),
  verb: fc.constantFrom('get', 'list', 'create', 'patch'),
  apiPrefix: fc.constant('api'),
  apiGroup: fc.constantFrom('', 'apps', 'other'),
  apiVersion: fc.constant('v1'),
  namespace: fc.constantFrom('', 'dev', 'prod'),
  resource: fc.constantFrom('pods', 'nodes', 'other'),
  subresource: fc.constantFrom('', '', 'exec', 'status'),
  name: fc.constantFrom('', 'a', 'c'),
  fieldSelector: fc.constant(''),
  labelSelector: fc.constant(''),
})
const users = fc.record({
  name: fc.constantFrom('alice', 'bob', account, 'xy'),
  uid: fc.constant(''),
  groups: fc.array(fc.constantFrom('g', 'h', 'i'), { maxLength: 5 }),
  extra: fc.constant({}),
})

test('finds what asking one rule after the other finds', () => {
  let matched = 0
  let late = 0
  const written = fc.array(fc.array(rules, { maxLength: 3 }), { maxLength: 25 })
  fc.assert(
    fc.property(written, fc.array(fc.tuple(infos, users), { minLength: 1, maxLength: 10 }), (rulesOf, requests) => {
      const policies = compilePolicies(rulesOf)
      for (const [info, user] of requests) {
        const expected = simpleMatch(policies, info, user, 'kubectl/v1')
        if (expected !== undefined) matched++
        if (expected !== undefined && expected.policy > 0) late++
        assert.deepEqual(matchPolicy(policies, info, user, 'kubectl/v1'), expected)
      }
    }),
    { numRuns: 500 },
  )
  assert.ok(matched > 100 && late > 50, `${matched} matched, ${late} not by the first policy`)
})

const POD_GET: RequestInfo = {
  isResourceRequest: true,
  path: '/api/v1/namespaces/dev/pods/a',
  verb: 'get',
  apiPrefix: 'api',
  apiGroup: '',
  apiVersion: 'v1',
  namespace: 'dev',
  resource: 'pods',
  subresource: '',
  name: 'a',
  fieldSelector: '',
  labelSelector: '',
}
const BOB: UserInfo = { name: 'bob', uid: '', groups: ['g'], extra: {} }
const EVERYTHING = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

test('a lookup reads no rule, whatever the rules name', () => {
  let asked = 0
  const named = Array.from({ length: 1000 }, (_, i) => ({ ...EVERYTHING, users: [`user${i}*`, `-x${i}`] }))
  const policies = compilePolicies([[...named, EVERYTHING]]).map((policy) => ({
    ...policy,
    rules: policy.rules.map((rule) => ({
      ...rule,
      get users() {
        asked++
        return rule.users
      },
    })),
  }))
  const index = new PolicyIndex(policies)
  asked = 0
  assert.deepEqual(index.find(POD_GET, BOB, ''), { policy: 0, rule: 1000 })
  assert.deepEqual(index.find(POD_GET, { ...BOB, name: 'user41x' }, ''), { policy: 0, rule: 4 })
  assert.equal(asked, 0)
})

test('a compiled cluster stays plain data: the index is not part of it', () => {
  const policies = compilePolicies([[EVERYTHING]])
  assert.deepEqual(matchPolicy(policies, POD_GET, BOB, ''), { policy: 0, rule: 0 })
  const copy = structuredClone(policies)
  assert.deepEqual(copy, policies)
  assert.deepEqual(matchPolicy(copy, POD_GET, BOB, ''), { policy: 0, rule: 0 })
})
