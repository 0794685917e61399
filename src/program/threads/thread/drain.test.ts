// Drains: how long requests may run, and connections in transit between two threads when it begins.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, mock, test } from 'node:test'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { ConnectionPlaces } from '../../../gateway/state/connection-places.ts'
import { type RunningRequest, RunningRequests } from '../../../gateway/state/running.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { ConnectionSpread } from '../../connections/connection-spread.ts'
import { drainThread } from './drain.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Scene {
  readonly places: ConnectionPlaces
  readonly spread: ConnectionSpread
  readonly served: Socket[]
  /** The other thread's end of the line. */
  readonly other: MessagePort
}

function setUp(): Scene {
  const places = new ConnectionPlaces(ConnectionPlaces.allocate(2))
  const served: Socket[] = []
  const spread = new ConnectionSpread({
    thread: 0,
    places,
    serve: (_listener, socket) => void served.push(socket),
    onOffered: () => undefined,
    onUnsupported: () => undefined,
  })
  const { port1, port2 } = new MessageChannel()
  spread.addLine(1, port1)
  spread.open()
  closers.push(
    () => spread.close(),
    () => port2.close(),
    () => served.forEach((socket) => void socket.destroy()),
  )
  return { places, spread, served, other: port2 }
}

function drainOf(spread: ConnectionSpread): { ended(): boolean; readonly end: Promise<void> } {
  let ended = false
  const gateway = { running: new RunningRequests(), clock: systemClock, random: Math.random }
  const end = drainThread([spread], gateway, 60_000).then(() => {
    ended = true
  })
  return { ended: () => ended, end }
}

/** Waits until other drains that began at the same time have ended. */
async function longEnough(): Promise<void> {
  for (let i = 0; i < 3; i++) await drainOf(setUp().spread).end
}

test('waits for a connection that another thread was offered, and which it may have to serve itself', async () => {
  const { places, spread, served, other } = setUp()
  places.setOpen(1, true)
  places.take(0, () => false)
  const server = createServer({ pauseOnConnect: true }, (socket) => spread.accepted(0, socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  closers.push(() => client.destroy())
  await once(other, 'message')
  // Never answered: it is finally served here.
  await drainOf(spread).end
  assert.equal(served.length, 1)
})

test('waits for a connection that it has agreed to take', async () => {
  const { spread, other } = setUp()
  other.postMessage({ type: 'offer', id: 1 })
  const [answer] = await once(other, 'message')
  assert.equal(answer.type, 'take')
  const drain = drainOf(spread)
  await longEnough()
  assert.equal(drain.ended(), false)
  other.postMessage({ type: 'cancel', id: 1 })
  await drain.end
})

describe('in simulated time', () => {
  const DRAIN_MS = 30_000
  const STEP_MS = 10
  const OLD_MS = 60_000
  let nowMs = 0

  afterEach(() => mock.timers.reset())

  /** When each was asked to end, in milliseconds; Infinity = never. `goOn` lets them pass. */
  function drain(kinds: readonly { readonly isWatch: boolean; readonly ageMs: number }[]): {
    readonly endedMs: number[]
    goOn(ms: number): Promise<void>
    ended(): boolean
    readonly running: RunningRequests
  } {
    mock.timers.enable({ apis: ['setTimeout'] })
    nowMs = OLD_MS
    const running = new RunningRequests()
    const endedMs: number[] = kinds.map(() => Number.POSITIVE_INFINITY)
    for (const [i, { isWatch, ageMs }] of kinds.entries()) {
      const end = (): void => {
        endedMs[i] = nowMs - OLD_MS
        running.remove(request)
      }
      const request: RunningRequest = {
        cluster: 'prod',
        endpoint: 'https://192.0.2.1:6443',
        federation: '',
        requester: undefined,
        grants: [],
        longRunning: true,
        isWatch,
        monotonicMs: nowMs - ageMs,
        place: -1,
        finish: end,
        abort: end,
        abortCleanly: end,
      }
      running.add(request)
    }
    let ended = false
    const clock = { ...systemClock, monotonic: () => nowMs }
    void drainThread([], { running, clock, random: Math.random }, DRAIN_MS).then(() => {
      ended = true
    })
    const goOn = async (ms: number): Promise<void> => {
      for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
        nowMs += STEP_MS
        mock.timers.tick(STEP_MS)
        await Promise.resolve()
        await Promise.resolve()
      }
    }
    return { endedMs, goOn, ended: () => ended, running }
  }

  const watches = (count: number, ageMs = OLD_MS): { isWatch: boolean; ageMs: number }[] =>
    Array.from({ length: count }, () => ({ isWatch: true, ageMs }))

  test('nothing but a few watches runs: it is over in a small part of the time, and they do not end all at once', async () => {
    const { endedMs, goOn, ended } = drain(watches(100))
    await goOn(1_000)
    assert.equal(ended(), true)
    assert.ok(new Set(endedMs).size > 20, `${new Set(endedMs).size} moments`)
  })

  test('many watches end over a longer time, and leave half of it to be followed elsewhere', async () => {
    const { endedMs, goOn, ended } = drain(watches(10_000))
    await goOn(DRAIN_MS / 4)
    const early = endedMs.filter((ms) => ms < DRAIN_MS).length
    assert.ok(early > 4_000 && early < 6_000, `${early} of 10,000 in half of the time for watches`)
    await goOn(DRAIN_MS / 4 + 100)
    assert.equal(ended(), true)
  })

  test('a watch that has just begun is not taken for a broken one: it lives for a second', async () => {
    const { endedMs, goOn, ended } = drain([...watches(50, 0), ...watches(50, 700), ...watches(50)])
    await goOn(3_000)
    assert.equal(ended(), true)
    assert.ok(Math.min(...endedMs.slice(0, 50)) >= 1_000)
    assert.ok(Math.min(...endedMs.slice(50, 100)) >= 300)
    assert.ok(Math.min(...endedMs.slice(100)) < 300)
  })

  test('exec, attach, port-forward and logs may run as long as the service manager waits', async () => {
    const { endedMs, goOn, ended, running } = drain([{ isWatch: false, ageMs: OLD_MS }, ...watches(10)])
    await goOn(DRAIN_MS)
    assert.equal(endedMs[0], Number.POSITIVE_INFINITY)
    assert.equal(endedMs.slice(1).filter((ms) => ms > 1_000).length, 0)
    assert.equal(ended(), false)
    running.abortAll()
    await goOn(100)
    assert.equal(ended(), true)
  })
})
