import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DEGRADE_MODES, type DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { compileAutoDegrade } from '../../gateway/core/cluster/compile-settings.ts'
import type { AutoDegradeOptions } from '../../gateway/core/cluster/compiled-auto-degrade.ts'
import type { NodesSeen, UpstreamSeen } from '../api/cluster-health.ts'
import {
  type AutoDegradeEffect,
  type AutoDegradeInput,
  type AutoDegradeState,
  autoDegradeStatus,
  done,
  startAutoDegrade,
  stepAutoDegrade,
} from './auto-degrade.ts'

const NODES = compileAutoDegrade({ nodes: { enterAfter: '30s', exitAfter: '2m' } })
const BOTH = compileAutoDegrade({ nodes: {}, upstream: {} })

function nodes(unready: number, change: Partial<NodesSeen> = {}): NodesSeen {
  const seen = { ready: 20 - unready, unready, total: 20, notStarted: 0, complete: true, message: '' }
  return { ...seen, observedAtMs: Number.POSITIVE_INFINITY, ...change }
}

function answers(failed5xx: number): UpstreamSeen {
  return { requests: 100, failed5xx, medianMs: 5, p99Ms: 5, observedAtMs: 0 }
}

/** A cluster whose object applies each effect at once. One step is a second. */
class World {
  state: AutoDegradeState
  options: AutoDegradeOptions
  mode: DegradeMode = 'Off'
  automatic = false
  recovering = false
  nodes: NodesSeen | undefined = nodes(0)
  upstream: UpstreamSeen | undefined = undefined
  nowMs = 0
  readonly effects: AutoDegradeEffect[] = []

  constructor(options: AutoDegradeOptions = NODES) {
    this.options = options
    this.state = startAutoDegrade(undefined, 0)
  }

  get input(): AutoDegradeInput {
    const { nodes, upstream, mode, automatic, recovering, nowMs } = this
    return { nodes, upstream, mode, automatic, recovering, nowMs }
  }

  run(seconds: number): this {
    for (let i = 0; i <= seconds; i++) {
      const { state, effect } = stepAutoDegrade(this.state, this.options, this.input)
      this.state = state
      if (effect !== undefined) this.carryOut(effect)
      this.nowMs += 1_000
    }
    return this
  }

  carryOut(effect: AutoDegradeEffect): void {
    this.effects.push(effect)
    this.state = done(this.state, effect)
    if (effect.kind === 'enter') {
      this.mode = effect.mode
      this.automatic = true
    } else this.recovering = true
  }

  /** An operator sets it by hand. */
  set(mode: DegradeMode): this {
    this.mode = mode
    this.automatic = false
    return this
  }

  see(unready: number): this {
    this.nodes = nodes(unready)
    return this
  }

  anotherLeader(): this {
    this.state = startAutoDegrade(autoDegradeStatus(this.state, undefined, 0), this.nowMs)
    return this
  }

  get told(): readonly (string | undefined)[] {
    const { phase, action, mode } = autoDegradeStatus(this.state, undefined, 0)
    return [phase, action, mode]
  }
}

test('NoDisruption is entered once many nodes have been unready for long enough, with the reason', () => {
  const world = new World().see(10).run(29)
  assert.deepEqual(world.told, ['Suspect', undefined, undefined])
  assert.deepEqual(world.effects, [])
  world.run(2)
  const reason = 'automatic: 10 of 20 nodes unready (50 %)'
  assert.deepEqual(world.effects, [{ kind: 'enter', mode: 'NoDisruption', reason }])
  assert.deepEqual(world.told, ['Degraded', 'Entered', 'NoDisruption'])
  assert.equal(world.run(3600).effects.length, 1)
})

test('nothing is entered that is not bad without a break, and 9 of 20 or 3 of 3 are not', () => {
  const flapping = new World()
  for (let i = 0; i < 100; i++) flapping.see(20).run(20).see(0).run(1)
  assert.deepEqual(flapping.effects, [])
  assert.deepEqual(new World().see(9).run(600).effects, [])
  const small = new World()
  small.nodes = nodes(3, { total: 3, ready: 0 })
  assert.deepEqual(small.run(600).effects, [])
})

