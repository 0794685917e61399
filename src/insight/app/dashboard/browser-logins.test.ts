// Failed logins: per address, and in total.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createLoginAttempts } from './browser-logins.ts'

type Attempts = ReturnType<typeof createLoginAttempts>

/** The required wait; an allowed attempt succeeds. */
async function waitSeconds(attempts: Attempts, address: string): Promise<number> {
  const wait = await attempts.begin(address)
  if (wait === 0) await attempts.ended(address, false)
  return wait
}

async function failOnce(attempts: Attempts, address: string): Promise<void> {
  if ((await attempts.begin(address)) === 0) await attempts.ended(address, true)
}

async function fail(attempts: Attempts, address: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await failOnce(attempts, address)
}

test('five failures of an address make it wait for the rest of a minute, and no other address', async () => {
  const attempts = createLoginAttempts()
  assert.equal(await waitSeconds(attempts, '10.0.0.1'), 0)
  await fail(attempts, '10.0.0.1', 4)
  assert.equal(await waitSeconds(attempts, '10.0.0.1'), 0)
  await failOnce(attempts, '10.0.0.1')
  const wait = await waitSeconds(attempts, '10.0.0.1')
  assert.ok(wait > 0 && wait <= 60, `${wait}`)
  assert.equal(await waitSeconds(attempts, '10.0.0.2'), 0)
  // Further failures have no effect.
  await fail(attempts, '10.0.0.1', 10)
  assert.ok((await waitSeconds(attempts, '10.0.0.1')) <= 60)
})

test('a hundred failures make all addresses wait', async () => {
  const attempts = createLoginAttempts()
  for (let i = 0; i < 99; i++) await failOnce(attempts, `10.0.1.${i}`)
  assert.equal(await waitSeconds(attempts, '10.0.2.1'), 0)
  await failOnce(attempts, '10.0.1.99')
  assert.ok((await waitSeconds(attempts, '10.0.2.1')) > 0)
})

test('after a minute an address may try again', async () => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1_000_000 })
  try {
    const attempts = createLoginAttempts()
    await fail(attempts, '10.0.0.1', 5)
    assert.ok((await waitSeconds(attempts, '10.0.0.1')) > 0)
    mock.timers.tick(61_000)
    assert.equal(await waitSeconds(attempts, '10.0.0.1'), 0)
  } finally {
    mock.timers.reset()
  }
})

test('addresses of one IPv6 network are one client', async () => {
  const attempts = createLoginAttempts()
  for (let i = 1; i <= 5; i++) await failOnce(attempts, `2001:db8::${i}`)
  assert.ok((await waitSeconds(attempts, '2001:db8::ffff')) > 0)
  assert.equal(await waitSeconds(attempts, '2001:db8:0:1::1'), 0)
  assert.equal(await waitSeconds(attempts, '10.0.0.1'), 0)
})

test('a hundred attempts of an address at once do not pass the count', async () => {
  const attempts = createLoginAttempts()
  const waits = await Promise.all(Array.from({ length: 100 }, () => attempts.begin('10.0.0.1')))
  assert.equal(waits.filter((wait) => wait === 0).length, 5)
  for (let i = 0; i < 5; i++) await attempts.ended('10.0.0.1', false)
  assert.equal(await waitSeconds(attempts, '10.0.0.1'), 0, 'none has failed')
})

test('an address that is blocked for failures at other ports waits here, too, and no other address', async () => {
  const waits: Record<string, number> = { 'address 10.0.0.1': 7 }
  const attempts = createLoginAttempts({ waitSeconds: (source) => waits[source] ?? 0 })
  assert.equal(await waitSeconds(attempts, '10.0.0.1'), 7)
  assert.equal(await waitSeconds(attempts, '10.0.0.2'), 0)
  waits['address 10.0.0.1'] = 0
  assert.equal(await waitSeconds(attempts, '10.0.0.1'), 0)
})
