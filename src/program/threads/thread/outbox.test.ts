import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ThreadOutbox } from './outbox.ts'

const MIB = 1024 * 1024

test('log calls count as long as their texts are: what a peer sends cannot fill the memory by way of the log', () => {
  let sent = 0
  const outbox = new ThreadOutbox(({ log }) => (sent += log.length), new Int32Array(new SharedArrayBuffer(4)), 'info')
  for (let i = 0; i < 20; i++) {
    outbox.log.warn('upstream answers nonsense', { error: 'x'.repeat(MIB) })
    outbox.log.warn('upstream answers nonsense', { error: new Error('y'.repeat(MIB)) })
  }
  outbox.flush()
  assert.ok(sent >= 2 && sent <= 8, `${sent} of 40 calls, 40 MiB, were sent on`)
})

test('a cluster that requests wait for is reported once a turn, with what else there is', async () => {
  const sent: (readonly string[])[] = []
  const outbox = new ThreadOutbox(({ awaited }) => sent.push(awaited), new Int32Array(new SharedArrayBuffer(4)), 'info')
  for (const cluster of ['a', 'b', 'a']) outbox.awaitsCheck(cluster)
  await new Promise((resolve) => setImmediate(resolve))
  outbox.flush()
  outbox.awaitsCheck('a')
  outbox.flush()
  assert.deepEqual(sent, [['a', 'b'], ['a']])
})
