import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AWAY_RIGHTS_MS, KnownRights, type RightNews } from './known-rights.ts'

test('what was allowed counts for a while, and no longer once it was denied', () => {
  const told: RightNews[] = []
  const known = new KnownRights((news) => told.push(news))
  assert.equal(known.wasAllowed('q', 0), false)
  known.allowed('q', 0)
  assert.equal(known.wasAllowed('q', AWAY_RIGHTS_MS), true)
  assert.equal(known.wasAllowed('q', AWAY_RIGHTS_MS + 1), false)
  known.allowed('q', 1_000)
  known.denied('q')
  known.denied('never allowed')
  assert.equal(known.wasAllowed('q', 1_000), false)
  assert.deepEqual(told, [
    { question: 'q', isAllowed: true },
    { question: 'q', isAllowed: false },
  ])
})

test('another thread knows what is told to it', () => {
  const other = new KnownRights(() => assert.fail('it is told, and tells nothing'))
  other.onNews({ question: 'q', isAllowed: true }, 5)
  assert.equal(other.wasAllowed('q', 5), true)
  other.onNews({ question: 'q', isAllowed: false }, 6)
  assert.equal(other.wasAllowed('q', 6), false)
})
