// Which responses are held, within how much memory, and for how long. Memory is counted as it is taken.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import type { HeaderList, Stream } from '../../kit/api/stream.ts'
import { createRecord, type RequestRecord } from '../api/request-record.ts'
import { headerListBytes } from '../core/request/header-list.ts'
import {
  type HeldAnswer,
  heldBytes,
  holdAnswer,
  MAX_ALL_HELD_BYTES,
  MAX_HELD_BYTES,
  MAX_HELD_MS,
} from './held-answer.ts'

const JSON_HEAD: HeaderList = [':status', '200', 'content-type', 'application/json']
const NO_HOLDER = { heldTooLong: () => undefined }
const all: HeldAnswer[] = []

afterEach(() => {
  for (const held of all.splice(0)) held.discard()
  assert.equal(heldBytes(), 0)
})

function recordOf(longRunning = false, isResourceRequest = true): RequestRecord {
  const record = createRecord()
  record.longRunning = longRunning
  record.isResourceRequest = isResourceRequest
  return record
}

function hold(head: HeaderList, record = recordOf(), holder = NO_HOLDER): HeldAnswer | undefined {
  const held = holdAnswer(head, record, holder, performance.now())
  if (held !== undefined) all.push(held)
  return held
}

const withLength = (length: number | string): HeaderList => [...JSON_HEAD, 'content-length', String(length)]

// Must be the first test: no timer of this thread is running yet.
test('all are passed on after a while, those that say their length, too; in the order in which they came', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  const passed: string[] = []
  const add = (name: string, head: HeaderList, nowMs: number): void => {
    const held = holdAnswer(head, recordOf(), { heldTooLong: () => passed.push(name) }, nowMs)
    if (held !== undefined) all.push(held)
  }
  add('first', withLength(10), 0)
  add('second', JSON_HEAD, 0)
  add('gone', JSON_HEAD, 0)
  add('later', withLength(10), 300)
  all[2]?.discard()
  t.mock.timers.tick(MAX_HELD_MS - 1)
  assert.deepEqual(passed, [])
  t.mock.timers.tick(2)
  assert.deepEqual(passed, ['first', 'second'])
  t.mock.timers.tick(400)
  assert.deepEqual(passed, ['first', 'second', 'later'])
  assert.equal(heldBytes(), 0)
})

test('held is what says that it is short, and objects that do not say their length', () => {
  const cases: [HeaderList, RequestRecord, boolean][] = [
    [JSON_HEAD, recordOf(), true],
    [JSON_HEAD, recordOf(false, false), false],
    [[':status', '200', 'content-type', 'text/plain'], recordOf(), false],
    [[':status', '200', 'content-type', 'text/plain', 'content-length', '10'], recordOf(false, false), true],
    [withLength(10), recordOf(), true],
    [withLength(MAX_HELD_BYTES + 1), recordOf(), false],
    [withLength('1e2'), recordOf(), false],
    // The backend of a log or a proxied request decides when it continues.
    [withLength(10), recordOf(true), false],
    [JSON_HEAD, recordOf(true), false],
  ]
  for (const [head, record, expected] of cases) assert.equal(hold(head, record) !== undefined, expected, head.join(' '))
})

test('the head counts against the limit of an answer', () => {
  const large: HeaderList = [...JSON_HEAD, 'x-large', 'y'.repeat(MAX_HELD_BYTES)]
  assert.equal(hold(large), undefined)
  const head: HeaderList = [...JSON_HEAD, 'x-half', 'y'.repeat(MAX_HELD_BYTES / 2)]
  const room = MAX_HELD_BYTES - headerListBytes(head)
  assert.equal(hold([...head, 'content-length', String(room)]), undefined)
  const held = hold(head)
  assert.equal(heldBytes(), headerListBytes(head))
  assert.equal(held?.hold(Buffer.alloc(room)), true)
  assert.equal(held?.hold(Buffer.alloc(1)), false)
})

test('heads of a thread are bounded, whatever bodies follow', () => {
  const head: HeaderList = [...JSON_HEAD, 'x-large', 'y'.repeat(20_000)]
  const fitting = Math.floor(MAX_ALL_HELD_BYTES / headerListBytes(head))
  for (let i = 0; i < fitting + 100; i++) assert.equal(hold(head) !== undefined, i < fitting)
  assert.equal(heldBytes(), fitting * headerListBytes(head))
})

test('bodies count as the memory that they lie in', () => {
  const headBytes = headerListBytes(JSON_HEAD)
  const body = Buffer.alloc(2_049)
  const taken: number[] = []
  for (let i = 0; i < 1_000; i++) {
    const held = hold(JSON_HEAD)
    if (held?.hold(body) === true) taken.push(heldBytes())
    else held?.discard()
  }
  assert.equal(taken[0], 32 * 1024 + headBytes)
  assert.equal(taken.length, Math.floor(MAX_ALL_HELD_BYTES / (32 * 1024 + headBytes)))
})

test('what is passed on or discarded is given back once', () => {
  const got: Buffer[] = []
  const client: Stream = {
    queued: 0,
    headers: () => undefined,
    body: (chunk) => void got.push(Buffer.from(chunk)),
    trailers: () => undefined,
    credit: () => undefined,
    reset: () => undefined,
  }
  const held = [hold(JSON_HEAD), hold(JSON_HEAD), hold(JSON_HEAD)]
  for (const each of held) for (let i = 0; i < 3; i++) each?.hold(Buffer.from('x'.repeat(1_500)))
  const each = heldBytes() / 3
  assert.equal(held[1]?.passOn(client), 4_500)
  assert.equal(Buffer.concat(got).length, 4_500)
  held[1]?.discard()
  assert.equal(heldBytes(), 2 * each)
  held[0]?.discard()
  held[2]?.discard()
  assert.equal(heldBytes(), 0)
})

test('one that is over points to no later one: garbage of the old generation would keep them all', () => {
  const [first, second, third] = [hold(JSON_HEAD), hold(JSON_HEAD), hold(JSON_HEAD)]
  for (const held of [second, first, third]) {
    held?.discard()
    assert.deepEqual([held?.before, held?.after], [undefined, undefined])
  }
})
