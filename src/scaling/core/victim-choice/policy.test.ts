// Which ScaleDownPolicies are in force.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkScaleDownPolicy } from '../../api/scale-down-policy-kind.ts'
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

test('a preference needs the key that it goes by', () => {
  assert.equal(why({ by: 'EmptiestNode' }), '')
  assert.equal(why({ by: 'TopologyExcess', topologyKey: 'zone' }), '')
  assert.match(why({ by: 'TopologyExcess' }), /spec\.prefer\[0\]\.topologyKey is required by TopologyExcess/)
  assert.match(why({ by: 'Annotation' }), /spec\.prefer\[0\]\.annotation is required by Annotation/)
  assert.match(why({ by: 'Annotation', annotation: 'a b' }), /spec\.prefer\[0\]\.annotation/)
})

test('a policy that prefers by what is not known is not in force, and says why and what to write instead', () => {
  assert.match(
    why({ by: 'Metric', metric: { name: 'busy' } }),
    /spec\.prefer\[0\]\.by "Metric" is not known: .*UnschedulableNode.*Annotation/,
  )
})

test('a key without its preference is a warning', () => {
  const found = checkScaleDownPolicy(policy({ by: 'EmptiestNode', annotation: 'busy' }))
  assert.deepEqual(
    found.map(({ severity, path, message }) => [severity, path, message]),
    [['warning', 'spec.prefer[0].annotation', 'has no effect without by: Annotation']],
  )
})
