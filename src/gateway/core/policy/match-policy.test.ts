import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { DispatchRule } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileRule, effectiveEntries } from '../cluster/compile-rules.ts'
import type { CompiledPolicy } from '../cluster/compiled-cluster.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { anyInList, inList, resourceInList } from './match-list.ts'
import { matchPolicy } from './match-policy.ts'
import { ruleMatches } from './match-rule.ts'

interface TableRow {
  readonly name: string
  readonly fn: string
  readonly attributes: Attributes
  readonly rule: Record<string, unknown>
  readonly expected: unknown
}

interface Attributes {
  readonly verb?: string
  readonly apiGroup?: string
  readonly combinedResource?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly path?: string
  readonly user?: string
  readonly groups?: readonly string[]
  readonly resourceRequest?: boolean
}

const table: { cases: TableRow[] } = JSON.parse(
  readFileSync(new URL('../../../../test/data/rules.json', import.meta.url), 'utf8'),
)

/** Go writes nil lists as null. */
function withoutNulls(rule: Record<string, unknown>): DispatchRule {
  return Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== null))
}

function requestInfo(attributes: Attributes): RequestInfo {
  return {
    isResourceRequest: attributes.resourceRequest ?? true,
    path: attributes.path ?? '',
    verb: attributes.verb ?? '',
    apiPrefix: 'apis',
    apiGroup: attributes.apiGroup ?? '',
    apiVersion: 'v1',
    namespace: attributes.namespace ?? '',
    resource: attributes.resource ?? '',
    subresource: attributes.subresource ?? '',
    name: attributes.name ?? '',
    fieldSelector: '',
    labelSelector: '',
  }
}

function userInfo(name: string, groups: readonly string[] = []): UserInfo {
  return { name, uid: '', groups, extra: {} }
}

function answer({ fn, attributes, rule: written }: TableRow): unknown {
  const rule = compileRule(withoutNulls(written))
  const { verb = '', apiGroup = '', combinedResource = '', subresource = '' } = attributes
  switch (fn) {
    case 'VerbMatches':
      return inList(rule.verbs, verb)
    case 'APIGroupMatches':
      return inList(rule.apiGroups, apiGroup)
    case 'ResourceMatches':
      return resourceInList(rule.resources, combinedResource, subresource)
    case 'ResourceNameMatches':
      return inList(rule.resourceNames, attributes.name ?? '')
    case 'UserOrServiceAccountMatches':
      return inList(rule.users, attributes.user ?? '')
    case 'UserGroupMatches':
      return anyInList(rule.userGroups, attributes.groups ?? [])
    case 'NonResourceURLMatches':
      return inList(rule.nonResourceURLs, attributes.path ?? '')
    case 'RuleMatches':
      return ruleMatches(rule, requestInfo(attributes), userInfo(attributes.user ?? '', attributes.groups), '')
    case 'normalizeRules':
      return Object.fromEntries(
        Object.entries(written).map(([key, list]) => [key, isStrings(list) ? effectiveEntries(list) : list]),
      )
    default:
      return assert.fail(`unknown function ${fn}`)
  }
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}

test('the table of rules, all of it', () => {
  assert.equal(table.cases.length, 70)
  for (const row of table.cases) assert.deepEqual(answer(row), row.expected, row.name)
})

const POD_GET = requestInfo({ verb: 'get', resource: 'pods', namespace: 'dev', name: 'web' })
const ANY = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }

function matchesPod(rule: DispatchRule, user = userInfo('alice', ['g']), userAgent = 'kubectl/v1'): boolean {
  return ruleMatches(compileRule({ ...ANY, ...rule }), POD_GET, user, userAgent)
}

// What KubeGateway's code gets wrong about inverted lists: two entries, globs, subresources, groups.
test('a list of inverted entries means none of these', () => {
  assert.equal(matchesPod({ resources: ['-pods', '-deployments'] }), false)
  assert.equal(matchesPod({ resources: ['-secrets', '-deployments'] }), true)
  assert.equal(matchesPod({ users: ['-alice', '-bob'] }), false)
  assert.equal(matchesPod({ users: ['-al*'] }), false)
  assert.equal(matchesPod({ users: ['-bo*'] }), true)
  const scale = requestInfo({ verb: 'get', resource: 'deployments', subresource: 'scale' })
  assert.equal(ruleMatches(compileRule({ ...ANY, resources: ['-*/scale'] }), scale, userInfo('u'), ''), false)
  assert.equal(ruleMatches(compileRule({ ...ANY, resources: ['-*/status'] }), scale, userInfo('u'), ''), true)
  const both = userInfo('alice', ['system:masters', 'system:authenticated'])
  assert.equal(matchesPod({ userGroups: ['-system:masters'] }, both), false)
  assert.equal(matchesPod({ userGroups: ['-system:masters'] }, userInfo('alice')), true)
  assert.equal(matchesPod({ userGroups: ['-system:masters'] }, userInfo('alice', ['system:authenticated'])), true)
})

