import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, parseDuration } from './duration.ts'

const GOOD: [string, number][] = [
  ['30s', 30_000],
  ['1m30s', 90_000],
  ['500ms', 500],
  ['1.5h', 5_400_000],
  ['.5s', 500],
  ['1.s', 1000],
  ['0', 0],
  ['+5s', 5000],
  ['-1m', -60_000],
  ['1h0m0s', 3_600_000],
  ['250us', 0.25],
  ['250µs', 0.25],
  ['1000ns', 0.001],
]

test('durations as Go reads them', () => {
  for (const [text, ms] of GOOD) assert.equal(parseDuration(text), ms, text)
})

test('what Go does not parse is not a duration', () => {
  for (const text of [
    '',
    '30',
    '1d',
    's',
    '1 s',
    '1s ',
    '1m30',
    '1.2.3s',
    '--1s',
    'Infinity',
    '1e3s',
    '1S',
    '.s',
    '-',
  ]) {
    assert.equal(parseDuration(text), undefined, JSON.stringify(text))
  }
})

test('a formatted duration reads back as itself', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), (ms) => {
      assert.equal(parseDuration(formatDuration(ms)), ms)
    }),
  )
  assert.equal(formatDuration(90_000), '1m30s')
  assert.equal(formatDuration(86_400_000), '24h')
})
