// The autoscaler's own tables (test/data/clusterstate.json).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ExponentialBackoff } from './cluster-state.ts'

const CASES = JSON.parse(readFileSync(new URL('../../../test/data/clusterstate.json', import.meta.url), 'utf8'))

for (const { name, initialMs, maxMs, resetMs, ops } of [...CASES.backoff.cases, ...CASES.backoff_derived.cases]) {
  test(`backoff: ${name}`, () => {
    const backoff = new ExponentialBackoff<string>({ initialMs, maxMs, resetMs })
    for (const { op, key, at, error, want, wantUntil, wantKeys } of ops) {
      if (op === 'backoff') {
        const untilMs = backoff.fail(key, error, at)
        if (wantUntil !== undefined) assert.equal(untilMs, wantUntil)
      } else if (op === 'status') assert.equal(backoff.status(key, at)?.error ?? null, want)
      else if (op === 'remove') backoff.remove(key)
      else {
        backoff.removeStale(at)
        assert.equal(backoff.size, wantKeys)
      }
    }
  })
}

test('a restored entry goes on as if there had been no restart', () => {
  const options = { initialMs: 100, maxMs: 1000, resetMs: 10_000 }
  const before = new ExponentialBackoff<string>(options)
  before.fail('a', 'x', 0)
  const after = new ExponentialBackoff<string>(options)
  after.restore('a', before.entry('a') ?? assert.fail())
  assert.deepEqual(after.status('a', 50), { error: 'x', untilMs: 100 })
  assert.equal(after.fail('a', 'y', 200), 400, 'the second in a row')
  assert.equal(after.entry('b'), undefined)
})
