import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageOf, humanDuration, parseRfc3339 } from './ages.ts'

const SECOND = 1000

const MINUTE = 60 * SECOND

const HOUR = 60 * MINUTE

const DAY = 24 * HOUR

const YEAR = 365 * DAY

// apimachinery/pkg/util/duration/duration_test.go, TestHumanDuration and TestHumanDurationBoundaries.
const cases: readonly [ms: number, text: string][] = [
  [SECOND, '1s'],
  [70 * SECOND, '70s'],
  [190 * SECOND, '3m10s'],
  [70 * MINUTE, '70m'],
  [47 * HOUR, '47h'],
  [49 * HOUR, '2d1h'],
  [(8 * 24 + 2) * HOUR, '8d'],
  [367 * DAY, '367d'],
  [(365 * 2 + 25) * DAY, '2y25d'],
  [(365 * 8 + 2) * DAY, '8y'],
  [-2 * SECOND, '<invalid>'],
  [-2 * SECOND + 1, '0s'],
  [0, '0s'],
  [SECOND - 1, '0s'],
  [2 * MINUTE - 1, '119s'],
  [2 * MINUTE, '2m'],
  [2 * MINUTE + SECOND, '2m1s'],
  [10 * MINUTE - 1, '9m59s'],
  [10 * MINUTE, '10m'],
  [3 * HOUR - 1, '179m'],
  [3 * HOUR, '3h'],
  [3 * HOUR + MINUTE, '3h1m'],
  [8 * HOUR - 1, '7h59m'],
  [8 * HOUR, '8h'],
  [2 * DAY - 1, '47h'],
  [2 * DAY, '2d'],
  [2 * DAY + HOUR, '2d1h'],
  [8 * DAY - 1, '7d23h'],
  [8 * DAY, '8d'],
  [2 * YEAR - 1, '729d'],
  [2 * YEAR, '2y'],
  [2 * YEAR + DAY, '2y1d'],
  [8 * YEAR - 1, '7y364d'],
  [8 * YEAR, '8y'],
]

for (const [ms, text] of cases) test(`${ms} ms is ${text}`, () => assert.equal(humanDuration(ms), text))

test('an invalid time is shown as such', () => {
  const now = Date.parse('2026-01-01T00:01:00Z')
  assert.equal(ageOf('2026-01-01T00:00:00Z', now), '60s')
  assert.equal(ageOf('2026-01-01T02:00:00+02:00', now), '60s')
  assert.equal(ageOf('2026-01-01T00:00:00.123456Z', now), '59s')
  assert.equal(ageOf(undefined, now), '<unknown>')
  assert.equal(ageOf(null, now), '<unknown>')
  assert.equal(ageOf('yesterday', now), '<invalid>')
  assert.equal(ageOf('2026-01-01', now), '<invalid>')
  assert.equal(ageOf('2026-13-01T00:00:00Z', now), '<invalid>')
  assert.equal(parseRfc3339(5), undefined)
})
