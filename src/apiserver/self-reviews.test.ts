import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../kit/api/json/json-object.ts'
import { StatusError } from '../kube/api/status.ts'
import { GROUP_AUTHENTICATED, type UserInfo } from '../kube/api/user.ts'
import { SCHEME } from '../program/api/scheme.ts'
import { roleBindings } from './access/authorize.ts'
import { selfReviews } from './self-reviews.ts'

const VIEWER: UserInfo = {
  name: 'vera',
  uid: '',
  groups: ['portcullis:viewers', GROUP_AUTHENTICATED],
  extra: { key: ['value'] },
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by their fields
function ask(group: string, resource: string, body: JsonObject, user = VIEWER): any {
  const reviews = selfReviews(roleBindings([], []), SCHEME)
  return reviews.find((one) => one.group === group && one.plural === resource)?.answer(body, user)
}

function access(spec: JsonObject): { allowed: boolean } {
  return ask('authorization.k8s.io', 'selfsubjectaccessreviews', { spec }).status
}

test('who am I', () => {
  const review = ask('authentication.k8s.io', 'selfsubjectreviews', {})
  assert.deepEqual(review.status.userInfo, {
    username: 'vera',
    groups: ['portcullis:viewers', GROUP_AUTHENTICATED],
    extra: { key: ['value'] },
  })
})

test('may I', () => {
  const resource = (verb: string, name: string): JsonObject => ({ resourceAttributes: { verb, resource: name } })
  assert.deepEqual(access(resource('get', 'namespaces')), { allowed: true, reason: 'role view' })
  assert.deepEqual(access(resource('get', 'secrets')), { allowed: false })
  assert.deepEqual(access(resource('delete', 'namespaces')), { allowed: false })
  assert.equal(access({ nonResourceAttributes: { verb: 'get', path: '/api' } }).allowed, true)
  assert.equal(access({ nonResourceAttributes: { verb: 'post', path: '/api' } }).allowed, false)
  // A value of the wrong type does not count.
  assert.equal(access({ resourceAttributes: { verb: ['get'], resource: {} } }).allowed, false)
})

test('a question that is none, or two', () => {
  for (const spec of [{}, { resourceAttributes: {}, nonResourceAttributes: {} }, { resourceAttributes: null }]) {
    assert.throws(
      () => access(spec),
      (error) => error instanceof StatusError && error.code === 422 && /exactly one of/.test(error.message),
    )
  }
  assert.throws(() => ask('authorization.k8s.io', 'selfsubjectaccessreviews', {}), StatusError)
})

test('rules review: never Secrets for viewers', () => {
  const { resourceRules, incomplete } = ask('authorization.k8s.io', 'selfsubjectrulesreviews', { spec: {} }).status
  assert.equal(incomplete, false)
  const text = JSON.stringify(resourceRules)
  assert.match(text, /"upstreamclusters\/status"/)
  assert.doesNotMatch(text, /secrets/)
  assert.doesNotMatch(text, /"\*"/)
  const admin = { ...VIEWER, groups: ['portcullis:admins', GROUP_AUTHENTICATED] }
  const rules = ask('authorization.k8s.io', 'selfsubjectrulesreviews', { spec: {} }, admin).status.resourceRules
  assert.ok(JSON.stringify(rules).includes('{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}'))
})

test('anything else is not a review', () => {
  assert.equal(ask('', 'selfsubjectreviews', {}), undefined)
  assert.equal(ask('authorization.k8s.io', 'subjectaccessreviews', {}), undefined)
})
