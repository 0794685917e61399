import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMicros } from './micro-time.ts'
import { annotationTime, statusTime } from './sync-time.ts'

const NOW = parseMicros('2026-01-02T04:00:00Z')
const at = (text: string): number => parseMicros(`2026-01-02T03:${text}Z`)
const iso = (text: string): string => `2026-01-02T03:${text}Z`

test('the latest of what a pod tells: creation, trigger, conditions', () => {
  const created = { creationTimestamp: iso('00:00') }
  const conditions = [{ lastProbeTime: null, lastTransitionTime: iso('02:00') }, { lastProbeTime: iso('01:00') }]
  const annotations = { 'podseidon.kubewharf.io/update-trigger-time': iso('03:00.000001') }
  assert.equal(statusTime({ metadata: created }, NOW), at('00:00'))
  assert.equal(statusTime({ metadata: created, status: { conditions } }, NOW), at('02:00'))
  assert.equal(statusTime({ metadata: { ...created, annotations }, status: { conditions } }, NOW), at('03:00.000001'))
})

test('a deletion counts from when it was asked for, not from when it is to end', () => {
  const metadata = { creationTimestamp: iso('00:00'), deletionTimestamp: iso('05:30'), deletionGracePeriodSeconds: 30 }
  assert.equal(statusTime({ metadata }, NOW), at('05:00'))
  const hour = { ...metadata, deletionTimestamp: '2026-01-02T04:30:00Z', deletionGracePeriodSeconds: 3600 }
  assert.equal(statusTime({ metadata: hour }, NOW), at('30:00'))
})

test('nothing is believed to be later than now', () => {
  const metadata = { creationTimestamp: '2027-01-01T00:00:00Z' }
  assert.equal(statusTime({ metadata }, NOW), NOW)
  assert.equal(annotationTime({ metadata: { annotations: { seen: '2027-01-01T00:00:00Z' } } }, 'seen', NOW), NOW)
})

test('an invalid or missing time tells nothing', () => {
  for (const pod of [
    {},
    { metadata: 7 },
    { metadata: { creationTimestamp: 'yesterday' }, status: { conditions: [3] } },
  ]) {
    assert.equal(statusTime(pod, NOW), undefined)
    assert.equal(annotationTime(pod, 'seen', NOW), undefined)
  }
  assert.equal(annotationTime({ metadata: { annotations: {} } }, '__proto__', NOW), undefined)
  assert.equal(annotationTime({ metadata: { annotations: { seen: iso('01:00') } } }, 'seen', NOW), at('01:00'))
})
