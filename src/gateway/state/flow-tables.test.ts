// Limits outlive changes of the object, and each user has one limit however many users there are.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PATIENT } from '../../../test/harness/patience.ts'
import type { CompiledSchema } from '../core/cluster/compiled-cluster.ts'
import { release, tryAcquire } from '../core/limits/flow-control.ts'
import { changeTokens } from '../core/limits/global-fill.ts'
import { closeWatch, tryOpenWatch } from '../core/limits/in-flight.ts'
import { FlowTable } from './flow-tables.ts'

const NOW = 5000

function schema(part: Partial<CompiledSchema>): CompiledSchema {
  return {
    name: 's',
    kind: 'tokenBucket',
    qps: 10,
    burst: 10,
    max: 0,
    perUser: false,
    cost: false,
    maxWatches: 0,
    shadow: false,
    strategy: '',
    shared: undefined,
    ...part,
  }
}

function table(...schemas: CompiledSchema[]): FlowTable {
  const flows = new FlowTable()
  flows.update(schemas, NOW)
  return flows
}

function take(flows: FlowTable, limit: CompiledSchema, user: string, wanted: number, nowMs = NOW): number {
  let taken = 0
  for (let i = 0; i < wanted; i++) if (flows.tryAcquire(limit, user, nowMs) !== undefined) taken++
  return taken
}

describe('counters', () => {
  it('are shared by all users, or one for each', () => {
    const [shared, each] = [schema({ name: 'shared' }), schema({ name: 'each', perUser: true })]
    const flows = table(shared, each)
    assert.equal(take(flows, shared, 'a', 6) + take(flows, shared, 'b', 6), 10)
    assert.equal(take(flows, each, 'a', 12), 10)
    assert.equal(take(flows, each, 'b', 12), 10)
    assert.equal(take(flows, each, 'a', 1), 0)
  })

  it('accept any user name', () => {
    const each = schema({ perUser: true })
    const flows = table(each)
    for (const name of ['__proto__', 'constructor', '', 'a']) assert.equal(take(flows, each, name, 11), 10)
  })
})

describe('a change of the object', () => {
  it('refills nothing when the limit stays', () => {
    const flows = table(schema({}))
    assert.equal(take(flows, schema({}), 'a', 0), 0)
    const before = schema({})
    flows.update([before], NOW)
    assert.equal(take(flows, before, 'a', 10), 10)
    for (let i = 0; i < 5; i++) {
      const next = schema({})
      flows.update([next], NOW)
      assert.equal(take(flows, next, 'a', 1), 0)
    }
  })

  it('refills nothing when the limit grows, for any user', () => {
    const before = schema({ perUser: true })
    const after = schema({ perUser: true, qps: 100, burst: 500 })
    const flows = table(before)
    take(flows, before, 'a', 10)
    take(flows, before, 'b', 4)
    flows.update([after], NOW)
    assert.equal(take(flows, after, 'a', 1), 0)
    assert.equal(take(flows, after, 'b', 100), 6)
    assert.equal(take(flows, after, 'a', 1, NOW + 10), 1)
  })

  it('finds a schema by its name, at any position', () => {
    const [a, b] = [schema({ name: 'a' }), schema({ name: 'b' })]
    const flows = table(a, b)
    take(flows, a, 'u', 7)
    const [nextA, nextB] = [schema({ name: 'a' }), schema({ name: 'b' })]
    flows.update([nextB, nextA], NOW)
    assert.deepEqual(
      flows.describe(NOW).map(({ schema: name, tokens }) => [name, tokens]),
      [
        ['b', 10],
        ['a', 3],
      ],
    )
  })

  it('counts a request of the old snapshot where those of the new one count', () => {
    const before = schema({ kind: 'maxRequestsInflight', max: 3 })
    const after = schema({ kind: 'maxRequestsInflight', max: 2 })
    const flows = table(before)
    const held = flows.counterFor(before, 'u', NOW)
    assert.ok(tryAcquire(before, held, NOW))
    flows.update([after], NOW)
    assert.equal(flows.counterFor(before, 'u', NOW), held)
    assert.equal(take(flows, after, 'u', 5), 1)
    release(before, held)
    assert.equal(take(flows, after, 'u', 5), 1)
    assert.equal(flows.describe(NOW)[0]?.inFlight, 2)
  })

  it('that changes the kind starts fresh, and what the old kind held ends where it began', () => {
    const before = schema({ kind: 'maxRequestsInflight', max: 1 })
    const flows = table(before)
    const held = flows.counterFor(before, 'u', NOW)
    tryAcquire(before, held, NOW)
    const after = schema({})
    flows.update([after], NOW)
    assert.equal(take(flows, after, 'u', 11), 10)
    release(before, held)
    assert.deepEqual(flows.describe(NOW), [
      { schema: 's', kind: 'tokenBucket', inFlight: 0, watches: 0, tokens: 0, users: 0, overflows: 0 },
    ])
  })

  it('lets requests of a removed schema end, and admits by it as long as its snapshot lives', () => {
    const gone = schema({ kind: 'maxRequestsInflight', max: 1 })
    const flows = table(gone)
    const held = flows.counterFor(gone, 'u', NOW)
    assert.ok(tryAcquire(gone, held, NOW))
    flows.update([], NOW)
    assert.deepEqual(flows.describe(NOW), [])
    assert.equal(take(flows, gone, 'u', 1), 0)
    release(gone, held)
    assert.equal(take(flows, gone, 'u', 2), 1)
  })

  it('to and from per user keeps both states', () => {
    const before = schema({})
    const flows = table(before)
    take(flows, before, 'u', 10)
    const each = schema({ perUser: true })
    flows.update([each], NOW)
    assert.equal(take(flows, each, 'u', 11), 10)
    const again = schema({})
    flows.update([again], NOW)
    assert.equal(take(flows, again, 'u', 1), 0)
  })
})

