// Requests under a limit shared by replicas: the account and the local limit must both admit them.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { refund, release, seatsTaken, tokensLeft, tryAcquire } from './flow-control.ts'
import { createFlowMemory, FlowCounter } from './flow-counter.ts'
import { createGlobalAccount, requestsMissed, tokensAtHand, tokensTaken } from './global-account.ts'
import { changeTokens, refusedByAll, setSlots } from './global-fill.ts'
import { requestsInFlight } from './in-flight.ts'

const NONE = {
  name: 'a',
  qps: 0,
  burst: 0,
  max: 0,
  perUser: false,
  cost: false,
  maxWatches: 0,
  shadow: false,
  strategy: '',
}
const BUCKET: CompiledSchema = {
  ...NONE,
  kind: 'tokenBucket',
  qps: 10,
  burst: 10,
  shared: { qps: 20, burst: 20, max: 0 },
}
const SLOTS: CompiledSchema = { ...NONE, kind: 'maxRequestsInflight', max: 4, shared: { qps: 0, burst: 0, max: 8 } }

function counterWithAccount(): { counter: FlowCounter; account: NonNullable<FlowCounter['account']> } {
  const counter = new FlowCounter(createFlowMemory(1), 0, 0)
  const account = createGlobalAccount()
  counter.account = account
  return { counter, account }
}

function take(schema: CompiledSchema, counter: FlowCounter, wanted: number): number {
  let taken = 0
  for (let i = 0; i < wanted; i++) if (tryAcquire(schema, counter, 1000)) taken++
  return taken
}

describe('tokens', () => {
  it('are needed of the account too, and it counts who found none', () => {
    const { counter, account } = counterWithAccount()
    assert.equal(take(BUCKET, counter, 2), 0)
    assert.equal(refusedByAll(BUCKET, counter), true)
    changeTokens(counter, account, 3)
    assert.equal(take(BUCKET, counter, 5), 3)
    assert.deepEqual([tokensTaken(account), requestsMissed(account)], [3, 4])
    // A request refused by the shared limit takes nothing from the local one.
    assert.equal(tokensLeft(BUCKET, counter, 1000), 7)
  })

  it('may be owed by one list, which no replica could have all tokens for; others pass when they have been fetched', () => {
    const { counter, account } = counterWithAccount()
    changeTokens(counter, account, 1)
    assert.ok(tryAcquire(BUCKET, counter, 1000, 8))
    assert.deepEqual([tokensAtHand(account), tokensTaken(account)], [-7, 8])
    assert.equal(take(BUCKET, counter, 1), 0)
    assert.equal(changeTokens(counter, account, -5), 0, 'a debt is neither given back nor made larger')
    assert.equal(changeTokens(counter, account, 7), 7)
    assert.equal(take(BUCKET, counter, 1), 0)
    changeTokens(counter, account, 1)
    assert.equal(take(BUCKET, counter, 2), 1)
    refund(BUCKET, counter, 8)
    assert.equal(tokensAtHand(account), 8)
  })

  it('stay in the account when the local limit refuses', () => {
    const { counter, account } = counterWithAccount()
    changeTokens(counter, account, 15)
    assert.equal(take(BUCKET, counter, 20), 10)
    assert.deepEqual([tokensAtHand(account), requestsMissed(account)], [5, 0])
    assert.equal(refusedByAll(BUCKET, counter), false)
  })

  it('come back to both when nothing was sent', () => {
    const { counter, account } = counterWithAccount()
    changeTokens(counter, account, 2)
    assert.equal(take(BUCKET, counter, 1), 1)
    refund(BUCKET, counter)
    assert.deepEqual([tokensAtHand(account), tokensTaken(account), tokensLeft(BUCKET, counter, 1000)], [2, 0, 10])
  })

  it('are never fewer than none', () => {
    const { counter, account } = counterWithAccount()
    assert.equal(changeTokens(counter, account, 5), 5)
    assert.equal(changeTokens(counter, account, -9), -5)
    assert.equal(tokensAtHand(account), 0)
  })
})

describe('slots', () => {
  it('are as many as both allow', () => {
    const { counter, account } = counterWithAccount()
    assert.equal(take(SLOTS, counter, 1), 0)
    assert.equal(setSlots(counter, account, 2), 0)
    assert.equal(take(SLOTS, counter, 9), 2)
    assert.equal(refusedByAll(SLOTS, counter), true)
    assert.equal(setSlots(counter, account, 8), 2)
    assert.equal(take(SLOTS, counter, 9), 2)
    assert.equal(refusedByAll(SLOTS, counter), false)
    for (let i = 0; i < 4; i++) release(SLOTS, counter)
    assert.equal(requestsInFlight(counter), 0)
  })

  it('a list takes no more than this replica may have, so that it passes when nothing else runs here', () => {
    const { counter, account } = counterWithAccount()
    setSlots(counter, account, 3)
    const seats = seatsTaken(SLOTS, counter, 100)
    assert.equal(seats, 3)
    assert.ok(tryAcquire(SLOTS, counter, 1000, seats))
    assert.equal(take(SLOTS, counter, 1), 0)
    release(SLOTS, counter, seats)
    assert.equal(take(SLOTS, counter, 1), 1)
    assert.ok(!tryAcquire(SLOTS, counter, 1000, seats))
    assert.equal(refusedByAll(SLOTS, counter, seats), true)
  })
})
