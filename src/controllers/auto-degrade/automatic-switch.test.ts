import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAutoDegrade } from '../../core/incident/auto-degrade.ts'
import { readSwitch, slimObject } from './automatic-switch.ts'

test('a status that somebody else has filled with anything does not stop the look at all clusters', () => {
  const status = { phase: 'Degraded', reason: 'x', since: '2026-01-01T00:00:00Z', action: 'Entered', mode: 'Limited' }
  for (const one of [null, 1, 'x', [], [null], {}, undefined]) {
    for (const auto of [one, { ...status, causes: one }, { ...status, phase: one }, { ...status, reason: one }]) {
      const object = { metadata: { name: 'prod' }, spec: { degrade: { auto: {} } }, status: { degrade: { auto } } }
      const { reason } = startAutoDegrade(readSwitch(slimObject(object)).status, 0)
      assert.equal(typeof reason, 'string')
    }
  }
})