describe('many users', () => {
  it('are forgotten only when a new limit equals theirs', () => {
    const each = schema({ perUser: true, qps: 1, burst: 2 })
    const flows = table(each)
    assert.equal(take(flows, each, 'busy', 3), 2)
    for (let i = 0; i < 30_000; i++) take(flows, each, `user-${i}`, 1)
    // No user's token has come back, so none may be dropped.
    assert.equal(flows.describe(NOW)[0]?.users, 30_001)
    assert.equal(take(flows, each, 'busy', 1), 0)
    assert.equal(take(flows, each, 'user-0', 2), 1)
  })

  it('pass their places on when idle, and only then: there is one for every user', PATIENT, () => {
    const each = schema({ perUser: true, qps: 1, burst: 2 })
    const flows = table(each)
    const slots = schema({ name: 'slots', kind: 'maxRequestsInflight', max: 1, perUser: true })
    flows.update([each, slots], NOW)
    const held = flows.tryAcquire(slots, 'holder', NOW)
    assert.ok(held)
    for (let minute = 0; minute < 2; minute++) {
      for (let i = 0; i < 50_000; i++) {
        flows.tryAcquire(each, `user-${minute}-${i}`, NOW + minute * 60_000)
        const counter = flows.tryAcquire(slots, `user-${minute}-${i}`, NOW)
        if (counter !== undefined) release(slots, counter)
      }
    }
    const [tokens, running] = flows.describe(NOW + 60_000)
    assert.ok((tokens?.users ?? 0) <= 65_536 && (running?.users ?? 0) <= 65_536)
    assert.equal(running?.inFlight, 1)
    assert.equal(take(flows, slots, 'holder', 1), 0)
    assert.equal(take(flows, each, 'user-1-0', 2, NOW + 60_000), 1)
  })

  it('handle users beyond the table size, which is reported', () => {
    const slots = schema({ kind: 'maxRequestsInflight', max: 2, perUser: true })
    const flows = table(slots)
    for (let i = 0; i < 80_000; i++) flows.tryAcquire(slots, `user-${i}`, NOW)
    const [state] = flows.describe(NOW)
    assert.ok((state?.overflows ?? 0) > 10_000, `${state?.overflows}`)
    assert.equal((state?.inFlight ?? 0) - (state?.users ?? 0), 2, 'two requests of all who found no place')
  })

  it('keep what they hold, whichever users come', () => {
    const slots = schema({ name: 'slots', kind: 'maxRequestsInflight', max: 1, perUser: true })
    const watches = schema({ name: 'watches', kind: 'exempt', maxWatches: 1, perUser: true })
    const flows = table(slots, watches)
    const held = flows.counterFor(slots, 'holder', NOW)
    tryAcquire(slots, held, NOW)
    const watched = flows.counterFor(watches, 'holder', NOW)
    tryOpenWatch(watches, watched)
    for (let i = 0; i < 15_000; i++) {
      flows.counterFor(slots, `user-${i}`, NOW)
      flows.counterFor(watches, `user-${i}`, NOW)
    }
    assert.equal(take(flows, slots, 'holder', 1), 0)
    assert.ok(!tryOpenWatch(watches, flows.counterFor(watches, 'holder', NOW)))
    release(slots, held)
    closeWatch(watched)
    assert.equal(take(flows, slots, 'holder', 2), 1)
  })
})

