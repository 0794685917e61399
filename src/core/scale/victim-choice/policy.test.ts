// Which ScaleDownPolicies are in force: what names a metric ends up in a path.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkScaleDownPolicy } from '../../../api/scale-down-policy/checks.ts'
import { readScaleDownPolicy } from './policy.ts'

function policy(preference: object): object {
  const metadata = { name: 'web', namespace: 'shop' }
  const spec = { selector: {}, prefer: [preference] }
  return { apiVersion: 'scale.portcullis.io/v1alpha1', kind: 'ScaleDownPolicy', metadata, spec }
}

function why(preference: object): string {
  const read = readScaleDownPolicy(policy(preference) as never)
  return read.kind === 'invalid' ? read.why : ''
}

test('names of metrics that adapters have', () => {
  for (const name of [
    'http_connections',
    'a:b:rate5m',
    'custom.googleapis.com|my|busy',
    'nginx.net.connections',
    'a..b',
  ]) {
    assert.equal(why({ by: 'Metric', metric: { name } }), '', name)
  }
  const selector = { matchLabels: { verb: 'GET' }, matchExpressions: [{ key: 'code', operator: 'Exists' }] }
  assert.equal(why({ by: 'Metric', metric: { name: 'busy', selector } }), '')
})

test('names that are not a single segment of a path', () => {
  const hostile = ['', '.', '..', '../secrets', 'a/b', 'a%2Fb', 'a?b', 'a#b', 'a b', 'a\n', '*', 'é', 'x'.repeat(254)]
  for (const name of hostile)
    assert.match(why({ by: 'Metric', metric: { name } }), /metric\.name/, JSON.stringify(name))
})

test('a metric that is missing, of a wrong type, or has a selector that cannot be read', () => {
  assert.match(why({ by: 'Metric' }), /spec\.prefer\[0\]\.metric is required by Metric/)
  for (const metric of ['busy', 7, [], {}, { selector: {} }]) assert.notEqual(why({ by: 'Metric', metric }), '')
  const selector = { matchExpressions: [{ key: 'code', operator: 'In', values: [] }] }
  assert.match(why({ by: 'Metric', metric: { name: 'busy', selector } }), /metric\.selector\.matchExpressions\[0\]/)
})

test('a metric without by: Metric is a warning', () => {
  const found = checkScaleDownPolicy(policy({ by: 'EmptiestNode', metric: { name: 'busy' } }))
  assert.deepEqual(
    found.map(({ severity, path, message }) => [severity, path, message]),
    [['warning', 'spec.prefer[0].metric', 'has no effect without by: Metric']],
  )
})
