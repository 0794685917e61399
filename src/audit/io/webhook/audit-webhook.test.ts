import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeAccess } from '../../../kube/io/config-access.ts'
import { AuditWebhook, type AuditWebhookOptions } from './audit-webhook.ts'

const MIB = 1024 * 1024

/** Attempts hang until they are released, and then fail. */
function hanging(given: Partial<AuditWebhookOptions>): { webhook: AuditWebhook; attempts: () => number; fail(): void } {
  let attempts = 0
  const released = Promise.withResolvers<KubeAccess>()
  const access = {
    server: 'https://receiver',
    access: () => {
      attempts++
      return released.promise
    },
    renew: () => false,
  }
  const quiet = (): void => undefined
  const webhook = new AuditWebhook({
    access,
    initialBackoffMs: 1,
    bufferSize: 10_000,
    maxBatchSize: 400,
    maxWaitMs: 1,
    throttle: undefined,
    maxEventBytes: 0,
    clock: { now: () => 0, monotonic: () => 0 },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    random: () => 0,
    ...given,
  })
  return { webhook, attempts: () => attempts, fail: () => released.reject(new Error('away')) }
}

/** Yields to the event loop, so that pending sends start. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('events are bounded in memory, those on their way included', async () => {
  const { webhook, fail } = hanging({ maxBatchSize: 1, flushMs: 1 })
  const line = 'x'.repeat(MIB)
  for (let i = 0; i < 50; i++) webhook.write(line)
  await turns()
  for (let i = 0; i < 50; i++) webhook.write(line)
  assert.equal(webhook.counts['buffer-full'], 100 - 64)
  fail()
  await webhook.close()
  assert.deepEqual(webhook.counts, { sent: 0, 'buffer-full': 36, 'too-large': 0, failed: 64 })
})

test('the stop waits neither for a receiver nor for credentials that hang, and counts what is lost', async () => {
  const { webhook, attempts } = hanging({ maxBatchSize: 2, flushMs: 1 })
  for (let i = 0; i < 100; i++) webhook.write('{}')
  await turns()
  await webhook.close()
  webhook.write('{}')
  assert.equal(attempts(), 16)
  // What hangs is neither sent nor known to be lost.
  assert.equal(webhook.counts.failed, 100 - 16 * 2 + 1)
})

test('a batch is split where it would be larger than it may be, and holds one event at least', async () => {
  const { webhook, attempts, fail } = hanging({})
  for (const size of [4.5, 4.5, 4.5, 9.95]) webhook.write('x'.repeat(size * MIB))
  const closed = webhook.close()
  await turns()
  assert.equal(attempts(), 3)
  fail()
  await closed
})