test('namespaces and user agents: globs, inversion, and the cluster scope', () => {
  assert.equal(matchesPod({ namespaces: ['dev'] }), true)
  assert.equal(matchesPod({ namespaces: ['de*'] }), true)
  assert.equal(matchesPod({ namespaces: ['-dev'] }), false)
  assert.equal(matchesPod({ namespaces: [''] }), false)
  assert.equal(matchesPod({ userAgents: ['kubectl/*'] }), true)
  assert.equal(matchesPod({ userAgents: ['-kubectl/*'] }), false)
  const node = requestInfo({ verb: 'get', resource: 'nodes', name: 'n' })
  assert.equal(ruleMatches(compileRule({ ...ANY, namespaces: [''] }), node, userInfo('u'), ''), true)
  assert.equal(ruleMatches(compileRule({ ...ANY, namespaces: ['-'] }), node, userInfo('u'), ''), false)
  assert.equal(ruleMatches(compileRule({ ...ANY, namespaces: ['dev'] }), node, userInfo('u'), ''), false)
})

test('a path has no namespace: namespaces restrict resource requests only, as resourceNames do', () => {
  const version = requestInfo({ verb: 'get', path: '/version', resourceRequest: false })
  assert.equal(ruleMatches(compileRule({ ...ANY, namespaces: ['dev'] }), version, userInfo('u'), ''), true)
})

test('service accounts: exact names, ORed with users, incomplete entries ignored', () => {
  const account = userInfo('system:serviceaccount:ci:bot')
  const named = { serviceAccounts: [{ namespace: 'ci', name: 'bot' }] }
  assert.equal(matchesPod(named, account), true)
  assert.equal(matchesPod(named), false)
  assert.equal(matchesPod({ ...named, users: ['bob'] }, account), true)
  assert.equal(matchesPod({ ...named, users: ['-system:*'] }, account), true)
  assert.equal(matchesPod({ ...named, users: ['-system:*'] }, userInfo('system:serviceaccount:ci:other')), false)
  assert.equal(matchesPod({ serviceAccounts: [{ namespace: 'ci' }, { name: 'bot' }] }, account), false)
  assert.equal(matchesPod({ serviceAccounts: [{ namespace: 'ci' }] }), false)
  assert.equal(matchesPod({ users: ['alice'], serviceAccounts: [{ namespace: 'ci' }] }), true)
  // A name is not a glob; `users: ["system:serviceaccount:ci:*"]` is.
  assert.equal(matchesPod({ serviceAccounts: [{ namespace: 'ci', name: '*' }] }, account), false)
})

test('the first policy whose rule matches wins, whatever comes later', () => {
  const policy = (index: number, ...rules: DispatchRule[]): CompiledPolicy => ({
    index,
    rules: rules.map(compileRule),
    strategy: 'RoundRobin',
    endpoints: [],
    schema: -1,
    logMode: '',
    deny: false,
    shadow: false,
  })
  const bob = { ...ANY, users: ['bob'] }
  const policies = [policy(0, bob), policy(1, bob, { ...ANY, users: ['alice'] }), policy(2, ANY)]
  assert.deepEqual(matchPolicy(policies, POD_GET, userInfo('alice'), ''), { policy: 1, rule: 1 })
  assert.deepEqual(matchPolicy(policies, POD_GET, userInfo('bob'), ''), { policy: 0, rule: 0 })
  assert.deepEqual(matchPolicy(policies, POD_GET, userInfo('carol'), ''), { policy: 2, rule: 0 })
  assert.equal(matchPolicy(policies.slice(0, 2), POD_GET, userInfo('carol'), ''), undefined)
})

