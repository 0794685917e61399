// Cases of apiserver/pkg/audit/policy/checker_test.go, and what its code does beyond them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FieldErrors } from '../../kit/api/validation/field-errors.ts'
import { readAuditPolicy } from './policy.ts'
import { type AuditDecision, type AuditedRequest, AuditRules } from './rules.ts'

const ALICE = { name: 'alice', groups: ['dev', 'system:authenticated'] }
const NO_USER = { name: '', groups: [] }
const READ: AuditedRequest = {
  verb: 'get',
  isResourceRequest: true,
  path: '/api/v1/namespaces/default/pods/busybox',
  apiGroup: '',
  resource: 'pods',
  subresource: '',
  namespace: 'default',
  name: 'busybox',
}
const LOG = { ...READ, subresource: 'log' }
const SCALE = { ...READ, apiGroup: 'apps', resource: 'deployments', subresource: 'scale', name: 'web' }
const NODE = { ...READ, resource: 'nodes', namespace: '', name: 'n1' }
const PATH = { ...READ, isResourceRequest: false, path: '/logs/kube', resource: '', namespace: '', name: '' }

function decide(document: object, request: AuditedRequest, user = ALICE): AuditDecision {
  const out = new FieldErrors()
  const policy = readAuditPolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', ...document }, out)
  assert.ok(policy !== undefined, JSON.stringify(out.found))
  return new AuditRules(policy).decide(request, user)
}

function isMatched(rule: object, request: AuditedRequest, user = ALICE): boolean {
  return decide({ rules: [{ level: 'Metadata', ...rule }] }, request, user).level === 'Metadata'
}

function resources(group: string, names: readonly string[], resourceNames: readonly string[] = []): object {
  return { resources: [{ group, resources: names, resourceNames }] }
}

test('the first rule that matches decides, and none means None', () => {
  const rules = [
    { level: 'Request', users: ['bob'] },
    { level: 'Metadata', users: ['alice'] },
    { level: 'RequestResponse' },
  ]
  assert.equal(decide({ rules }, READ).level, 'Metadata')
  assert.equal(decide({ rules }, READ, { name: 'carol', groups: [] }).level, 'RequestResponse')
  assert.equal(decide({ rules: rules.slice(0, 1) }, READ).level, 'None')
})

test('users, groups and verbs are exact', () => {
  assert.equal(isMatched({ users: ['alice'] }, READ), true)
  assert.equal(isMatched({ users: ['ali*', '*'] }, READ), false)
  assert.equal(isMatched({ userGroups: ['ops', 'dev'] }, READ), true)
  assert.equal(isMatched({ userGroups: ['*'] }, READ), false)
  assert.equal(isMatched({ verbs: ['get'] }, READ), true)
  assert.equal(isMatched({ verbs: ['*'] }, READ), false)
  assert.equal(isMatched({ users: ['alice'], userGroups: ['ops'] }, READ), false)
  assert.equal(isMatched({ users: ['alice'] }, READ, NO_USER), false)
  assert.equal(isMatched({}, READ, NO_USER), true)
})

test('resources: groups, subresources, names', () => {
  assert.equal(isMatched(resources('', ['pods']), READ), true)
  assert.equal(isMatched(resources('', ['pods']), LOG), false)
  assert.equal(isMatched(resources('', ['pods/log']), LOG), true)
  assert.equal(isMatched(resources('', ['pods/log']), READ), false)
  assert.equal(isMatched(resources('', ['pods/*']), LOG), true)
  assert.equal(isMatched(resources('', ['pods/*']), READ), true)
  assert.equal(isMatched(resources('', ['*/log']), LOG), true)
  assert.equal(isMatched(resources('', ['*/log']), READ), false)
  assert.equal(isMatched(resources('*', ['*/scale']), SCALE), true)
  assert.equal(isMatched(resources('', ['*/scale']), SCALE), false)
  assert.equal(isMatched(resources('', ['*']), LOG), true)
  assert.equal(isMatched(resources('apps', []), SCALE), true)
  assert.equal(isMatched(resources('apps', []), READ), false)
  assert.equal(isMatched(resources('*', []), PATH), false)
  assert.equal(isMatched(resources('', ['pods'], ['other']), READ), false)
  assert.equal(isMatched(resources('', ['pods'], ['other', 'busybox']), READ), true)
  assert.equal(isMatched(resources('', ['*/*']), LOG), false)
})

test('namespaces: the empty one is what is in none', () => {
  assert.equal(isMatched({ namespaces: ['default'] }, READ), true)
  assert.equal(isMatched({ namespaces: [''] }, READ), false)
  assert.equal(isMatched({ namespaces: [''] }, NODE), true)
  assert.equal(isMatched({ namespaces: [''] }, PATH), false)
})

test('paths: exact, or with a star at the end', () => {
  assert.equal(isMatched({ nonResourceURLs: ['/logs*'] }, PATH), true)
  assert.equal(isMatched({ nonResourceURLs: ['*'] }, PATH), true)
  assert.equal(isMatched({ nonResourceURLs: ['/logs'] }, PATH), false)
  assert.equal(isMatched({ nonResourceURLs: ['/logs/kube'] }, PATH), true)
  assert.equal(isMatched({ nonResourceURLs: ['*'] }, READ), false)
})

test('stages of policy and rule are left out, managed fields as the rule says', () => {
  const rules = [{ level: 'Metadata', omitStages: ['Panic'], omitManagedFields: false }, { level: 'None' }]
  const { received, started, complete, panic, omitManagedFields } = decide(
    { rules, omitStages: ['RequestReceived'], omitManagedFields: true },
    READ,
  )
  assert.deepEqual([received, started, complete, panic, omitManagedFields], [false, true, true, false, false])
  assert.equal(decide({ rules: [{ level: 'Metadata' }], omitManagedFields: true }, READ).omitManagedFields, true)
})

test('a policy of many rules decides by the first one that would match alone', () => {
  const some = (...values: readonly string[]): fc.Arbitrary<string[]> => fc.subarray([...values], { maxLength: 2 })
  const names = ['pods', 'pods/*', 'pods/log', '*/log', '*/scale', '*', 'deployments', 'deployments/scale', 'nodes']
  const about = fc.array(fc.record({ group: fc.constantFrom('', 'apps', '*'), resources: some(...names) }), {
    maxLength: 2,
  })
  const rule = fc.oneof(
    fc.record({ users: some('alice', 'bob'), verbs: some('get', 'list'), resources: about }),
    fc.record({ namespaces: some('', 'default'), resources: about }),
    fc.record({ nonResourceURLs: some('/logs*', '/logs/kube', '/metrics') }),
  )
  const secrets = { ...READ, resource: 'secrets' }
  const request = fc.constantFrom(READ, LOG, SCALE, NODE, PATH, secrets)
  fc.assert(
    fc.property(fc.array(rule, { minLength: 1, maxLength: 6 }), request, (rules, asked) => {
      const first = rules.findIndex((one) => isMatched(one, asked))
      const numbered = rules.map((one, i) => ({ ...one, level: i === first ? 'Request' : 'Metadata' }))
      assert.equal(decide({ rules: numbered }, asked).level, first === -1 ? 'None' : 'Request')
    }),
  )
})
