import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAutoDegrade } from '../../core/auto-degrade.ts'
import { isUrgent, statusPatch } from './recovery-writer.ts'
import { readSwitchedCluster, slimCluster } from './switched-cluster.ts'

const RECOVERY = { step: 'Freeze', since: '2026-01-01T00:00:00Z', startedFrom: 'Freeze', checks: [], waitingFor: '' }

test('arbitrary values in a status stop neither the watch of all clusters nor the look at them', () => {
  const anything: readonly unknown[] = [null, 1, 'x', [], [null], [1], {}, { a: null }]
  const statuses: readonly unknown[] = [
    ...anything,
    ...anything.map((gateways) => ({ gateways })),
    ...anything.map((one) => ({ gateways: [{ name: one, refusedDisruptive: one }] })),
    ...anything.map((degrade) => ({ degrade })),
    ...anything.map((recovery) => ({ degrade: { recovery } })),
    ...anything.map((checks) => ({ degrade: { recovery: { ...RECOVERY, checks } } })),
    ...anything.map((since) => ({ degrade: { recovery: { ...RECOVERY, since } } })),
    ...anything.map((readyNodesBefore) => ({ degrade: { readyNodesBefore } })),
  ]
  for (const status of statuses) {
    const seen = readSwitchedCluster(slimCluster({ metadata: { name: 'prod' }, spec: {}, status }))
    isUrgent(seen.status, { recovery: RECOVERY })
    assert.notEqual(statusPatch(seen.status, { readyNodesBefore: 77, recovery: RECOVERY }), undefined)
    for (const count of seen.refused.values()) assert.equal(typeof count, 'number')
    assert.match(typeof seen.status.readyNodesBefore, /^(number|undefined)$/)
  }
})

test('arbitrary values in status.degrade.auto do not stop the look at all clusters', () => {
  const status = { phase: 'Degraded', reason: 'x', since: '2026-01-01T00:00:00Z', action: 'Entered', mode: 'Limited' }
  for (const one of [null, 1, 'x', [], [null], {}, undefined]) {
    for (const auto of [one, { ...status, causes: one }, { ...status, phase: one }, { ...status, reason: one }]) {
      const object = { metadata: { name: 'prod' }, spec: { degrade: { auto: {} } }, status: { degrade: { auto } } }
      const { reason } = startAutoDegrade(readSwitchedCluster(slimCluster(object)).auto, 0)
      assert.equal(typeof reason, 'string')
    }
  }
})

test('a mode that this version does not know counts as Freeze until it expires, and is nothing to take a step from', () => {
  const degrade = { mode: 'Quarantine', expiresAt: '2026-01-01T00:00:00Z' }
  const { mode, modeAt } = readSwitchedCluster(slimCluster({ metadata: { name: 'prod' }, spec: { degrade } }))
  const expiresAtMs = Date.parse(degrade.expiresAt)
  assert.deepEqual([mode, modeAt(expiresAtMs - 1), modeAt(expiresAtMs)], [undefined, 'Freeze', 'Off'])
})
