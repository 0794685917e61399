import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Charge } from '../../../kit/api/stream.ts'
import { Accounts } from './accounts.ts'

function user(name: string, weight = 1): Charge {
  return { source: name, weight, known: true }
}

function address(name: string): Charge {
  return { source: name, weight: 1, known: false }
}

/** Uses `ms` of every millisecond from `fromMs` to `toMs`. */
function use(accounts: Accounts, charge: Charge, ms: number, fromMs: number, toMs: number): void {
  for (let t = fromMs; t < toMs; t++) accounts.charge(accounts.of(charge, t), ms, t)
}

describe('a part of the last second', () => {
  test('who is alone is never over it', () => {
    const accounts = new Accounts(0)
    use(accounts, user('a'), 1, 0, 5_000)
    assert.equal(accounts.isOver(accounts.of(user('a'), 5_000), 5_000), false)
  })

  test('with two users it is half, as soon as the thread is busy', () => {
    const accounts = new Accounts(0)
    for (let t = 0; t < 3_000; t++) {
      use(accounts, user('heavy'), 0.9, t, t + 1)
      use(accounts, user('light'), 0.005, t, t + 1)
    }
    assert.equal(accounts.isOver(accounts.of(user('heavy'), 3_000), 3_000), true)
    assert.equal(accounts.isOver(accounts.of(user('light'), 3_000), 3_000), false)
  })

  test('no user is over it while half of the thread is free', () => {
    const accounts = new Accounts(0)
    for (let t = 0; t < 3_000; t++) {
      use(accounts, user('a'), 0.4, t, t + 1)
      for (let i = 0; i < 9; i++) use(accounts, user(`b${i}`), 0.001, t, t + 1)
    }
    assert.equal(accounts.isOver(accounts.of(user('a'), 3_000), 3_000), false)
  })

  test('goes by weight', () => {
    const accounts = new Accounts(0)
    for (let t = 0; t < 3_000; t++) {
      use(accounts, user('a', 3), 0.6, t, t + 1)
      use(accounts, user('b'), 0.35, t, t + 1)
    }
    assert.equal(accounts.isOver(accounts.of(user('a', 3), 3_000), 3_000), false)
    assert.equal(accounts.isOver(accounts.of(user('b'), 3_000), 3_000), true)
  })

  test('many unauthenticated addresses together count as one user', () => {
    const accounts = new Accounts(0)
    for (let t = 0; t < 3_000; t++) {
      use(accounts, address(`10.0.0.${t % 100}`), 0.9, t, t + 1)
      use(accounts, user('alice'), 0.005, t, t + 1)
    }
    assert.equal(accounts.isOver(accounts.of(address('10.0.1.1'), 3_000), 3_000), true, 'even a new one')
    assert.equal(accounts.isOver(accounts.of(user('alice'), 3_000), 3_000), false)
  })

  test('is forgotten, and the account with it', () => {
    const accounts = new Accounts(0)
    for (let t = 0; t < 2_000; t++) {
      use(accounts, user('a'), 0.9, t, t + 1)
      use(accounts, user('b'), 0.01, t, t + 1)
    }
    const account = accounts.of(user('a'), 2_000)
    assert.equal(accounts.isOver(account, 2_000), true)
    assert.equal(accounts.isOver(account, 3_001), false)
    accounts.sweep(3_001)
    assert.equal(accounts.size, 0)
    assert.equal(account.open, false)
    assert.notEqual(accounts.of(user('a'), 3_002), account)
  })
})

describe('what was used before it was known for which user', () => {
  test("is the user's then, and the address is none that shares the thread", () => {
    const accounts = new Accounts(0)
    const [from, to] = [accounts.of(address('192.0.2.1'), 0), accounts.of(user('a'), 0)]
    accounts.charge(from, 3, 0)
    assert.equal(accounts.size, 2)
    accounts.move(from, to, 3, 0)
    assert.equal(accounts.size, 1)
    assert.equal(from.open, false)
    assert.equal(to.used(0), 3)
    use(accounts, user('a'), 1, 0, 3_000)
    assert.equal(accounts.isOver(to, 3_000), false)
  })

  test('leaves to the address what others there have used, and no less than nothing', () => {
    const accounts = new Accounts(0)
    const [from, to] = [accounts.of(address('192.0.2.1'), 0), accounts.of(user('a'), 0)]
    accounts.charge(from, 10, 0)
    accounts.move(from, to, 4, 0)
    assert.deepEqual([from.open, from.used(0), to.used(0)], [true, 6, 4])
    accounts.move(from, to, 100, 0)
    assert.deepEqual([from.open, from.used(0), to.used(0)], [false, 0, 10])
    assert.deepEqual(
      accounts.report(0).map(({ held, sources }) => [held, sources]),
      [
        [10, 1],
        [0, 0],
      ],
    )
  })
})
