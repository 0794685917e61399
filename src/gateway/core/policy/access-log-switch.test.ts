import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogMode } from '../../api/upstream-cluster/upstream-cluster.ts'
import { accessLogEnabled } from './access-log-switch.ts'

// Cluster, policy, verdict: as KubeGateway's isLogEnabled, extended to all nine cells.
const TABLE: [LogMode, LogMode, boolean][] = [
  ['off', 'on', false],
  ['on', 'off', false],
  ['off', 'off', false],
  ['off', '', false],
  ['', 'off', false],
  ['', '', false],
  ['on', '', true],
  ['', 'on', true],
  ['on', 'on', true],
]

test('the switches of cluster and policy', () => {
  for (const [cluster, policy, on] of TABLE)
    assert.equal(accessLogEnabled(true, cluster, policy), on, `${cluster},${policy}`)
})

test('the switch of the gateway comes first', () => {
  for (const [cluster, policy] of TABLE) assert.equal(accessLogEnabled(false, cluster, policy), false)
})
