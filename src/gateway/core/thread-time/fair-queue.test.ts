import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Account, type Waiter } from './accounts.ts'
import { FairQueue, OWED_PAUSE_MS } from './fair-queue.ts'

/** Time advances only by work. */
function setUp() {
  const clock = { ms: 0 }
  const done: string[] = []
  const used = new Map<string, number>()
  /** Sources that wait for many answers. */
  const owed = new Set<string>()
  const queue = new FairQueue(
    () => clock.ms,
    (account, ms) => void used.set(account.source, (used.get(account.source) ?? 0) + ms),
    ({ source }) => owed.has(source),
  )
  const account = (source: string, weight = 1, known = true): Account =>
    new Account({ source, weight, known }, clock.ms)
  /** Pieces of `ms` each; a turn does as many as possible, at least one. */
  const work = (name: string, pieces: number, ms = 0.05): Waiter => {
    let left = pieces
    return {
      work(untilMs) {
        do {
          left--
          done.push(name)
          clock.ms += ms
        } while (left > 0 && clock.ms < untilMs)
        return left > 0
      },
    }
  }
  return { clock, done, used, owed, queue, account, work }
}

function counts(done: readonly string[]): Record<string, number> {
  const all: Record<string, number> = {}
  for (const name of done) all[name] = (all[name] ?? 0) + 1
  return all
}

describe('the queue of a thread', () => {
  test('sources take turns, however many connections one has', () => {
    const { queue, account, work, done } = setUp()
    const many = account('many')
    for (let i = 0; i < 50; i++) queue.add(many, work('many', 100))
    queue.add(account('one'), work('one', 100))
    queue.serve(5)
    const { many: much = 0, one = 0 } = counts(done)
    assert.ok(Math.abs(much - one) <= 6, `${much} ${one}`)
  })

  test('by weight', () => {
    const { queue, account, work, done } = setUp()
    queue.add(account('a', 3), work('a', 10_000))
    queue.add(account('b'), work('b', 10_000))
    queue.serve(50)
    const { a = 0, b = 0 } = counts(done)
    assert.ok(a / b > 2.7 && a / b < 3.3, `${a} ${b}`)
  })

  test('one whose pieces are long has no more time', () => {
    const { queue, account, work, used } = setUp()
    queue.add(account('long'), work('long', 10_000, 2))
    queue.add(account('short'), work('short', 100_000))
    queue.serve(400)
    const [long = 0, short = 0] = [used.get('long'), used.get('short')]
    assert.ok(Math.abs(long - short) <= 5, `${long} ${short}`)
  })

  test('all that are unknown have the turn of one user, and share it', () => {
    const { queue, account, work, done } = setUp()
    for (let i = 0; i < 20; i++) queue.add(account(`10.0.0.${i}`, 1, false), work(`10.0.0.${i}`, 1_000))
    queue.add(account('alice'), work('alice', 1_000))
    queue.serve(40)
    const { alice = 0, ...unknown } = counts(done)
    const all = Object.values(unknown).reduce((sum, count) => sum + count, 0)
    assert.ok(Math.abs(all - alice) <= 10, `${all} ${alice}`)
    assert.equal(Object.keys(unknown).length, 20, 'each has had a turn')
  })

  test('who waits for many answers gets a turn only now and then, and as before when they have come', () => {
    const { clock, queue, account, work, used, owed } = setUp()
    owed.add('heavy')
    queue.add(account('heavy'), work('heavy', 10_000))
    queue.add(account('light'), work('light', 10_000))
    clock.ms = OWED_PAUSE_MS
    queue.serve(clock.ms + 10 * OWED_PAUSE_MS)
    const [heavy = 0, light = 0] = [used.get('heavy'), used.get('light')]
    assert.ok(heavy > 0 && heavy < light / 10, `${heavy} ${light}`)
    owed.clear()
    queue.serve(clock.ms + 10 * OWED_PAUSE_MS)
    assert.ok((used.get('heavy') ?? 0) - heavy > 4 * OWED_PAUSE_MS)
  })

  test('it says when all that wait are such, and does not turn in circles meanwhile', () => {
    const { clock, queue, account, work, done, owed } = setUp()
    clock.ms = OWED_PAUSE_MS
    for (const name of ['a', 'b', 'c']) {
      owed.add(name)
      queue.add(account(name), work(name, 10))
    }
    const before = clock.ms
    assert.equal(queue.serve(before + 1_000), true)
    assert.ok(clock.ms - before < 1, 'a turn for each')
    assert.equal(new Set(done).size, 3)
    clock.ms += OWED_PAUSE_MS
    for (; queue.length > 0; clock.ms += OWED_PAUSE_MS) queue.serve(clock.ms + 1_000)
    assert.deepEqual(counts(done), { a: 10, b: 10, c: 10 })
    assert.equal(queue.serve(clock.ms), false)
  })

  test('works to its end, and the last piece ends the wait', () => {
    const { queue, account, work, done } = setUp()
    const a = account('a')
    queue.add(a, work('a', 3))
    queue.add(a, work('a', 2))
    queue.add(account('b'), work('b', 4))
    assert.equal(queue.length, 3)
    while (queue.length > 0) queue.serve(0)
    assert.deepEqual(counts(done), { a: 5, b: 4 })
    assert.equal(a.waits, false)
    queue.serve(10)
    queue.add(a, work('again', 1))
    queue.serve(0)
    assert.equal(done.at(-1), 'again')
  })

  test('what joins while its source works has its turn', () => {
    const { queue, account, work, done } = setUp()
    const a = account('a')
    let joined = false
    queue.add(a, {
      work: () => {
        if (!joined) queue.add(a, work('joined', 1))
        joined = true
        return false
      },
    })
    while (queue.length > 0) queue.serve(0)
    assert.deepEqual(done, ['joined'])
  })
})
