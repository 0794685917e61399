// What flow control took is given back exactly once, in whatever order a request ends; also what the cluster took that handed it over.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CompiledSchema } from '../cluster/compiled-cluster.ts'
import { tokensLeft, tryAcquire } from '../limits/flow-control.ts'
import { createFlowMemory, FlowCounter } from '../limits/flow-counter.ts'
import { openWatches, requestsInFlight, tryOpenWatch } from '../limits/in-flight.ts'
import { giveBack, type Held, nothingSent, watchStarted } from './held.ts'

const SCHEMA: CompiledSchema = {
  name: 'a',
  kind: 'maxRequestsInflight',
  qps: 0,
  burst: 0,
  max: 10,
  perUser: false,
  cost: false,
  maxWatches: 10,
  shadow: false,
  strategy: '',
  shared: undefined,
}
const TOKENS: CompiledSchema = { ...SCHEMA, kind: 'tokenBucket', max: 0, qps: 1, burst: 10 }

/** The counter also has what another request took, which must stay. */
function taken(schema: CompiledSchema, seats: number): Held {
  const counter = new FlowCounter(createFlowMemory(1), 0, 0)
  for (const one of [1, seats]) assert.ok(tryAcquire(schema, counter, 0, one))
  for (let i = 0; i < 2; i++) assert.ok(tryOpenWatch(schema, counter))
  const inFlight = schema.kind === 'maxRequestsInflight'
  return { schema, counter, seats, inFlight, token: !inFlight, watch: true }
}

function left({ counter, schema }: Held): readonly number[] {
  return [requestsInFlight(counter), openWatches(counter), tokensLeft(schema, counter, 0)]
}

test('slots and watches of a request, and of the one that it came by, once', () => {
  const first = taken(SCHEMA, 3)
  const held = taken(SCHEMA, 2)
  const holder = { held, cameBy: { held: undefined, cameBy: { held: first } } }
  assert.deepEqual(
    [left(first), left(held)],
    [
      [4, 2, 0],
      [3, 2, 0],
    ],
  )
  for (let i = 0; i < 3; i++) {
    giveBack(holder)
    assert.deepEqual(
      [left(first), left(held)],
      [
        [1, 1, 0],
        [1, 1, 0],
      ],
    )
  }
})

test('a watch that is answered keeps its place among the watches until it ends', () => {
  const first = taken(SCHEMA, 3)
  const held = taken(SCHEMA, 2)
  const holder = { held, cameBy: { held: first } }
  for (let i = 0; i < 2; i++) {
    watchStarted(holder)
    assert.deepEqual(
      [left(first), left(held)],
      [
        [1, 2, 0],
        [1, 2, 0],
      ],
    )
  }
  giveBack(holder)
  assert.deepEqual(
    [left(first), left(held)],
    [
      [1, 1, 0],
      [1, 1, 0],
    ],
  )
})

test('a token comes back only if nothing was sent, and once', () => {
  const sent = taken(TOKENS, 4)
  giveBack({ held: sent })
  assert.deepEqual(left(sent), [0, 1, 5])
  const unsent = taken(TOKENS, 4)
  for (let i = 0; i < 2; i++) nothingSent({ held: undefined, cameBy: { held: unsent } })
  assert.deepEqual(left(unsent), [0, 2, 9])
  giveBack({ held: unsent })
  assert.deepEqual(left(unsent), [0, 1, 9])
})
