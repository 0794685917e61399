// Stepwise recovery: by a table of observations, and by properties over any sequence of steps.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import {
  afterStep,
  FAILING_MS,
  LONGEST_GAP_MS,
  type RecoveryDecision,
  type RecoveryState,
  stepRecovery,
  stricter,
} from './recovery.ts'
import { EMPTY_QUEUE, followQueue, type RecoveryFacts, recoveryChecks } from './recovery-checks.ts'

const OPTIONS = { holdMs: 60_000, rampMs: 600_000 }
const NODES = { ready: 20, total: 20, complete: true, ageMs: 0, message: '' }
const UPSTREAM = { requests: 100, failed5xx: 0, medianMs: 5, ageMs: 0 }
const WELL: RecoveryFacts = {
  endpoints: { available: 1, enabled: 2 },
  upstream: UPSTREAM,
  nodes: NODES,
  readyNodesBefore: 100,
  refusedDisruptive: 0,
}
const EVERY_MS = 1_000

interface Run {
  readonly modes: readonly DegradeMode[]
  readonly last: RecoveryDecision
  readonly nowMs: number
}

/** Steps every second for `forMs`, and applies the action. */
function run(mode: DegradeMode, seen: (mode: DegradeMode, ms: number) => RecoveryFacts, forMs: number): Run {
  const modes = [mode]
  let state: RecoveryState | undefined
  let last: RecoveryDecision | undefined
  let at = mode
  let nowMs = 0
  for (; nowMs <= forMs; nowMs += EVERY_MS) {
    last = stepRecovery(state, at, seen(at, nowMs), OPTIONS, nowMs)
    state = last.state
    const { action } = last
    if (action.kind === 'done') break
    if (action.kind === 'wait') continue
    at = action.to
    modes.push(at)
  }
  return { modes, last: last ?? assert.fail(), nowMs }
}

describe('the climb', () => {
  test('from Freeze to Off, a mode at a time, each held for as long as asked, Limited for its ramp', () => {
    const { modes, last, nowMs } = run('Freeze', () => WELL, 3_600_000)
    assert.deepEqual(modes, DEGRADE_MODES.toReversed())
    assert.equal(last.action.kind, 'done')
    const least = (DEGRADE_MODES.length - 2) * OPTIONS.holdMs + OPTIONS.rampMs
    assert.ok(nowMs >= least && nowMs <= least + DEGRADE_MODES.length * 2 * EVERY_MS, String(nowMs))
  })

  test('nodes have to come back at HeartbeatsOnly, and their heartbeats are waited for without going back to Freeze', () => {
    const none = { ...NODES, ready: 0 }
    const seen = (_: DegradeMode, ms: number): RecoveryFacts => ({ ...WELL, nodes: ms < 900_000 ? none : NODES })
    const early = run('Freeze', seen, 800_000)
    assert.deepEqual(early.modes, ['Freeze', 'HeartbeatsOnly'])
    assert.match(early.last.waitingFor, /^Nodes: 0 of 20 nodes are Ready, 95 % are needed, 100 % were before/)
    assert.deepEqual(run('Freeze', seen, 3_600_000).modes, DEGRADE_MODES.toReversed())
  })

  test('a check that fails for a moment restarts the hold, but does not go back a step', () => {
    const bad = { ...WELL, upstream: { ...UPSTREAM, failed5xx: 50 } }
    const seen = (_: DegradeMode, ms: number): RecoveryFacts => (ms % 50_000 === 0 ? bad : WELL)
    assert.deepEqual(run('ReadOnly', seen, 600_000).modes, ['ReadOnly'])
  })

  test('a cluster without servers comes back by its answers alone', () => {
    const { endpoints: _, nodes: __, ...known } = WELL
    const facts = { ...known, hasServers: false, endpoints: { available: 0, enabled: 0 }, nodes: undefined }
    assert.deepEqual(run('Freeze', () => facts, 3_600_000).modes, DEGRADE_MODES.toReversed())
    const failing = { ...facts, upstream: { ...UPSTREAM, failed5xx: 50 } }
    assert.deepEqual(run('ReadOnly', () => failing, 600_000).modes, ['ReadOnly'])
  })

  test('what goes on failing goes back, a step each time, and never below where it began', () => {
    const bad = { ...WELL, upstream: { ...UPSTREAM, failed5xx: 50 } }
    const seen = (mode: DegradeMode, ms: number): RecoveryFacts =>
      mode === 'NoDisruption' || ms > 300_000 ? bad : WELL
    const { modes } = run('HeartbeatsOnly', seen, 900_000)
    assert.deepEqual(modes.slice(0, 4), ['HeartbeatsOnly', 'ReadOnly', 'NoDisruption', 'ReadOnly'])
    assert.equal(modes.at(-1), 'HeartbeatsOnly')
    assert.ok(!modes.includes('Freeze'))
  })

  test('how long it still holds is rounded up, and said so', () => {
    const { waitingFor } = stepRecovery(undefined, 'ReadOnly', WELL, { ...OPTIONS, holdMs: 1_000 }, 0)
    assert.equal(waitingFor, 'NoDisruption follows when the checks have held for 1s, at most 5s more')
  })

  test('when another mode is set by hand, it goes on from there, with a new hold', () => {
    const first = stepRecovery(undefined, 'ReadOnly', WELL, OPTIONS, 0)
    const frozen = stepRecovery(first.state, 'Freeze', WELL, OPTIONS, 1_000)
    assert.equal(frozen.state.startedFrom, 'Freeze')
    assert.equal(frozen.state.holdingSinceMs, 1_000)
    const higher = stepRecovery(first.state, 'Limited', WELL, OPTIONS, 1_000)
    assert.equal(higher.state.startedFrom, 'ReadOnly')
    assert.equal(stepRecovery(first.state, 'Off', WELL, OPTIONS, 1_000).action.kind, 'done')
  })

  test('a process that was suspended has seen nothing hold', () => {
    const first = stepRecovery(undefined, 'ReadOnly', WELL, OPTIONS, 0)
    const later = stepRecovery(first.state, 'ReadOnly', WELL, OPTIONS, 3_600_000)
    assert.equal(later.action.kind, 'wait')
    assert.equal(later.state.holdingSinceMs, 3_600_000)
  })
})

