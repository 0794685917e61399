import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldErrors } from '../../kit/api/validation/field-errors.ts'
import { readAuditPolicy } from './policy.ts'

/** `path: message` for errors; warnings are prefixed with `?`. */
function problems(document: object): string[] {
  const out = new FieldErrors()
  const policy = readAuditPolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', ...document }, out)
  assert.equal(
    policy === undefined,
    out.found.some(({ severity }) => severity === 'error'),
  )
  for (const { fix } of out.found) assert.notEqual(fix, '')
  return out.found.map(({ severity, path, message }) => `${severity === 'warning' ? '?' : ''}${path}: ${message}`)
}

test('what kube-apiserver refuses is refused, each by its path', () => {
  assert.deepEqual(problems({ apiVersion: 'audit.k8s.io/v1beta1', rules: [{ level: 'None' }] }), [
    'apiVersion: is "audit.k8s.io/v1beta1"',
  ])
  assert.deepEqual(problems({ kind: 'Event', rules: [{ level: 'None' }] }), ['kind: is "Event"'])
  assert.deepEqual(problems({ rules: [] }), ['rules: has no rule, so nothing would be recorded'])
  assert.deepEqual(problems({ rules: [{}, { level: 'metadata' }] }), [
    'rules[0].level: is required',
    'rules[1].level: is "metadata"',
  ])
  assert.deepEqual(problems({ rules: [{ level: 'None', nonResourceURLs: ['healthz', '/a*/b', '*', '/x*'] }] }), [
    'rules[0].nonResourceURLs[0]: is "healthz", which does not begin with /',
    'rules[0].nonResourceURLs[1]: is "/a*/b", with * before its end',
  ])
  assert.deepEqual(problems({ rules: [{ level: 'None', nonResourceURLs: ['/a'], namespaces: ['b'] }] }), [
    'rules[0].nonResourceURLs: may not be specified with resources or namespaces: no request is for both',
  ])
  assert.deepEqual(problems({ rules: [{ level: 'None', resources: [{ group: 'rbac.authorization.k8s.io/v1' }] }] }), [
    'rules[0].resources[0].group: is "rbac.authorization.k8s.io/v1", which is not the name of a group',
  ])
  assert.deepEqual(problems({ rules: [{ level: 'None', resources: [{ group: '', resourceNames: ['a'] }] }] }), [
    'rules[0].resources[0].resourceNames: is given without resources',
  ])
  assert.deepEqual(problems({ omitStages: ['Received'], rules: [{ level: 'None', omitStages: ['x'] }] }), [
    'rules[0].omitStages[0]: is "x"',
    'omitStages[0]: is "Received"',
  ])
  assert.deepEqual(problems({ rules: [{ level: 'None', users: 'alice', verbs: [1] }] }), [
    'rules[0].users: is "alice", which is not a list',
    'rules[0].verbs[0]: is 1, which is not a string',
  ])
})

test('what kube-apiserver only warns of passes with a warning', () => {
  assert.deepEqual(problems({ rules: [{ level: 'None', user: ['alice'] }], more: 1 }), [
    '?more: is not known and has no effect',
    '?rules[0].user: is not known and has no effect',
  ])
})

test('what is left out is any', () => {
  const out = new FieldErrors()
  const policy = readAuditPolicy(
    { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Request', users: null }] },
    out,
  )
  assert.deepEqual(policy, {
    rules: [
      {
        level: 'Request',
        users: [],
        userGroups: [],
        verbs: [],
        resources: [],
        namespaces: [],
        nonResourceURLs: [],
        omitStages: [],
        omitManagedFields: undefined,
      },
    ],
    omitStages: [],
    omitManagedFields: false,
  })
})
