import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BudgetByUser, CANCELLED_REQUESTS, UserBudgets } from './user-budgets.ts'

const { burst, perSecond } = CANCELLED_REQUESTS

test('a user who has cancelled too many requests waits; the same name in another cluster, and others, do not', () => {
  const budgets = new BudgetByUser(CANCELLED_REQUESTS)
  for (let i = 0; i < burst; i++) {
    assert.equal(budgets.isSpent('a', 'ann', 1_000), false)
    budgets.spend('a', 'ann', 1_000)
  }
  assert.equal(budgets.isSpent('a', 'ann', 1_000), true)
  assert.equal(budgets.isSpent('b', 'ann', 1_000), false)
  assert.equal(budgets.isSpent('a', 'bob', 1_000), false)
  assert.equal(budgets.isSpent('a', 'ann', 1_000 + 1_000 / perSecond), false)
  budgets.spend('a', 'ann', 1_000 + 1_000 / perSecond)
  assert.equal(budgets.isSpent('a', 'ann', 1_000 + 1_000 / perSecond), true)
})

test('more than is left makes no debt, and a user with a full budget is dropped', () => {
  const budgets = new BudgetByUser(CANCELLED_REQUESTS)
  for (let i = 0; i < 3 * burst; i++) budgets.spend('a', 'ann', 0)
  assert.equal(budgets.isSpent('a', 'ann', 2_000 / perSecond), false)
  assert.equal(budgets.users, 1)
  assert.equal(budgets.isSpent('a', 'ann', (burst * 1_000) / perSecond), false)
  assert.equal(budgets.users, 0)
})

test('when there are many users, the least recent one is dropped', () => {
  const budgets = new BudgetByUser(CANCELLED_REQUESTS)
  for (let i = 0; i < burst; i++) budgets.spend('a', 'ann', 0)
  for (let i = 0; i < 4_094; i++) budgets.spend('a', `user-${i}`, 0)
  budgets.spend('a', 'ann', 0)
  for (let i = 0; i < 4_000; i++) budgets.spend('a', `other-${i}`, 0)
  assert.equal(budgets.users, 4_096)
  assert.equal(budgets.isSpent('a', 'ann', 0), true)
})

test('new tokens of a blocked address: a few at once, then one in five seconds; accepted ones take nothing', () => {
  const { unknownTokens } = new UserBudgets()
  const asked = (who: string, nowMs: number): number => {
    let count = 0
    while (count < 100 && unknownTokens.spend('', who, nowMs)) count++
    return count
  }
  assert.equal(asked('a', 0), 3)
  assert.equal(asked('a', 4_900), 0)
  assert.equal(asked('a', 60_000), 3)
  assert.equal(asked('b', 60_000), 3, 'each address has its own')
  // As many as there are, one after the other.
  for (let i = 0; i < 100; i++) {
    unknownTokens.giveBack('', 'b')
    assert.ok(unknownTokens.spend('', 'b', 60_000))
  }
  assert.equal(asked('b', 60_000), 0)
})
