// Shared limits: refused where replicas cannot share them, with a fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldErrors } from '../../../kit/api/validation/field-errors.ts'
import { checkFlowControlSchemas } from './flow-control-checks.ts'
import type { FlowControlSchema } from './upstream-cluster.ts'

const LIMIT = { qps: 5, burst: 10 }
const SHARED: FlowControlSchema = { name: 'a', strategy: 'globalCount', tokenBucket: LIMIT, globalTokenBucket: LIMIT }

function problems(schema: FlowControlSchema, globalLimits: boolean): readonly string[] {
  const out = new FieldErrors()
  checkFlowControlSchemas([schema], 's', out, globalLimits)
  return out.found.map(({ severity, path, message, fix }) => `${severity} ${path} ${message}; ${fix}`)
}

test('with Redis both kinds and both strategies are taken', () => {
  const max = { max: 5 }
  assert.deepEqual(problems(SHARED, true), [])
  assert.deepEqual(problems({ ...SHARED, strategy: 'globalAllocate' }, true), [])
  const slots = {
    name: 'a',
    strategy: 'globalCount',
    maxRequestsInflight: max,
    globalMaxRequestsInflight: max,
  } as const
  assert.deepEqual(problems(slots, true), [])
  assert.equal(problems(slots, false).length, 1)
})

test('without Redis the local limits are in force, and a warning says so', () => {
  const [first = '', ...others] = problems(SHARED, false)
  assert.match(
    first,
    /^warning s\[0\]\.globalTokenBucket .*needs Redis.* in force is tokenBucket, in every replica; start the gateway with --redis-url/,
  )
  assert.deepEqual(others, [])
})

test('without a strategy that shares, it is a warning with Redis and without', () => {
  for (const strategy of ['', 'local'] as const) {
    for (const redis of [true, false]) {
      const [first = '', ...others] = problems({ ...SHARED, strategy }, redis)
      assert.match(first, /^warning s\[0\]\.globalTokenBucket has no effect/)
      assert.deepEqual(others, [])
    }
  }
})

test('replicas share no limit of each user', () => {
  const [first = '', ...others] = problems({ ...SHARED, perUser: true }, true)
  assert.match(first, /^error s\[0\]\.perUser /)
  assert.deepEqual(others, [])
})
