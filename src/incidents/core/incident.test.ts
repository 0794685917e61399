import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileAutoDegrade } from '../../gateway/core/cluster/compile-settings.ts'
import { nodesText, observeNodes } from './auto-degrade.ts'
import { type HysteresisState, inactive, type Observation, observe } from './hysteresis.ts'
import { answersText, observeAnswers } from './upstream-health.ts'

/** With the defaults of the schema. */
const AUTO = compileAutoDegrade({ nodes: {}, upstream: {} })
const NODES = AUTO.nodes ?? assert.fail()
const UPSTREAM = AUTO.upstream ?? assert.fail()

const OPTIONS = { enterAfterMs: 30, exitAfterMs: 120 }

function run(observations: readonly (readonly [number, Observation])[]): HysteresisState {
  let state = inactive(0)
  for (const [nowMs, observation] of observations) state = observe(state, observation, OPTIONS, nowMs)
  return state
}

test('a condition begins after it was bad without a break, and ends after it was good without one', () => {
  assert.equal(
    run([
      [0, 'bad'],
      [29, 'bad'],
    ]).active,
    false,
  )
  assert.deepEqual(
    run([
      [0, 'bad'],
      [30, 'bad'],
    ]),
    { active: true, sinceMs: 30, changingSinceMs: undefined },
  )
  for (const other of ['between', 'good', 'unknown'] as const) {
    assert.equal(
      run([
        [0, 'bad'],
        [20, other],
        [30, 'bad'],
        [59, 'bad'],
      ]).active,
      false,
      other,
    )
    assert.equal(
      run([
        [0, 'bad'],
        [30, 'bad'],
        [40, 'good'],
        [100, other === 'good' ? 'bad' : other],
        [159, 'good'],
        [278, 'good'],
      ]).active,
      true,
    )
  }
  assert.equal(
    run([
      [0, 'bad'],
      [30, 'bad'],
      [40, 'good'],
      [160, 'good'],
    ]).active,
    false,
  )
})

test('unknown never changes anything, however long', () => {
  const steps = fc.array(fc.tuple(fc.nat({ max: 1000 }), fc.constantFrom<Observation>('unknown', 'between')))
  fc.assert(
    fc.property(steps, fc.boolean(), (list, active) => {
      let state: HysteresisState = { active, sinceMs: 0, changingSinceMs: undefined }
      let nowMs = 0
      for (const [ms, observation] of list) {
        nowMs += ms
        state = observe(state, observation, OPTIONS, nowMs)
      }
      assert.equal(state.active, active)
    }),
  )
})

test('nodes: strictly more than 3 and more than 45 % begin it, at most 30 % or 3 end it', () => {
  const see = (unready: number, total: number): Observation =>
    observeNodes({ total, unready, observedAtMs: 0, complete: true }, NODES, 0)
  const table: readonly (readonly [number, number, Observation])[] = [
    [0, 0, 'good'],
    [3, 3, 'good'],
    [4, 4, 'bad'],
    [4, 8, 'bad'],
    [4, 9, 'between'],
    [9, 20, 'between'],
    [10, 20, 'bad'],
    [6, 20, 'good'],
    [7, 20, 'between'],
    [45, 100, 'between'],
    [46, 100, 'bad'],
  ]
  for (const [unready, all, want] of table) assert.equal(see(unready, all), want, `${unready} of ${all}`)
})

test('nodes: nothing is decided on stale or partial data', () => {
  const counts = { total: 20, unready: 20, observedAtMs: 0, complete: true }
  assert.equal(observeNodes(counts, NODES, 60_000), 'bad')
  assert.equal(observeNodes(counts, NODES, 60_001), 'unknown')
  assert.equal(observeNodes({ ...counts, complete: false }, NODES, 0), 'unknown')
  assert.equal(observeNodes(undefined, NODES, 0), 'unknown')
  assert.equal(nodesText({ ...counts, unready: 12 }), '12 of 20 nodes unready (60 %)')
})

test('answers: too many errors or too slow begin it, half of both ends it, too few decide nothing', () => {
  const see = (failed5xx: number, medianMs = 0, requests = 100): Observation =>
    observeAnswers({ requests, failed5xx, medianMs }, { ...UPSTREAM, maxLatencyMs: 1000 })
  assert.equal(see(26), 'bad')
  assert.equal(see(25), 'between')
  assert.equal(see(12), 'good')
  assert.equal(see(0, 1001), 'bad')
  assert.equal(see(0, 501), 'between')
  assert.equal(see(0, 500), 'good')
  assert.equal(see(49, 0, 49), 'unknown')
  assert.equal(observeAnswers({ requests: 100, failed5xx: 0, medianMs: 1e9 }, UPSTREAM), 'good')
  assert.equal(
    answersText({ requests: 1000, failed5xx: 300, medianMs: 400 }),
    '300 of 1000 requests failed upstream (30 %), median latency 400 ms',
  )
  assert.equal(observeAnswers(undefined, UPSTREAM), 'unknown')
})
