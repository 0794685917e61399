import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionsOf, withCondition } from './conditions.ts'

const NOW = Date.UTC(2026, 0, 2)
const SINCE = '2026-01-01T00:00:00Z'

test('a condition keeps its time as long as its status stays, and the others stay as and where they are', () => {
  const other = { type: 'Steered', status: 'True', message: '', lastTransitionTime: SINCE }
  const ready = { type: 'Ready', status: 'True', message: 'old', lastTransitionTime: SINCE }
  const same = { type: 'Ready', status: 'True', message: 'new' }
  assert.deepEqual(withCondition([ready, other], same, NOW), [{ ...same, lastTransitionTime: SINCE }, other])
  const turned = { ...same, status: 'False' }
  assert.deepEqual(withCondition([ready], turned, NOW), [{ ...turned, lastTransitionTime: '2026-01-02T00:00:00Z' }])
  const untimed = { type: 'Ready', status: 'True', message: 'old', lastTransitionTime: '' }
  assert.equal(withCondition([untimed], same, NOW)[0]?.lastTransitionTime, '2026-01-02T00:00:00Z')
})

test('foreign values in status.conditions are left out where they cannot be conditions', () => {
  for (const conditions of [undefined, null, 1, 'x', {}, [null, 1, 'x', []]]) {
    assert.deepEqual(conditionsOf({ status: { conditions } }), [])
  }
  assert.deepEqual(conditionsOf({}), [])
})