describe('checks', () => {
  const observed = (mode: DegradeMode, facts: Partial<RecoveryFacts>, refused = EMPTY_QUEUE): Record<string, string> =>
    Object.fromEntries(
      recoveryChecks(mode, { ...WELL, ...facts }, refused, 0).map((check) => [check.name, check.observed]),
    )

  test('which belong to a mode', () => {
    assert.deepEqual(Object.keys(observed('Freeze', {})), ['Endpoints', 'Upstream'])
    assert.deepEqual(Object.keys(observed('Freeze', { upstream: undefined })), ['Endpoints'])
    assert.deepEqual(Object.keys(observed('HeartbeatsOnly', {})), ['Endpoints', 'Upstream', 'Nodes'])
    assert.deepEqual(Object.keys(observed('ReadOnly', {})), ['Endpoints', 'Upstream', 'Nodes'])
    for (const mode of ['NoDisruption', 'Limited'] as const)
      assert.deepEqual(Object.keys(observed(mode, {})), ['Endpoints', 'Upstream', 'Nodes', 'Disruption'])
  })

  test('nodes', () => {
    const table: readonly [ready: number, total: number, before: number | undefined, at: DegradeMode, want: string][] =
      [
        [20, 20, 100, 'ReadOnly', 'good'],
        [19, 20, 100, 'ReadOnly', 'good'],
        [18, 20, 100, 'ReadOnly', 'between'],
        [18, 20, 90, 'ReadOnly', 'good'],
        [17, 20, 90, 'ReadOnly', 'between'],
        [19, 20, undefined, 'ReadOnly', 'good'],
        [18, 20, undefined, 'ReadOnly', 'between'],
        [15, 20, 100, 'ReadOnly', 'between'],
        [14, 20, 100, 'ReadOnly', 'bad'],
        [0, 20, 100, 'ReadOnly', 'bad'],
        [0, 20, 100, 'HeartbeatsOnly', 'between'],
        [0, 3, 100, 'ReadOnly', 'between'],
        [0, 0, 100, 'ReadOnly', 'between'],
        [0, 0, 0, 'ReadOnly', 'good'],
        [0, 0, undefined, 'ReadOnly', 'good'],
        [0, 20, 0, 'ReadOnly', 'good'],
      ]
    for (const [ready, total, before, at, want] of table) {
      const facts = { nodes: { ...NODES, ready, total }, readyNodesBefore: before }
      assert.equal(observed(at, facts)['Nodes'], want, `${ready} of ${total}, ${before} % before`)
    }
    for (const nodes of [
      undefined,
      { ...NODES, complete: false },
      { ...NODES, ageMs: 60_001 },
      { ...NODES, message: 'forbidden' },
    ]) {
      assert.equal(observed('ReadOnly', { nodes })['Nodes'], 'unknown')
    }
  })

  test('upstream', () => {
    const table: readonly [requests: number, failed: number, medianMs: number, want: string][] = [
      [0, 0, 0, 'good'],
      [19, 0, 90_000, 'good'],
      [19, 19, 0, 'between'],
      [100, 5, 5, 'good'],
      [100, 6, 5, 'between'],
      [100, 11, 5, 'bad'],
      [100, 0, 1_000, 'good'],
      [100, 0, 1_001, 'between'],
      [100, 0, 2_001, 'bad'],
    ]
    for (const [requests, failed5xx, medianMs, want] of table) {
      const upstream = { requests, failed5xx, medianMs, ageMs: 0 }
      assert.equal(observed('ReadOnly', { upstream })['Upstream'], want, `${failed5xx} of ${requests}, ${medianMs} ms`)
    }
    assert.equal(observed('ReadOnly', { upstream: { ...UPSTREAM, ageMs: 60_001 } })['Upstream'], 'unknown')
    assert.equal(observed('ReadOnly', { upstream: undefined })['Upstream'], 'unknown')
    assert.equal(observed('Freeze', { endpoints: { available: 0, enabled: 2 } })['Endpoints'], 'bad')
    assert.equal(observed('Freeze', { endpoints: undefined })['Endpoints'], 'unknown')
  })

  test('the queue of refused disruptive requests is small, falls, or stays', () => {
    const queue = (refusedDisruptive: number | undefined, most: number, sinceMs = 0): string | undefined =>
      observed('NoDisruption', { refusedDisruptive }, { most, sinceMs: -sinceMs })['Disruption']
    assert.equal(queue(10, 10), 'good')
    assert.equal(queue(11, 11), 'between')
    assert.equal(queue(100, 199), 'between')
    assert.equal(queue(100, 200), 'good')
    assert.equal(queue(200, 200, 59_999), 'between')
    assert.equal(queue(200, 200, 60_000), 'good')
    assert.equal(queue(undefined, 0), 'unknown')
  })

  test('a queue that wavers does not grow', () => {
    const counts = [100, 109, 95, 110, 111, 150]
    const queues = counts.map(
      ((queue) => (count: number, at: number) => {
        queue = followQueue(queue, count, at)
        return queue.sinceMs
      })(EMPTY_QUEUE),
    )
    assert.deepEqual(queues, [0, 0, 0, 0, 4, 5])
  })

  test('who always scales down and cleans up does not keep a cluster from coming back, and a growing queue does', () => {
    const steady = { ...WELL, refusedDisruptive: 500 }
    assert.deepEqual(run('NoDisruption', () => steady, 3_600_000).modes, ['NoDisruption', 'Limited', 'Off'])
    const growing = (_: DegradeMode, ms: number): RecoveryFacts => ({
      ...WELL,
      refusedDisruptive: 20 * 1.2 ** (ms / 30_000),
    })
    assert.deepEqual(run('NoDisruption', growing, 3_600_000).modes, ['NoDisruption'])
  })
})

