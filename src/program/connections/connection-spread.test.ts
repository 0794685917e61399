// Passing connections between threads that respond, do not respond, are full, or die. Both ends of each line are in this thread, or one is in a
// worker controlled by the test.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { waitFor } from '../../../test/harness/wait.ts'
import { ConnectionPlaces } from '../../gateway/state/connection-places.ts'
import { ConnectionSpread, type OfferResult } from './connection-spread.ts'

interface Thread {
  readonly spread: ConnectionSpread
  readonly served: Socket[]
  readonly results: OfferResult[]
  readonly errors: Error[]
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function thread(places: ConnectionPlaces, index: number): Thread {
  const served: Socket[] = []
  const results: OfferResult[] = []
  const errors: Error[] = []
  const spread = new ConnectionSpread({
    thread: index,
    places,
    serve(_listener, socket) {
      served.push(socket)
      socket.on('data', () => socket.write(`thread ${index}`))
      socket.on('error', () => undefined)
    },
    onOffered: (result) => results.push(result),
    onUnsupported: (error) => errors.push(error),
  })
  closers.push(() => {
    spread.close()
    for (const socket of served) socket.destroy()
  })
  return { spread, served, results, errors }
}

function setUp(threads: number): ConnectionPlaces {
  return new ConnectionPlaces(ConnectionPlaces.allocate(threads))
}

/** Accepts for the thread. */
async function listen({ spread }: Thread): Promise<number> {
  const server: Server = createServer({ pauseOnConnect: true }, (socket) => spread.accepted(0, socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  return (server.address() as AddressInfo).port
}

function client(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  closers.push(() => socket.destroy())
  return socket
}

/** Returns the response to a client. */
async function ask(socket: Socket): Promise<string> {
  socket.write('hello')
  const [data] = (await once(socket, 'data')) as [Buffer]
  return data.toString()
}

function line(a: Thread, b: Thread): void {
  const { port1, port2 } = new MessageChannel()
  a.spread.addLine(1, port1)
  b.spread.addLine(0, port2)
}

function counts(places: ConnectionPlaces): number[] {
  return Array.from({ length: places.threads }, (_, i) => places.load(i).connections)
}

function openSockets(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length
}

/** A worker that reads its line only on command: what it did not read stays there. */
function mute(port: MessagePort): Worker {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads')
    parentPort.on('message', (what) => {
      if (what === 'block') { parentPort.postMessage('blocked'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) }
      // Takes every offer, and is never ready for what comes then.
      if (what === 'take one') workerData.once('message', ({ id }) => {
        workerData.postMessage({ type: 'take', id })
        parentPort.postMessage('took')
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
      })
    })`
  const worker = new Worker(source, { eval: true, workerData: port, transferList: [port] })
  closers.push(() => worker.terminate())
  return worker
}

describe('two threads that answer', () => {
  test('every second connection is passed, and closing one frees its place', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    line(a, b)
    a.spread.open()
    b.spread.open()
    const port = await listen(a)
    const clients = Array.from({ length: 10 }, () => client(port))
    const answers = await Promise.all(clients.map(ask))
    assert.deepEqual(answers.toSorted(), [...Array(5).fill('thread 0'), ...Array(5).fill('thread 1')])
    assert.deepEqual(counts(places), [5, 5])
    for (const socket of clients) socket.destroy()
    await waitFor('free places', () => counts(places).every((n) => n === 0))
  })

  test('a thread that drains is not passed to', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    line(a, b)
    a.spread.open()
    b.spread.open()
    b.spread.drain()
    const port = await listen(a)
    assert.deepEqual(await Promise.all([ask(client(port)), ask(client(port))]), ['thread 0', 'thread 0'])
    assert.deepEqual([counts(places), a.results], [[2, 0], []])
  })

  test('one that drains when the offer comes refuses it', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    line(a, b)
    a.spread.open()
    b.spread.drain()
    // From this thread's point of view.
    places.setOpen(1, true)
    const port = await listen(a)
    assert.deepEqual(await Promise.all([ask(client(port)), ask(client(port))]), ['thread 0', 'thread 0'])
    assert.ok(a.results.length > 0 && a.results.every((result) => result === 'refused'))
    assert.deepEqual(counts(places), [2, 0])
  })

  test('thousands that open and close at once, some of them broken off: nothing is left', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    line(a, b)
    a.spread.open()
    b.spread.open()
    const before = openSockets()
    const port = await listen(a)
    for (let round = 0; round < 20; round++) {
      const clients = Array.from({ length: 100 }, () => client(port))
      await Promise.all(clients.map((socket) => once(socket, 'connect')))
      for (const [i, socket] of clients.entries()) {
        if (i % 3 === 0) socket.resetAndDestroy()
        else if (i % 3 === 1) socket.resume().end('hello')
        else socket.destroy()
      }
    }
    await waitFor('free places', () => counts(places).every((n) => n === 0))
    assert.ok(a.results.includes('passed'))
    // The listening socket remains.
    await waitFor('closed sockets', () => openSockets() <= before + 1)
  })

  test('a client that never sends a byte is held by the thread that got it', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    line(a, b)
    a.spread.open()
    b.spread.open()
    const port = await listen(a)
    const silent = [client(port), client(port)]
    await waitFor('one each', () => a.served.length === 1 && b.served.length === 1)
    for (const socket of b.served) socket.destroy()
    await waitFor('its place is free', () => counts(places)[1] === 0)
    assert.equal(silent.length, 2)
  })
})

describe('a thread that does not answer', () => {
  test('gets no connection: what it was offered is served here, and nothing is offered until it speaks', async () => {
    const places = setUp(2)
    const a = thread(places, 0)
    const { port1, port2 } = new MessageChannel()
    a.spread.addLine(1, port1)
    const worker = mute(port2)
    worker.postMessage('block')
    await once(worker, 'message')
    a.spread.open()
    places.setOpen(1, true)
    const port = await listen(a)
    assert.deepEqual(await Promise.all([ask(client(port)), ask(client(port))]), ['thread 0', 'thread 0'])
    const unanswered = a.results.length
    assert.ok(unanswered >= 1 && a.results.every((result) => result === 'unanswered'))
    assert.deepEqual(counts(places), [2, 0])
    for (let i = 0; i < 10; i++) await ask(client(port))
    assert.equal(a.results.length, unanswered, 'no further offers')
  })

  test('but gets something done is waited for: many clients at once keep a thread busy', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    const { port1, port2 } = new MessageChannel()
    a.spread.addLine(1, port1)
    a.spread.open()
    b.spread.open()
    const port = await listen(a)
    const answers = Promise.all([ask(client(port)), ask(client(port))])
    let beats = 0
    const working = setInterval(() => {
      places.beat(1)
      // Three times the wait for a hanging thread, by any clock.
      if (++beats === 15) b.spread.addLine(0, port2)
    }, 50)
    closers.push(() => clearInterval(working))
    assert.deepEqual((await answers).toSorted(), ['thread 0', 'thread 1'])
    assert.deepEqual(a.results, ['passed'])
  })

  test('is offered connections again once it has answered', async () => {
    const places = setUp(2)
    const [a, b] = [thread(places, 0), thread(places, 1)]
    const { port1, port2 } = new MessageChannel()
    a.spread.addLine(1, port1)
    a.spread.open()
    b.spread.open()
    const port = await listen(a)
    // The line has not been read yet.
    assert.deepEqual(await Promise.all([ask(client(port)), ask(client(port))]), ['thread 0', 'thread 0'])
    b.spread.addLine(0, port2)
    await waitFor('a passed connection', async () => (await ask(client(port))) === 'thread 1')
    const [of0 = 0, of1 = 0] = counts(places)
    assert.equal(of0 + of1, a.served.length + b.served.length)
  })

  test('dies with a connection on its way to it: the client is told, nothing leaks, its place is free', async () => {
    const places = setUp(2)
    const a = thread(places, 0)
    const before = openSockets()
    const { port1, port2 } = new MessageChannel()
    a.spread.addLine(1, port1)
    const worker = mute(port2)
    worker.postMessage('take one')
    a.spread.open()
    places.setOpen(1, true)
    const port = await listen(a)
    const [kept, lost] = [client(port), client(port)]
    const closed = once(lost, 'close')
    const took = once(worker, 'message')
    // The worker may be slow on a busy machine: as long as it makes progress, its offer is not withdrawn.
    const working = setInterval(() => places.beat(1), 50)
    closers.push(() => clearInterval(working))
    assert.equal(await ask(kept), 'thread 0')
    await took
    await waitFor('a passed connection', () => a.results.includes('passed'))
    clearInterval(working)
    await worker.terminate()
    places.died(1)
    await closed
    assert.deepEqual(counts(places), [1, 0])
    assert.equal(await ask(kept), 'thread 0')
    kept.destroy()
    await waitFor('closed sockets', () => openSockets() <= before + 1)
  })

  test('dies before it has answered: the connection is served here', async () => {
    const places = setUp(2)
    const a = thread(places, 0)
    const { port1, port2 } = new MessageChannel()
    a.spread.addLine(1, port1)
    const worker = mute(port2)
    await once(worker, 'online')
    a.spread.open()
    places.setOpen(1, true)
    const port = await listen(a)
    const answers = Promise.all([ask(client(port)), ask(client(port))])
    await worker.terminate()
    places.died(1)
    assert.deepEqual(await answers, ['thread 0', 'thread 0'])
    assert.deepEqual(counts(places), [2, 0])
  })
})

test('a Node that cannot pass sockets: each thread keeps what it accepts, and it is said once', async () => {
  const places = setUp(2)
  const [a, b] = [thread(places, 0), thread(places, 1)]
  const { port1, port2 } = new MessageChannel()
  const post = port1.postMessage.bind(port1)
  Reflect.set(port1, 'postMessage', (message: unknown, list?: readonly unknown[]) => {
    if (list !== undefined && list.length > 0) throw new TypeError('Found invalid object in transferList')
    post(message)
  })
  a.spread.addLine(1, port1)
  b.spread.addLine(0, port2)
  a.spread.open()
  b.spread.open()
  const port = await listen(a)
  const answers: string[] = []
  for (let i = 0; i < 6; i++) answers.push(await ask(client(port)))
  assert.deepEqual(new Set(answers), new Set(['thread 0']))
  assert.deepEqual([a.errors.length, counts(places)], [1, [6, 0]])
})

test('this Node can pass sockets', async () => {
  // The packages and the image include a Node that can; see also the test above.
  const places = setUp(2)
  const [a, b] = [thread(places, 0), thread(places, 1)]
  line(a, b)
  a.spread.open()
  b.spread.open()
  const port = await listen(a)
  await Promise.all([ask(client(port)), ask(client(port))])
  assert.deepEqual([a.errors, a.results], [[], ['passed']])
})
