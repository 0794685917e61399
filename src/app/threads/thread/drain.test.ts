// A drain and the connections that are on their way between two threads while it begins.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { systemClock } from '../../../io/world/clock.ts'
import { ConnectionPlaces } from '../../../state/connection-places.ts'
import { RunningRequests } from '../../../state/running.ts'
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

/** Other drains that began at the same time have ended. */
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
  // Never answered: it is served here in the end.
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