describe('threads', () => {
  const SEED = [123, 456] as const
  const kinds: [string, CompiledSchema][] = [
    ['a bucket', schema({ qps: 1, burst: 100 })],
    ['a bucket for each user', schema({ qps: 1, burst: 100, perUser: true })],
    ['slots', schema({ kind: 'maxRequestsInflight', max: 100 })],
    ['slots for each user', schema({ kind: 'maxRequestsInflight', max: 100, perUser: true })],
  ]
  const tables = (limit: CompiledSchema): FlowTable[] => {
    const main = new FlowTable({ thread: 3, threads: 3, seed: SEED })
    main.update([limit], NOW)
    const threads = [0, 1, 2].map((thread) => {
      const flows = new FlowTable({ thread, threads: 3, seed: SEED })
      flows.update([limit], NOW, main.handles())
      return flows
    })
    return [main, ...threads]
  }
  for (const [what, limit] of kinds) {
    it(`handle ${what}`, () => {
      const [main, ...threads] = tables(limit)
      const taken = threads.map((flows) => take(flows, limit, 'u', 40))
      assert.deepEqual(taken, [40, 40, 20])
      assert.equal(main?.describe(NOW)[0]?.users, limit.perUser ? 1 : 0)
    })
  }

  it('follow a limit that the main thread has resized, and resize nothing themselves', () => {
    const before = schema({ qps: 1, burst: 100 })
    const [main, one, two] = tables(before)
    assert.ok(main !== undefined && one !== undefined && two !== undefined)
    take(one, before, 'u', 60)
    const after = schema({ qps: 1, burst: 10 })
    main.update([after], NOW)
    for (const flows of [one, two]) flows.update([after], NOW, main.handles())
    assert.equal(take(one, after, 'u', 6) + take(two, after, 'u', 9), 10)
  })

  it('get a limit that becomes per user', () => {
    const before = schema({})
    const [main, one, two] = tables(before)
    const after = schema({ perUser: true })
    main?.update([after], NOW)
    for (const flows of [one, two]) flows?.update([after], NOW, main?.handles())
    assert.equal(one === undefined ? 0 : take(one, after, 'u', 6), 6)
    assert.equal(two === undefined ? 0 : take(two, after, 'u', 9), 4)
  })

  it('give back what one of them held when it dies', () => {
    const limit = schema({ kind: 'maxRequestsInflight', max: 10, maxWatches: 2, perUser: true })
    const [main, one, two] = tables(limit)
    assert.ok(main !== undefined && one !== undefined && two !== undefined)
    take(one, limit, 'u', 7)
    assert.ok(one.tryOpenWatch(limit, one.counterFor(limit, 'u', NOW), 'u', NOW))
    assert.equal(take(two, limit, 'u', 9), 3)
    main.releaseThread(0)
    const { inFlight, watches } = main.describe(NOW)[0] ?? {}
    assert.deepEqual([inFlight, watches], [3, 0])
    assert.equal(take(two, limit, 'u', 9), 7)
  })
})

describe('description', () => {
  it('sums requests and watches, and shows the fewest tokens', () => {
    const each = schema({ name: 'each', perUser: true })
    const slots = schema({ name: 'slots', kind: 'maxRequestsInflight', max: 5, maxWatches: 3 })
    const flows = table(each, slots)
    take(flows, each, 'a', 3)
    take(flows, each, 'b', 8)
    take(flows, slots, 'a', 2)
    tryOpenWatch(slots, flows.counterFor(slots, 'a', NOW))
    assert.deepEqual(flows.describe(NOW), [
      { schema: 'each', kind: 'tokenBucket', inFlight: 0, watches: 0, tokens: 2, users: 2, overflows: 0 },
      { schema: 'slots', kind: 'maxRequestsInflight', inFlight: 2, watches: 1, tokens: 0, users: 0, overflows: 0 },
    ])
  })
})

describe('limits that replicas handle', () => {
  const shared = { qps: 100, burst: 100, max: 0 }

  it('have one account for all threads, which outlives changes', () => {
    const [before, after] = [schema({}), schema({ shared })]
    const flows = table(before)
    assert.deepEqual(flows.shared(), [])
    flows.update([after], NOW)
    const [flow] = flows.shared()
    assert.ok(flow)
    const thread = new FlowTable({ thread: 0, threads: 1, seed: [1, 2] })
    thread.update([after], NOW, flows.handles())
    assert.equal(take(thread, after, 'a', 3), 0)
    changeTokens(flow.counter, flow.account, 2)
    assert.equal(take(thread, after, 'a', 3), 2)
    const later = schema({ shared: { ...shared, qps: 50 } })
    flows.update([later], NOW)
    thread.update([later], NOW, flows.handles())
    assert.equal(flows.shared()[0]?.account, flow.account)
    changeTokens(flow.counter, flow.account, 1)
    assert.equal(take(thread, later, 'a', 3), 1)
  })

  it('reach a thread that knew the limit before it was shared', () => {
    const [before, after] = [schema({}), schema({ shared })]
    const flows = table(before)
    const thread = new FlowTable({ thread: 0, threads: 1, seed: [1, 2] })
    thread.update([before], NOW, flows.handles())
    flows.update([after], NOW)
    thread.update([after], NOW, flows.handles())
    const [flow] = flows.shared()
    assert.ok(flow)
    changeTokens(flow.counter, flow.account, 2)
    assert.equal(take(thread, after, 'a', 3), 2)
    // No longer shared: the account does not count.
    const alone = schema({})
    flows.update([alone], NOW)
    thread.update([alone], NOW, flows.handles())
    assert.deepEqual(flows.shared(), [])
    assert.equal(take(thread, alone, 'a', 3), 3)
  })
})
