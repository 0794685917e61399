import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type CallRate, CallTurns, MAX_CALLS_IN_FLIGHT, Turn } from './call-turns.ts'

const UNLIMITED: CallRate = { qps: 0, burst: 0 }

class Asked extends Turn {
  readonly #log: string[]
  outcome: 'waits' | 'granted' | number = 'waits'
  /** The value passed to `refused`. */
  atMost: number | undefined

  constructor(source: string, log: string[], longestWaitMs: number, weight: number) {
    super(source, weight, longestWaitMs)
    this.#log = log
  }

  granted(): void {
    assert.equal(this.outcome, 'waits')
    this.outcome = 'granted'
    this.#log.push(this.source)
  }

  refused(retryAfterMs: number, atMost: number | undefined): void {
    assert.equal(this.outcome, 'waits')
    this.outcome = retryAfterMs
    this.atMost = atMost
  }
}

function turnOf(source: string, log: string[] = [], longestWaitMs = 10_000, weight = 1): Asked {
  return new Asked(source, log, longestWaitMs, weight)
}

describe('turns', () => {
  test('a source that is alone gets half of what may be under way, and leaves the rest to others', () => {
    const turns = new CallTurns(8, 100)
    const log: string[] = []
    for (let i = 0; i < 20; i++) turns.ask(turnOf('a', log), UNLIMITED, 0)
    assert.equal(log.length, 4)
    turns.ask(turnOf('b', log), UNLIMITED, 0)
    assert.equal(log.at(-1), 'b')
    turns.done('b', UNLIMITED, 0)
    turns.done('a', UNLIMITED, 0)
    assert.equal(turns.inFlight, 4)
    assert.equal(turns.waiting, 15)
  })

  test('without a bound of what is under way, a source has as many at a time as it asks for', () => {
    const turns = new CallTurns(Number.POSITIVE_INFINITY)
    for (let i = 0; i < 20; i++) turns.ask(turnOf('a'), UNLIMITED, 0)
    assert.deepEqual([turns.inFlight, turns.waiting], [20, 0])
  })

  test('who is refused hears whether calls that are under way are the limit, or their rate', () => {
    const rate: CallRate = { qps: 10, burst: 1 }
    const refused = (turns: CallTurns, limited: CallRate): number | undefined => {
      turns.ask(turnOf('a'), limited, 0)
      const waits = turnOf('a')
      turns.ask(waits, limited, 0)
      turns.expire(waits, limited)
      assert.notEqual(waits.outcome, 'waits')
      return waits.atMost
    }
    assert.equal(refused(new CallTurns(2), UNLIMITED), 2)
    assert.equal(refused(new CallTurns(2), { qps: 1000, burst: 1000 }), 2)
    assert.equal(refused(new CallTurns(8), rate), undefined)
    assert.equal(refused(new CallTurns(Number.POSITIVE_INFINITY), rate), undefined)
  })

  test('who finds the queue full is told how long it takes, from how fast calls end', () => {
    const turns = new CallTurns(2, 100)
    for (let i = 0; i < 102; i++) turns.ask(turnOf(`u${i}`), UNLIMITED, 0)
    const before = turnOf('before')
    turns.ask(before, UNLIMITED, 0)
    assert.equal(before.outcome, 1_000, 'no call has ended yet')
    let nowMs = 0
    for (let i = 0; i < 40; i++) {
      // Two at a time.
      if (i % 2 === 0) nowMs += 200
      turns.done(`u${i}`, UNLIMITED, nowMs)
      turns.ask(turnOf(`v${i}`), UNLIMITED, nowMs)
    }
    const late = turnOf('late')
    turns.ask(late, UNLIMITED, nowMs)
    assert.equal(late.outcome, 101 * 100)
  })

  test('they go round: who asks once is next, however many another one has asked before', () => {
    const rate = { qps: 10, burst: 1 }
    const turns = new CallTurns()
    const log: string[] = []
    for (let i = 0; i < 50; i++) turns.ask(turnOf('a', log), rate, 0)
    turns.ask(turnOf('b', log), rate, 0)
    turns.ask(turnOf('c', log), rate, 0)
    for (let nowMs = 100; nowMs <= 500; nowMs += 100) assert.equal(turns.advance(rate, nowMs), 100)
    assert.deepEqual(log, ['a', 'a', 'b', 'c', 'a', 'a'])
  })

  test('by weight: who has three has three turns in a row', () => {
    const rate = { qps: 10, burst: 1 }
    const turns = new CallTurns()
    const log: string[] = []
    for (let i = 0; i < 9; i++)
      for (const source of ['a', 'b']) turns.ask(turnOf(source, log, 10_000, source === 'a' ? 3 : 1), rate, 0)
    log.length = 0
    for (let nowMs = 100; nowMs <= 800; nowMs += 100) turns.advance(rate, nowMs)
    assert.equal(log.filter((source) => source === 'a').length, 6, log.join(''))
  })

  test('what could not have its turn in time is refused at once, and takes none', () => {
    const rate = { qps: 5, burst: 5 }
    const turns = new CallTurns()
    const asked = Array.from({ length: 1_000 }, () => turnOf('a'))
    for (const turn of asked) turns.ask(turn, rate, 0)
    assert.equal(asked.filter(({ outcome }) => outcome === 'granted').length, 5)
    assert.equal(asked.filter(({ outcome }) => outcome === 'waits').length, 50, 'ten seconds of them')
    assert.equal(asked.at(-1)?.outcome, 10_200)
    for (let i = 0; i < 5; i++) turns.done('a', rate, 0)
    const other = turnOf('b')
    turns.ask(other, rate, 0)
    turns.advance(rate, 200)
    turns.advance(rate, 400)
    assert.equal(other.outcome, 'granted')
  })

  test('too many that wait: the longest queue loses its last', () => {
    const turns = new CallTurns(2, 10)
    const hog = Array.from({ length: 12 }, () => turnOf('a'))
    for (const turn of hog) turns.ask(turn, UNLIMITED, 0)
    assert.equal(hog[0]?.outcome, 'granted')
    assert.equal(hog[11]?.outcome, 1_000)
    const others = ['b', 'c', 'd'].map((source) => turnOf(source))
    for (const turn of others) turns.ask(turn, UNLIMITED, 0)
    assert.deepEqual(
      others.map(({ outcome }) => outcome),
      ['granted', 'waits', 'waits'],
    )
    assert.deepEqual(
      hog.slice(8).map(({ outcome }) => outcome),
      ['waits', 1_000, 1_000, 1_000],
    )
    assert.equal(turns.waiting, 10)
  })

  test('however much some sources ask, one that has nothing under way gets a place', () => {
    const turns = new CallTurns()
    const places = MAX_CALLS_IN_FLIGHT / 8
    for (let source = 0; source < 30; source++) {
      const other = turnOf(`other ${source}`)
      if (source >= 20) turns.ask(other, UNLIMITED, 0)
      else for (let i = 0; i < 64; i++) turns.ask(i === 0 ? other : turnOf(`other ${source}`), UNLIMITED, 0)
      // Three sources take 32, 16 and 8; each further one gets one slot until none is left.
      if (source < 3 + places) assert.equal(other.outcome, 'granted', `source ${source}`)
    }
    assert.equal(turns.inFlight, MAX_CALLS_IN_FLIGHT)
  })

  test('too many that wait, of as many sources: the one that came last is refused, and not the first', () => {
    const turns = new CallTurns(0, 10)
    const all = Array.from({ length: 11 }, (_, i) => turnOf(`source ${i}`))
    for (const turn of all) turns.ask(turn, UNLIMITED, 0)
    assert.deepEqual(
      all.map(({ outcome }) => outcome),
      [...Array.from({ length: 10 }, () => 'waits'), 1_000],
    )
  })

  test('one that has waited too long is refused, and another one goes in its place', () => {
    const turns = new CallTurns(1, 10)
    turns.ask(turnOf('a'), UNLIMITED, 0)
    const late = turnOf('b')
    const next = turnOf('b')
    turns.ask(late, UNLIMITED, 0)
    turns.ask(next, UNLIMITED, 0)
    turns.expire(late, UNLIMITED)
    assert.equal(late.outcome, 1_000)
    turns.done('a', UNLIMITED, 0)
    assert.equal(next.outcome, 'granted')
    turns.expire(next, UNLIMITED)
    assert.equal(next.outcome, 'granted', 'too late for that')
  })

  test('in any order of events each turn ends once, bounds hold, and no source waits while there is room for it', () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ do: fc.constant('ask' as const), source: fc.integer({ min: 0, max: 5 }) }),
        fc.record({ do: fc.constant('done' as const), source: fc.integer({ min: 0, max: 5 }) }),
        fc.record({ do: fc.constant('expire' as const), source: fc.integer({ min: 0, max: 5 }) }),
        fc.record({ do: fc.constant('time' as const), source: fc.integer({ min: 1, max: 500 }) }),
      ),
      { maxLength: 300 },
    )
    fc.assert(
      fc.property(steps, fc.constantFrom(0, 1, 7, 50), fc.integer({ min: 1, max: 9 }), (all, qps, maxInFlight) => {
        const rate = { qps, burst: qps }
        const turns = new CallTurns(maxInFlight, 12)
        const asked: Asked[] = []
        const running: string[] = []
        let nowMs = 0
        for (const step of all) {
          const source = String(step.source)
          if (step.do === 'ask') {
            const turn = turnOf(source, running)
            asked.push(turn)
            turns.ask(turn, rate, nowMs)
          } else if (step.do === 'done') {
            const index = running.indexOf(source)
            if (index >= 0) {
              running.splice(index, 1)
              turns.done(source, rate, nowMs)
            }
          } else if (step.do === 'expire') {
            const turn = asked.find((each) => each.outcome === 'waits' && each.source === source)
            if (turn !== undefined) turns.expire(turn, rate)
          } else {
            nowMs += step.source
            turns.advance(rate, nowMs)
          }
          assert.equal(turns.inFlight, running.length)
          assert.equal(turns.waiting, asked.filter(({ outcome }) => outcome === 'waits').length)
          assert.ok(turns.inFlight <= maxInFlight && turns.waiting <= 12)
          if (qps > 0) continue
          const free = maxInFlight - running.length
          for (const { outcome, source: who } of asked) {
            const own = running.filter((each) => each === who).length
            const kept = own === 0 ? 0 : Math.floor(maxInFlight / 8)
            if (outcome === 'waits') assert.ok(own >= free || free <= kept)
          }
        }
      }),
    )
  })
})
