import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SharedResource } from '../../../kit/core/shares/shared-resource.ts'
import { CONNECTION, MEMORY_LEVERS, type MemorySettings, memoryCeiling, REQUEST, threadHeap, WATCH } from './ceiling.ts'
import { fitMemory, LEAST } from './fit.ts'

const MIB = 1024 * 1024

const settings: fc.Arbitrary<MemorySettings> = fc.record({
  threads: fc.integer({ min: 1, max: 64 }),
  maxConnections: fc.integer({ min: 1, max: 1_000_000 }),
  maxRequestsInflight: fc.integer({ min: 1, max: 1_000_000 }),
  maxWatches: fc.integer({ min: 1, max: 1_000_000 }),
  maxBufferedBytes: fc.integer({ min: 1, max: 2 ** 40 }),
  maxFollowedBytes: fc.integer({ min: 0, max: 2 ** 40 }),
  logs: fc.integer({ min: 0, max: 4 }),
  auditBodies: fc.boolean(),
  auditWebhook: fc.boolean(),
  tracing: fc.boolean(),
  top: fc.boolean(),
  embedded: fc.boolean(),
  webhooks: fc.integer({ min: 0, max: 2 }),
  maxControlConnections: fc.integer({ min: 16, max: 100_000 }),
  adminTlsPorts: fc.integer({ min: 0, max: 2 }),
})

const SMALL: MemorySettings = {
  threads: 1,
  maxConnections: 2048,
  maxRequestsInflight: 1024,
  maxWatches: 8192,
  maxBufferedBytes: 64 * MIB,
  maxFollowedBytes: 0,
  logs: 2,
  auditBodies: false,
  auditWebhook: false,
  tracing: false,
  top: true,
  embedded: false,
  webhooks: 0,
  maxControlConnections: 512,
  adminTlsPorts: 0,
}

test('the ceiling is the sum of its rows, the largest first, in whole bytes', () => {
  fc.assert(
    fc.property(settings, (given) => {
      const { bytes, rows } = memoryCeiling(given)
      assert.equal(
        rows.reduce((sum, row) => sum + row.bytes, 0),
        bytes,
      )
      for (const [i, row] of rows.entries()) {
        assert.ok(Number.isSafeInteger(row.bytes) && row.bytes > 0, row.what)
        assert.ok(row.heap <= row.bytes, row.what)
        assert.ok(row.bytes <= (rows[i - 1]?.bytes ?? Number.POSITIVE_INFINITY), row.what)
      }
      assert.equal(new Set(rows.map(({ what }) => what)).size, rows.length)
    }),
  )
})

test('more of anything never lowers it, and what a lever lowers has a row that names it', () => {
  fc.assert(
    fc.property(
      settings,
      fc.constantFrom(...MEMORY_LEVERS, 'threads', 'logs', 'webhooks', 'adminTlsPorts' as const),
      (given, name) => {
        const before = memoryCeiling(given)
        const after = memoryCeiling({ ...given, [name]: given[name] + 1 })
        assert.ok(after.bytes > before.bytes)
      },
    ),
  )
  for (const lever of MEMORY_LEVERS) {
    assert.ok(
      memoryCeiling(SMALL).rows.some((row) => row.lever === lever),
      lever,
    )
  }
})

test('each switch adds what it is about', () => {
  for (const name of ['auditBodies', 'auditWebhook', 'tracing', 'embedded'] as const) {
    assert.ok(memoryCeiling({ ...SMALL, [name]: true }).bytes > memoryCeiling(SMALL).bytes, name)
  }
  for (const some of [{ embedded: true }, { webhooks: 1 }]) {
    const few = memoryCeiling({ ...SMALL, ...some }).bytes
    assert.ok(memoryCeiling({ ...SMALL, ...some, maxControlConnections: 1024 }).bytes > few)
  }
  // There is no such port.
  assert.equal(memoryCeiling({ ...SMALL, maxControlConnections: 1024 }).bytes, memoryCeiling(SMALL).bytes)
  assert.ok(memoryCeiling({ ...SMALL, top: false }).bytes < memoryCeiling(SMALL).bytes)
})

