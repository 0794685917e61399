import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CellClocks, certainSkewMs } from './cell-clock.ts'

const EPOCH = 1_800_000_000_000
const dateOf = (ms: number): string => new Date(ms).toUTCString()

test('what an API server says now is within the bounds, whatever its clock, its answers and ours took', () => {
  const answers = fc.array(
    fc.record({
      server: fc.constantFrom('a', 'b'),
      thereMs: fc.integer({ min: 0, max: 4_000 }),
      backMs: fc.integer({ min: 0, max: 4_000 }),
      pauseMs: fc.integer({ min: 0, max: 60_000 }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  const skew = fc.integer({ min: -30_000, max: 30_000 })
  fc.assert(
    fc.property(answers, skew, skew, (given, a, b) => {
      const skews = { a, b }
      const clocks = new CellClocks(0)
      const heard = new Set<'a' | 'b'>()
      let nowMs = 5_000
      for (const { server, thereMs, backMs, pauseMs } of given) {
        const sentMs = nowMs
        const date = dateOf(EPOCH + sentMs + thereMs + skews[server])
        nowMs += thereMs + backMs
        clocks.observe('east', server, date, sentMs, nowMs)
        heard.add(server)
        for (const time = clocks.at('east', nowMs + pauseMs); time !== undefined; ) {
          for (const each of server === 'a' ? (['a'] as const) : (['b'] as const)) {
            const truth = EPOCH + nowMs + pauseMs + skews[each]
            assert.ok(time.earliestMs <= truth && truth <= time.latestMs)
          }
          break
        }
        nowMs += pauseMs
      }
    }),
  )
})

test('an old measurement says nothing any more; one of another cell, of no date, or of a server that is gone neither', () => {
  const clocks = new CellClocks(2_000)
  clocks.observe('east', 'a', dateOf(EPOCH), 0, 100)
  clocks.observe('east', 'b', 'yesterday', 0, 100)
  clocks.observe('east', 'b', undefined, 0, 100)
  assert.deepEqual(clocks.at('east', 100), { earliestMs: EPOCH - 2_000, latestMs: EPOCH + 1_000 + 100 + 2_000 })
  assert.equal(clocks.at('west', 100), undefined)
  assert.equal(clocks.at('east', 700_000), undefined)
  clocks.keepOnly(new Map([['east', new Set(['b'])]]))
  assert.equal(clocks.at('east', 100), undefined)
})

test('a clock that is set, and servers behind one address: whatever was said in ten minutes is possible', () => {
  const clocks = new CellClocks(0)
  clocks.observe('east', 'a', dateOf(EPOCH), 0, 0)
  clocks.observe('east', 'a', dateOf(EPOCH + 31_000), 1_000, 1_000)
  assert.deepEqual(clocks.at('east', 1_000), { earliestMs: EPOCH + 1_000, latestMs: EPOCH + 32_000 })
  for (let i = 2; i < 602; i++) clocks.observe('east', 'a', dateOf(EPOCH + 30_000 + i * 1_000), i * 1_000, i * 1_000)
  assert.deepEqual(clocks.at('east', 601_000), { earliestMs: EPOCH + 601_000, latestMs: EPOCH + 632_000 })
  // The skew shown to people is the last one measured.
  assert.deepEqual(clocks.skew('east', EPOCH + 601_000, 601_000), { leastMs: 30_000, mostMs: 31_000 })
  for (let i = 602; i < 700; i++) clocks.observe('east', 'a', dateOf(EPOCH + 30_000 + i * 1_000), i * 1_000, i * 1_000)
  assert.deepEqual(clocks.at('east', 700_000), { earliestMs: EPOCH + 730_000, latestMs: EPOCH + 731_000 })
})

test('a slow answer counts as long as there is no better one', () => {
  const clocks = new CellClocks(0)
  clocks.observe('east', 'a', dateOf(EPOCH + 10_000), 0, 10_000)
  assert.deepEqual(clocks.at('east', 10_000), { earliestMs: EPOCH + 10_000, latestMs: EPOCH + 21_000 })
  clocks.observe('east', 'a', dateOf(EPOCH + 11_000), 11_000, 11_000)
  clocks.observe('east', 'a', dateOf(EPOCH + 11_000), 11_000, 21_000)
  assert.deepEqual(clocks.at('east', 21_000), { earliestMs: EPOCH + 21_000, latestMs: EPOCH + 22_000 })
})

test('what is said of a skew is certain', () => {
  const skew = (leastMs: number, mostMs: number): number => certainSkewMs({ leastMs, mostMs })
  assert.deepEqual(
    [skew(-400, 700), skew(300, 1_400), skew(1_500, 2_700), skew(-31_000, -29_000)],
    [0, 0, 2_100, -30_000],
  )
  assert.equal(certainSkewMs(undefined), 0)
})

test('servers of one cell that are no more are forgotten, and other cells are left alone', () => {
  const clocks = new CellClocks(0)
  for (const [cell, server] of [
    ['a', 'https://1'],
    ['a', 'https://2'],
    ['b', 'https://3'],
  ] as const) {
    clocks.observe(cell, server, new Date(0).toUTCString(), 0, server === 'https://2' ? 2_000 : 0)
  }
  const both = clocks.at('a', 0)
  clocks.keepServers('a', new Set(['https://1']))
  assert.notDeepEqual(clocks.at('a', 0), both)
  clocks.keepServers('a', new Set())
  assert.equal(clocks.at('a', 0), undefined)
  assert.notEqual(clocks.at('b', 0), undefined)
})
