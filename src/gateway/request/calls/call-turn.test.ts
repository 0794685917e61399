import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallTurns } from '../../core/limits/call-turns.ts'
import { type LiveCluster, OwnCallLimits } from '../../state/clusters.ts'
import type { Gateway } from '../exchange/gateway.ts'
import { takeTurn } from './call-turn.ts'

test('a higher clientConfig.qps counts at once for the next call that waits, and not when the old rate would have', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const client = { qps: 0.2, burst: 1 }
  const gw = { clock: { monotonic: () => nowMs } } as unknown as Gateway
  const live = { compiled: { name: 'prod', client }, turns: new OwnCallLimits() } as unknown as LiveCluster
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

test('who gets no turn is told which limit it is: calls under way, also where clientConfig.qps is set', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const refusedFor = async (turns: CallTurns, client: { qps: number; burst: number }): Promise<string> => {
    const gw = { clock: { monotonic: () => 0 }, random: () => 0 } as unknown as Gateway
    const live = { compiled: { name: 'prod', client }, turns: { of: () => turns } } as unknown as LiveCluster
    const charge = { source: 'address 192.0.2.1', weight: 1, known: false }
    await takeTurn(gw, live, 'token-review', charge, 10_000)
    const refused = takeTurn(gw, live, 'token-review', charge, 10_000).then(
      () => 'granted',
      (error: unknown) => String(error),
    )
    t.mock.timers.tick(10_000)
    return refused
  }
  const start = /too many token reviews for cluster "prod" because of address 192.0.2.1: /
  const busy = await refusedFor(new CallTurns(2), { qps: 1000, burst: 1000 })
  assert.match(busy, start)
  assert.match(busy, /: at most 2 may be in flight, shared fairly among callers; retry in 1 s$/)
  const slow = await refusedFor(new CallTurns(), { qps: 0.2, burst: 1 })
  assert.match(slow, start)
  assert.match(slow, /: the rate of spec.clientConfig.qps is used up, shared fairly among callers; retry in \d+ s$/)
})
