import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { changesInMs, type HysteresisState, inactive, type Observation, observe } from './hysteresis.ts'
import { NODE_HEALTH_DEFAULTS, nodesText, observeNodes } from './node-health.ts'
import { observeAnswers, UPSTREAM_HEALTH_DEFAULTS } from './upstream-health.ts'

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

test('when it changes is told', () => {
  assert.equal(changesInMs(run([[0, 'bad']]), OPTIONS, 10), 20)
  assert.equal(
    changesInMs(
      run([
        [0, 'bad'],
        [30, 'bad'],
        [50, 'good'],
      ]),
      OPTIONS,
      60,
    ),
    110,
  )
  assert.equal(changesInMs(run([[0, 'between']]), OPTIONS, 0), undefined)
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
  const see = (unready: number, all: number): Observation =>
    observeNodes({ all, unready, asOfMs: 0, complete: true }, NODE_HEALTH_DEFAULTS, 0)
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
  const counts = { all: 20, unready: 20, asOfMs: 0, complete: true }
  assert.equal(observeNodes(counts, NODE_HEALTH_DEFAULTS, 60_000), 'bad')
  assert.equal(observeNodes(counts, NODE_HEALTH_DEFAULTS, 60_001), 'unknown')
  assert.equal(observeNodes({ ...counts, complete: false }, NODE_HEALTH_DEFAULTS, 0), 'unknown')
  assert.equal(observeNodes(undefined, NODE_HEALTH_DEFAULTS, 0), 'unknown')
  assert.equal(nodesText({ ...counts, unready: 12 }), '12 of 20 nodes unready (60 %)')
})

test('answers: too many errors or too slow begin it, half of both ends it, too few decide nothing', () => {
  const see = (errors: number, medianLatencyMs = 0, all = 100): Observation =>
    observeAnswers({ all, errors, medianLatencyMs }, { ...UPSTREAM_HEALTH_DEFAULTS, maxLatencyMs: 1000 })
  assert.equal(see(26), 'bad')
  assert.equal(see(25), 'between')
  assert.equal(see(12), 'good')
  assert.equal(see(0, 1001), 'bad')
  assert.equal(see(0, 501), 'between')
  assert.equal(see(0, 500), 'good')
  assert.equal(see(49, 0, 49), 'unknown')
  assert.equal(observeAnswers({ all: 100, errors: 0, medianLatencyMs: 1e9 }, UPSTREAM_HEALTH_DEFAULTS), 'good')
  assert.equal(observeAnswers(undefined, UPSTREAM_HEALTH_DEFAULTS), 'unknown')
})