test('memory for followed objects counts if it was set, and the heap of each thread has room for its part', () => {
  const set = { ...SMALL, threads: 2, maxFollowedBytes: 1024 * MIB }
  const more = memoryCeiling(set).bytes - memoryCeiling({ ...set, maxFollowedBytes: 0 }).bytes
  assert.ok(more >= 1024 * MIB && more <= 1.2 * 1024 * MIB, String(more))
  const heap = (followedBytes: number): number => threadHeap(SMALL, followedBytes).oldMiB
  assert.equal(heap(64 * MIB), heap(0))
  assert.ok(heap(1024 * MIB) - heap(0) >= 1024)
  assert.ok(
    threadHeap({ ...SMALL, threads: 2 }, 1024 * MIB).oldMiB - threadHeap({ ...SMALL, threads: 2 }, 0).oldMiB >= 512,
  )
})

test('one more connection costs what was measured, and the garbage beside it', () => {
  const one = memoryCeiling({ ...SMALL, maxConnections: 2049 }).bytes - memoryCeiling(SMALL).bytes
  assert.ok(one >= CONNECTION && one <= 1.5 * CONNECTION, String(one))
})

test('what users and those without a name may hold beyond the setting is counted', () => {
  for (const [lever, what, each] of [
    ['maxRequestsInflight', 'requests in flight', REQUEST],
    ['maxWatches', 'watches', WATCH],
  ] as const) {
    const size = 8192
    const { known, unknown } = new SharedResource('requests-inflight', size)
    const most = known.capacity + known.reserve + unknown.capacity + unknown.reserve
    const row = memoryCeiling({ ...SMALL, [lever]: size }).rows.find((one) => one.what === what)
    assert.equal(row?.bytes, most * each)
  }
})

test('where it fits, nothing is lowered', () => {
  const { bytes } = memoryCeiling(SMALL)
  for (const limit of [bytes, bytes + 1]) {
    const fitted = fitMemory(SMALL, new Set(MEMORY_LEVERS), limit)
    assert.deepEqual(fitted, { settings: SMALL, ceiling: memoryCeiling(SMALL), lowered: [] })
  }
})

test('defaults are lowered so that the ceiling fits, what was set stays', () => {
  fc.assert(
    fc.property(
      settings,
      fc.subarray([...MEMORY_LEVERS]),
      fc.integer({ min: 1, max: 2 ** 42 }),
      (given, defaults, limit) => {
        const fitted = fitMemory(given, new Set(defaults), limit)
        assert.deepEqual(fitted.ceiling, memoryCeiling(fitted.settings))
        for (const lever of MEMORY_LEVERS) {
          const [before, now] = [given[lever], fitted.settings[lever]]
          if (!defaults.includes(lever)) assert.equal(now, before)
          assert.ok(now <= before)
          assert.ok(now >= Math.min(before, LEAST[lever]), lever)
          assert.equal(
            fitted.lowered.some(({ setting }) => setting === lever),
            now < before,
          )
        }
        const least = Object.fromEntries(
          MEMORY_LEVERS.map((lever) => [
            lever,
            defaults.includes(lever) ? Math.min(given[lever], LEAST[lever]) : given[lever],
          ]),
        )
        // It exceeds the limit only if even the minimum of all defaults would.
        if (fitted.ceiling.bytes > limit) assert.ok(memoryCeiling({ ...given, ...least }).bytes > limit)
      },
    ),
  )
})

test('what there is room for is used', () => {
  const limit = memoryCeiling(SMALL).bytes - 100 * MIB
  const { ceiling } = fitMemory(SMALL, new Set(MEMORY_LEVERS), limit)
  assert.ok(ceiling.bytes <= limit && ceiling.bytes > limit - MIB, String(limit - ceiling.bytes))
})
