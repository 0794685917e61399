import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLoginAttempts } from './login-attempts.ts'

test('addresses of one IPv6 network are one client', async () => {
  const attempts = createLoginAttempts()
  for (let i = 1; i <= 5; i++) await attempts.failed(`2001:db8::${i}`)
  assert.ok((await attempts.waitSeconds('2001:db8::ffff')) > 0)
  assert.equal(await attempts.waitSeconds('2001:db8:0:1::1'), 0)
  assert.equal(await attempts.waitSeconds('10.0.0.1'), 0)
})