/** The documented semantics of DispatchRule, entry by entry. */
function simpleList(entries: readonly string[], empty: boolean, names: (entry: string) => boolean): boolean {
  if (entries.length === 0) return empty
  if (entries.includes('*')) return true
  const positive = entries.filter((entry) => !entry.startsWith('-'))
  if (positive.length > 0) return positive.some(names)
  // Validation rejects `-*`; if it slipped in, it would match nothing.
  return !entries.some((entry) => entry === '-*' || names(entry.slice(1)))
}

function glob(value: string): (entry: string) => boolean {
  return (entry) => (entry.endsWith('*') ? value.startsWith(entry.replace(/\*+$/, '')) : entry === value)
}

function simpleMatches(rule: Required<DispatchRule>, info: RequestInfo, user: UserInfo, agent: string): boolean {
  const full = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`
  const accounts = rule.serviceAccounts.map(({ namespace, name }) => `system:serviceaccount:${namespace}:${name}`)
  const noUsers = rule.users.length === 0 && accounts.length > 0
  const users = (!noUsers && simpleList(rule.users, true, glob(user.name))) || accounts.includes(user.name)
  const common =
    simpleList(rule.verbs, false, (entry) => entry === info.verb) &&
    users &&
    simpleList(rule.userGroups, true, (entry) => user.groups.includes(entry)) &&
    simpleList(rule.userAgents, true, glob(agent))
  if (!info.isResourceRequest) return common && simpleList(rule.nonResourceURLs, false, glob(info.path))
  const names = (entry: string): boolean =>
    entry === full || (info.subresource !== '' && entry === `*/${info.subresource}`)
  return (
    common &&
    simpleList(rule.apiGroups, false, (entry) => entry === info.apiGroup) &&
    simpleList(rule.resources, false, names) &&
    simpleList(rule.resourceNames, true, (entry) => entry === info.name) &&
    simpleList(rule.namespaces, true, glob(info.namespace))
  )
}

test('equals the documentation of DispatchRule, read entry by entry', () => {
  const list = (...words: string[]): fc.Arbitrary<string[]> => {
    const entry = fc.constantFrom(...words)
    return fc.array(
      fc.oneof(
        entry,
        entry.map((word) => `-${word}`),
        fc.constant(words[0] ?? ''),
      ),
      { maxLength: 3 },
    )
  }
  const account = 'system:serviceaccount:ns:sa'
  const rule = fc.record({
    verbs: list('get', '*', 'list'),
    apiGroups: list('', '*', 'apps'),
    resources: list('pods', '*', 'pods/exec', '*/exec', 'nodes'),
    resourceNames: list('a', 'b'),
    users: list('alice', 'al*', 'bob', account, 'system:*', 'x**'),
    serviceAccounts: fc.array(fc.constant({ namespace: 'ns', name: 'sa' }), { maxLength: 1 }),
    userGroups: list('g', 'h', '*'),
    nonResourceURLs: list('/healthz', '/*', '/health*', '*'),
    namespaces: list('dev', 'd*', ''),
    userAgents: list('kubectl/1', 'kubectl/*', ''),
  })
  const info = fc.record({
    isResourceRequest: fc.boolean(),
    path: fc.constantFrom('/healthz', '/healthz/etcd', '/version'),
    verb: fc.constantFrom('get', 'list'),
    apiPrefix: fc.constant('api'),
    apiGroup: fc.constantFrom('', 'apps'),
    apiVersion: fc.constant('v1'),
    namespace: fc.constantFrom('', 'dev', 'prod'),
    resource: fc.constantFrom('pods', 'nodes'),
    subresource: fc.constantFrom('', 'exec'),
    name: fc.constantFrom('', 'a', 'c'),
    fieldSelector: fc.constant(''),
    labelSelector: fc.constant(''),
  })
  const user = fc.record({
    name: fc.constantFrom('alice', 'bob', account, 'xy'),
    uid: fc.constant(''),
    groups: fc.subarray(['g', 'h', 'i']),
    extra: fc.constant({}),
  })
  let matched = 0
  fc.assert(
    fc.property(rule, info, user, fc.constantFrom('', 'kubectl/1', 'curl'), (written, request, sender, agent) => {
      const expected = simpleMatches(written, request, sender, agent)
      if (expected) matched++
      assert.equal(ruleMatches(compileRule(written), request, sender, agent), expected)
    }),
    { numRuns: 5000 },
  )
  assert.ok(matched > 0)
})
