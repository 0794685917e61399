import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallTurns } from '../../core/limits/call-turns.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { Gateway } from '../exchange/gateway.ts'
import { takeTurn } from './call-turn.ts'

test('a higher clientConfig.qps counts at once for the next call that waits, and not when the old rate would have', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const client = { qps: 0.2, burst: 1 }
  const gw = { clock: { monotonic: () => nowMs } } as unknown as Gateway
  const live = {
    compiled: { name: 'prod', client },
    turns: { 'access-review': new CallTurns() },
  } as unknown as LiveCluster
  let granted = 0
  const ask = (): void => {
    takeTurn(gw, live, 'access-review', { source: 'user "alice"', weight: 1, known: true }, 10_000).then(
      () => granted++,
      () => undefined,
    )
  }
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms
    t.mock.timers.tick(ms)
    for (let i = 0; i < 3; i++) await Promise.resolve()
  }
  ask()
  ask()
  await pass(0)
  assert.equal(granted, 1, 'the other one in five seconds')
  client.qps = 2
  ask()
  await pass(500)
  assert.equal(granted, 2)
  await pass(500)
  assert.equal(granted, 3)
})