/** The reason recorded for the mode no longer holds. */
const RECOVER: AutoDegradeEffect = {
  kind: 'recover',
  mode: 'NoDisruption',
  reason: 'automatic: on the way back by steps: enough nodes are ready',
}

test('the way back begins once the nodes have been good for long enough, and only once', () => {
  const world = new World().see(12).run(60).see(6).run(119)
  assert.equal(world.effects.length, 1)
  world.run(3)
  assert.deepEqual(world.effects[1], RECOVER)
  assert.deepEqual(world.told, ['Normal', undefined, undefined])
  assert.equal(world.set('Off').run(600).effects.length, 2)
})

test('while all is good again and has to last, the reason says so, and not what was seen when it began', () => {
  const world = new World().see(12).run(60)
  assert.match(world.state.reason, /^12 of \d+ nodes unready \(\d+ %\)$/)
  world.see(0).run(60)
  assert.match(world.state.reason, /^0 of \d+ nodes unready \(0 %\): healthy again, but not for long enough yet$/)
  world.see(12).run(1)
  assert.match(world.state.reason, /^12 of \d+ nodes unready \(\d+ %\)$/)
})

test('unknown, old and partial data decide nothing, whatever was seen before, and are told', () => {
  const unknown: readonly (readonly [string, NodesSeen | undefined])[] = [
    ['not watched', undefined],
    ['not listed', nodes(20, { complete: false })],
    ['silent', nodes(20, { observedAtMs: -60_001 })],
    ['forbidden', nodes(20, { observedAtMs: -60_001, message: 'nodes is forbidden' })],
  ]
  for (const [name, seen] of unknown) {
    const world = new World()
    world.nodes = seen
    assert.deepEqual(world.run(600).effects, [], name)
    assert.deepEqual(world.told[0], 'Unknown', name)
    assert.match(world.state.reason, /no decision$/, name)
    const degraded = new World().see(10).run(40)
    degraded.nodes = seen
    degraded.run(600)
    assert.deepEqual(degraded.told, ['Degraded', 'Entered', 'NoDisruption'], name)
    assert.equal(degraded.effects.length, 1, name)
  }
})

test('a mode that is at least as strict stays, and the way back from it is not ours', () => {
  for (const mode of ['NoDisruption', 'ReadOnly', 'HeartbeatsOnly', 'Freeze'] as const) {
    const world = new World().set(mode).see(20).run(60)
    assert.deepEqual(world.told, ['Degraded', 'Stricter', undefined], mode)
    assert.deepEqual(world.see(0).run(600).effects, [], mode)
  }
  assert.equal(new World().set('Limited').see(20).run(60).effects.length, 1)
})

test('a human who throws Off wins, until the nodes were good once', () => {
  const world = new World().see(10).run(40).set('Off').run(600)
  assert.deepEqual(world.told, ['Degraded', 'Overruled', 'NoDisruption'])
  assert.equal(world.effects.length, 1)
  // Good, but not for long enough.
  assert.equal(world.see(0).run(60).see(20).run(600).effects.length, 1)
  world.see(0).run(130)
  assert.deepEqual(world.told, ['Normal', undefined, undefined])
  assert.equal(world.effects.length, 1)
  world.see(10).run(40)
  assert.equal(world.effects.length, 2)
})

test('a recovery that lowers the mode overrules no other writer', () => {
  const world = new World().see(10).run(40)
  world.recovering = true
  world.mode = 'Limited'
  assert.deepEqual(world.run(5).told, ['Degraded', 'Entered', 'NoDisruption'])
})

test('shadow mode says what it would do; switched off, it is done', () => {
  const world = new World({ ...NODES, shadow: true }).see(10).run(600)
  assert.deepEqual(world.effects, [])
  assert.deepEqual(world.told, ['Degraded', 'Shadow', 'NoDisruption'])
  world.options = NODES
  assert.equal(world.run(1).effects.length, 1)
  const ended = new World({ ...NODES, shadow: true }).see(10).run(60).see(0).run(600)
  assert.deepEqual(ended.effects, [])
  assert.deepEqual(ended.told, ['Normal', undefined, undefined])
})