describe('whatever is seen', () => {
  const fact = fc.record({
    endpoints: fc.option(fc.record({ available: fc.nat({ max: 2 }), enabled: fc.constant(2) }), { nil: undefined }),
    upstream: fc.option(
      fc.record({
        requests: fc.constantFrom(0, 10, 100),
        failed5xx: fc.constantFrom(0, 0, 0, 6, 50),
        medianMs: fc.constantFrom(5, 5, 5, 1_500, 5_000),
        ageMs: fc.constantFrom(0, 0, 0, 90_000),
      }),
      { nil: undefined, freq: 8 },
    ),
    nodes: fc.option(
      fc.record({
        ready: fc.constantFrom(0, 10, 20, 20, 20),
        total: fc.constant(20),
        complete: fc.constantFrom(true, true, true, false),
        ageMs: fc.constantFrom(0, 0, 0, 90_000),
        message: fc.constant(''),
      }),
      { nil: undefined, freq: 8 },
    ),
    readyNodesBefore: fc.constantFrom(undefined, 50, 100),
    refusedDisruptive: fc.constantFrom(undefined, 0, 0, 0, 20, 200),
  })
  const look = fc.record({
    facts: fc.oneof({ arbitrary: fc.constant(WELL), weight: 6 }, { arbitrary: fact, weight: 4 }),
    // Clocks jump: forward while a process is suspended; they never go back, but nothing may depend on that.
    passedMs: fc.constantFrom(1_000, 1_000, 5_000, 14_000, 15_001, 3_600_000, -1_000),
    set: fc.option(fc.constantFrom(...DEGRADE_MODES), { nil: undefined, freq: 30 }),
  })
  const options = { holdMs: 20_000, rampMs: 40_000 }

  test('no step is skipped, none is climbed without an unbroken hold, none is left below where it began', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...DEGRADE_MODES),
        fc.array(look, { minLength: 1, maxLength: 120 }),
        (from, looks) => {
          let mode = from
          let strictest = from
          let state: RecoveryState | undefined
          let nowMs = 0
          // A simple reference implementation: how long, without a gap, all checks of this mode have been good.
          let heldMs = Number.NaN
          let badMs = Number.NaN
          for (const { facts, passedMs, set } of looks) {
            nowMs += passedMs
            const gap = passedMs < 0 || passedMs > LONGEST_GAP_MS
            const moved = set !== undefined && set !== mode
            mode = set ?? mode
            // What was set before the first step is unknown.
            strictest = state === undefined ? mode : stricter(strictest, mode)
            const turn = stepRecovery(state, mode, facts, options, nowMs)
            if (mode === 'Off') {
              assert.equal(turn.action.kind, 'done')
              return
            }
            const good = turn.checks.every(({ observed }) => observed === 'good')
            const bad = turn.checks.some(({ observed }) => observed === 'bad')
            heldMs = !good ? Number.NaN : gap || moved || Number.isNaN(heldMs) ? 0 : heldMs + passedMs
            badMs = !bad ? Number.NaN : gap || moved || Number.isNaN(badMs) ? 0 : badMs + passedMs
            state = turn.state
            const { action } = turn
            const needMs = mode === 'Limited' ? options.rampMs : options.holdMs
            const rung = DEGRADE_MODES.indexOf(mode)
            if (action.kind === 'climb') assert.equal(DEGRADE_MODES.indexOf(action.to), rung - 1)
            if (action.kind === 'goBack') assert.equal(DEGRADE_MODES.indexOf(action.to), rung + 1)
            assert.equal(action.kind === 'climb', heldMs >= needMs, `climb after ${heldMs}`)
            const mayGoBack = rung < DEGRADE_MODES.indexOf(strictest)
            assert.equal(action.kind === 'goBack', mayGoBack && badMs >= FAILING_MS, `back after ${badMs}`)
            assert.equal(turn.waitingFor === '', false)
            if (action.kind === 'climb' || action.kind === 'goBack') {
              mode = action.to
              state = afterStep(state, mode, nowMs)
              heldMs = Number.NaN
              badMs = Number.NaN
            }
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  test('what is not known neither climbs nor goes back', () => {
    const gaps: readonly (keyof RecoveryFacts)[] = ['endpoints', 'upstream', 'nodes', 'refusedDisruptive']
    for (const gap of gaps) {
      const { modes } = run('NoDisruption', () => ({ ...WELL, [gap]: undefined }), 1_200_000)
      assert.deepEqual(modes, ['NoDisruption'], gap)
    }
  })
})
