import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordObject } from './recorded-body.ts'

const SECRETS = { apiGroup: '', resource: 'secrets', subresource: '' }
const PODS = { apiGroup: '', resource: 'pods', subresource: '' }

function recorded(text: string, about = PODS, omitManagedFields = false, isPatch = false): string {
  const { json, why } = recordObject(Buffer.from(text), about, omitManagedFields, isPatch)
  assert.equal(json === '', why !== '')
  return json === '' ? why : json
}

test('JSON is recorded as it came, in one line', () => {
  assert.equal(
    recorded('{\n  "a": 12345678901234567890,\r\n "b": "x\\ny"}\n'),
    '{   "a": 12345678901234567890,  "b": "x\\ny"}',
  )
})

test('what is not JSON is left out, with the reason', () => {
  assert.equal(recorded('k8s\0{}'), 'its encoding is Protobuf')
  assert.equal(recorded('kind: Pod\n'), 'its encoding is not JSON')
  assert.equal(recorded('{"a":1}\n{"forged":true}'), 'its encoding is not JSON')
  assert.equal(recorded('['.repeat(100_000)), 'its encoding is not JSON')
})

test('no value of a Secret is recorded, whatever the body calls itself', () => {
  const secret = {
    kind: 'ConfigMap',
    metadata: { name: 'a', annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'planted', b: 'c' } },
    data: { key: 'planted' },
    stringData: { other: 'planted' },
  }
  const hidden =
    '"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"REDACTED","b":"c"}},' +
    '"data":{"key":"REDACTED"},"stringData":{"other":"REDACTED"}'
  assert.equal(recorded(JSON.stringify(secret), SECRETS), `{"kind":"ConfigMap",${hidden}}`)
  const list = { items: [secret], rows: [{ object: secret }] }
  assert.doesNotMatch(recorded(JSON.stringify(list), SECRETS), /planted/)
  assert.doesNotMatch(recorded('{"data":"planted"}', SECRETS, false, true), /planted/)
  assert.doesNotMatch(
    recorded('[{"op":"add","path":"/data","value":{"a":"planted"}}]', SECRETS, false, true),
    /planted/,
  )
  assert.doesNotMatch(recorded('{"data":{"a":"planted"},"data":{"a":"x"}}', SECRETS), /planted/)
  assert.doesNotMatch(recorded('"planted"', SECRETS), /planted/)
})

test('no token is recorded', () => {
  const request = { apiGroup: '', resource: 'serviceaccounts', subresource: 'token' }
  assert.equal(recorded('{"status":{"token":"planted","a":1}}', request), '{"status":{"token":"REDACTED","a":1}}')
  const review = { apiGroup: 'authentication.k8s.io', resource: 'tokenreviews', subresource: '' }
  assert.equal(recorded('{"spec":{"token":"planted"}}', review), '{"spec":{"token":"REDACTED"}}')
})

test('managed fields are left out of objects, lists and tables, never of patches', () => {
  const object = { metadata: { name: 'a', managedFields: [{}] } }
  const plain = '{"metadata":{"name":"a"}}'
  assert.equal(recorded(JSON.stringify(object), PODS, true), plain)
  assert.equal(recorded(JSON.stringify({ items: [object] }), PODS, true), `{"items":[${plain}]}`)
  assert.equal(recorded(JSON.stringify({ rows: [{ object }] }), PODS, true), `{"rows":[{"object":${plain}}]}`)
  assert.equal(recorded(JSON.stringify(object), PODS, true, true), JSON.stringify(object))
})
