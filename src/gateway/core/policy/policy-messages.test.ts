import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ANONYMOUS, type UserInfo } from '../../../kube/api/user.ts'
import { parseRequestInfo, type RequestInfo } from '../request/request-info.ts'
import { accessDeniedMessage, noPolicyMessage, policyDeniedMessage, unknownClusterMessage } from './policy-messages.ts'

const ALICE: UserInfo = { name: 'alice', uid: '', groups: [], extra: {} }

function info(method: string, target: string): RequestInfo {
  const parsed = parseRequestInfo(method, target)
  assert.ok(!('failure' in parsed))
  return parsed
}

test('a forbidden request is described as kube-apiserver does', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    [
      'GET',
      '/apis/apps/v1/namespaces/x/deployments/web/scale',
      'deployments.apps "web" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" in the namespace "x"',
    ],
    [
      'GET',
      '/api/v1/nodes',
      'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
    ],
    ['GET', '/metrics', 'forbidden: User "alice" cannot get path "/metrics"'],
  ]
  for (const [method, target, expected] of rows) {
    assert.equal(
      noPolicyMessage(ALICE, info(method, target), 'c'),
      `${expected}: no dispatch policy of cluster "c" matches`,
    )
  }
})

test('refusals name what decided', () => {
  assert.match(unknownClusterMessage('prod.example.com'), /"prod\.example\.com"/)
  assert.match(
    policyDeniedMessage(ALICE, info('GET', '/api/v1/pods'), 'c', 3, 1),
    /dispatchPolicies\[3\]\.rules\[1\] of cluster "c"/,
  )
  assert.match(accessDeniedMessage(ALICE, 'c', { rule: 'bots', list: 'deny' }), /"alice".*"c".*rule "bots".*deny/)
  assert.match(accessDeniedMessage(ANONYMOUS, 'c', { rule: '', list: 'deny' }), /"system:anonymous".*a rule.*deny/)
  assert.match(accessDeniedMessage(ALICE, 'c', { rule: '', list: 'allow' }), /"alice".*allow list/)
})
