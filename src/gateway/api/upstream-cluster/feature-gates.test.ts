import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseFeatureGates } from './feature-gates.ts'

const CASES: readonly (readonly [string, string[], number])[] = [
  ['', [], 0],
  ['DenyAllRequests=true', ['DenyAllRequests'], 0],
  [' DenyAllRequests = T , Tracing=0,', ['DenyAllRequests'], 0],
  ['Tracing=true,Tracing=false', [], 0],
  ['Tracing=false,Tracing=1', ['Tracing'], 0],
  ['DenyAllRequests', [], 1],
  ['DenyAllRequests=yes', [], 1],
  ['Nope=true,denyallrequests=true,Tracing=true', ['Tracing'], 2],
  ['=true', [], 1],
]

for (const [text, enabled, errors] of CASES) {
  test(JSON.stringify(text), () => {
    const gates = parseFeatureGates(text)
    assert.deepEqual([...gates.enabled], enabled)
    assert.equal(gates.errors.length, errors)
  })
}

test('a gate that is nearly right is pointed out', () => {
  assert.deepEqual(parseFeatureGates('denyallrequests=true').errors, [
    'unknown feature gate "denyallrequests", did you mean DenyAllRequests?',
  ])
})
