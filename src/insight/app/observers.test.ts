import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createRecord, type RequestRecord } from '../../gateway/api/request-record.ts'
import type { TapEvent } from '../core/tap/tap-event.ts'
import { EVERYTHING } from '../core/tap/tap-filter.ts'
import type { TapThreadEvent } from '../core/tap/tap-messages.ts'
import { ThreadTaps } from './observers.ts'

const WATCH: RequestRecord = { ...createRecord(), cluster: 'prod', verb: 'watch', longRunning: true, code: 200 }
const LIST: RequestRecord = { ...createRecord(), cluster: 'prod', verb: 'list', code: 200 }

function follow(taps: ThreadTaps, filter = EVERYTHING, maxRps = 100, room = () => 1000) {
  const events: TapThreadEvent[] = []
  const end = taps.tap({ filter, maxRps, replica: 'gw-0' }, (event) => {
    if (events.length >= room()) return false
    events.push(event)
    return true
  })
  const shown = (): string[] =>
    events.flatMap((event) => {
      if (typeof event !== 'string') return []
      const { verb, phase } = JSON.parse(event) as TapEvent
      return [`${verb} ${phase}`]
    })
  return { events, end, shown }
}

function run(taps: ThreadTaps, record: RequestRecord): void {
  taps.requestIdentified(record)
  taps.responseStarted(record)
  taps.requestEnded(record)
}

test('a long-running request is shown when its response begins and at its end, any other at its end', () => {
  const taps = new ThreadTaps(1, () => 0)
  const { shown } = follow(taps)
  run(taps, LIST)
  run(taps, WATCH)
  assert.deepEqual(shown(), ['list ended', 'watch responding', 'watch ended'])
})

test('and when it begins, where that is asked for', () => {
  const taps = new ThreadTaps(1, () => 0)
  const { shown } = follow(taps, { ...EVERYTHING, started: true })
  run(taps, LIST)
  assert.deepEqual(shown(), ['list started', 'list ended'])
})

test('each tap has its own filter, rate and end', () => {
  const taps = new ThreadTaps(1, () => 0)
  const one = follow(taps, { ...EVERYTHING, verbs: ['watch'] })
  const other = follow(taps, EVERYTHING, 2)
  for (let i = 0; i < 5; i++) taps.requestEnded(LIST)
  taps.requestEnded(WATCH)
  other.end()
  taps.requestEnded(WATCH)
  assert.deepEqual(one.shown(), ['watch ended', 'watch ended'])
  assert.deepEqual(other.shown(), ['list ended', 'list ended'])
})

test('what is not shown is counted, and told once a second while something changes', (context) => {
  mock.timers.enable({ apis: ['setInterval'] })
  context.after(() => mock.timers.reset())
  let now = 0
  const taps = new ThreadTaps(1, () => now)
  const { events, end } = follow(taps, { ...EVERYTHING, verbs: ['list'] }, 2)
  for (let i = 0; i < 5; i++) taps.requestEnded(LIST)
  taps.requestEnded(WATCH)
  mock.timers.tick(1000)
  assert.deepEqual(events.slice(2), [{ seen: 6, matched: 5, aboveRate: 3, unread: 0 }])
  mock.timers.tick(5000)
  assert.equal(events.length, 3)
  now = 1000
  taps.requestEnded(LIST)
  mock.timers.tick(1000)
  assert.deepEqual(events.slice(4), [{ seen: 7, matched: 6, aboveRate: 3, unread: 0 }])
  taps.requestEnded(LIST)
  end()
  mock.timers.tick(5000)
  assert.equal(events.length, 6)
})

test('what the reader has no room for is counted, and told as soon as it has', (context) => {
  mock.timers.enable({ apis: ['setInterval'] })
  context.after(() => mock.timers.reset())
  let room = 2
  const taps = new ThreadTaps(1, () => 0)
  const { events } = follow(taps, EVERYTHING, 100, () => room)
  for (let i = 0; i < 5; i++) taps.requestEnded(LIST)
  mock.timers.tick(3000)
  assert.equal(events.length, 2)
  room = 3
  mock.timers.tick(1000)
  assert.deepEqual(events.at(-1), { seen: 5, matched: 5, aboveRate: 0, unread: 3 })
})