test('an overloaded upstream enters Limited, and unready nodes NoDisruption after it', () => {
  const world = new World(BOTH)
  world.upstream = answers(26)
  world.run(40)
  const reason = 'automatic: 26 of 100 requests failed upstream (26 %), median latency 5 ms'
  assert.deepEqual(world.effects, [{ kind: 'enter', mode: 'Limited', reason }])
  world.see(20).run(40)
  assert.deepEqual(world.told, ['Degraded', 'Entered', 'NoDisruption'])
  // One of the two is not enough.
  assert.equal(world.see(0).run(600).effects.length, 2)
  world.upstream = answers(12)
  assert.deepEqual(world.run(130).effects.at(-1), RECOVER)
})

test('too few requests decide nothing, and need not be told', () => {
  const world = new World(compileAutoDegrade({ upstream: {} }))
  world.upstream = { ...answers(49), requests: 49 }
  assert.deepEqual(world.run(600).told, ['Normal', undefined, undefined])
})

test('another leader goes on where the one before was', () => {
  const entered = new World().see(10).run(40).anotherLeader().run(600)
  assert.deepEqual(entered.told, ['Degraded', 'Entered', 'NoDisruption'])
  assert.equal(entered.effects.length, 1)
  assert.equal(entered.see(0).run(130).effects.length, 2)
  const overruled = new World().see(10).run(40).set('Off').run(5).anotherLeader().run(600)
  assert.equal(overruled.effects.length, 1)
  // The previous leader died before the way back had begun.
  const leaving = new World().see(10).run(40).see(0)
  leaving.carryOut = () => undefined
  leaving.run(130)
  assert.deepEqual(leaving.told, ['Normal', 'Entered', 'NoDisruption'])
  const effects: AutoDegradeEffect[] = []
  leaving.carryOut = (effect) => void effects.push(effect)
  leaving.anotherLeader().run(0)
  assert.deepEqual(effects, [RECOVER])
  // Or before it could record that it had entered the mode.
  const untold = new World().see(10)
  untold.mode = 'NoDisruption'
  untold.automatic = true
  assert.deepEqual(untold.run(40).told, ['Degraded', 'Entered', 'NoDisruption'])
  assert.deepEqual(untold.see(0).run(130).effects, [RECOVER])
})

test('an effect that fails is wanted again, and no longer when the mode has become strict meanwhile', () => {
  const world = new World().see(10)
  const wanted: AutoDegradeEffect[] = []
  world.carryOut = (effect) => void wanted.push(effect)
  world.run(35)
  assert.ok(wanted.length > 1)
  const { length } = wanted
  world.set('Freeze').run(10)
  assert.equal(wanted.length, length)
  assert.deepEqual(world.told, ['Degraded', 'Stricter', undefined])
})

test('whatever is seen and set: never stricter than its modes, never looser than what was set by hand', () => {
  const step = fc.record({
    unready: fc.nat({ max: 20 }),
    known: fc.boolean(),
    failed: fc.nat({ max: 100 }),
    seconds: fc.nat({ max: 200 }),
    set: fc.option(fc.constantFrom(...DEGRADE_MODES), { nil: undefined }),
    leader: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const world = new World(BOTH)
      const carryOut = world.carryOut.bind(world)
      world.carryOut = (effect) => {
        if (effect.kind === 'enter') {
          assert.ok(effect.mode === 'NoDisruption' || effect.mode === 'Limited')
          assert.ok(DEGRADE_MODES.indexOf(effect.mode) > DEGRADE_MODES.indexOf(world.mode))
        }
        carryOut(effect)
      }
      for (const { unready, known, failed, seconds, set, leader } of steps) {
        if (set !== undefined) world.set(set)
        world.recovering = false
        world.nodes = known ? nodes(unready) : undefined
        world.upstream = known ? answers(failed) : undefined
        if (leader) world.anotherLeader()
        world.run(seconds)
      }
    }),
  )
})

test("a mode that is stricter than what the gateway enters by itself is a human's, whatever reason was left in the object", () => {
  const world = new World()
  world.mode = 'Freeze'
  world.automatic = true
  assert.deepEqual(world.run(600).effects, [])
  world.see(10).run(60)
  assert.deepEqual(world.told, ['Degraded', 'Stricter', undefined])
  world.see(0).run(3600)
  assert.deepEqual(world.effects, [], 'and it is not lifted when the nodes are back')
})
