// When handshakes begin: one in a turn of the event loop, addresses by turns, and only for a whole ClientHello. What a turn costs is
// counted by what happens in it, not by time.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import {
  type HandshakeFailure,
  Handshakes,
  type HandshakesOptions,
} from '../../src/gateway/io/listener/handshakes/handshakes.ts'
import { addressSource } from '../../src/kit/core/shares/call-source.ts'
import { tickAll } from '../../src/kit/io/world/coarse-ticker.ts'
import { waitFor } from '../harness/wait.ts'

const BURST = 300
const TIMEOUT_MS = 10_000

/** A ClientHello as far as its framing goes. */
const HELLO: Buffer = (() => {
  const message = Buffer.alloc(200)
  message.writeUInt32BE((1 << 24) | (message.length - 4))
  return Buffer.concat([Buffer.from([22, 3, 1, 0, message.length]), message])
})()
const SECOND_FLIGHT = Buffer.alloc(500, 2)

const cleanups: (() => unknown)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

/** Stands in for TLS: what of a connection happened in which turn. */
interface Begun {
  readonly address: string
  readonly turn: number
  readonly socket: Socket
  received: Buffer
  secondFlightInTurn: number
}

interface Port {
  readonly handshakes: Handshakes
  readonly begun: readonly Begun[]
  readonly failed: readonly { readonly source: string; readonly reason: HandshakeFailure }[]
  readonly accepted: () => number
  /** Resolves when the server has accepted it. */
  open(localAddress?: string): Promise<Socket>
}

async function openPort(options: Partial<HandshakesOptions> = {}): Promise<Port> {
  const begun: Begun[] = []
  const failed: { source: string; reason: HandshakeFailure }[] = []
  let accepted = 0
  const handshakes = new Handshakes({
    timeoutMs: TIMEOUT_MS,
    onFailed: (source, reason) => failed.push({ source, reason }),
    ...options,
  })
  let turn = 0
  let counting = true
  const count = (): void => {
    turn++
    if (counting) setImmediate(count)
  }
  count()
  cleanups.push(() => {
    counting = false
  })
  const server: Server = createServer({ pauseOnConnect: true }, (socket) => {
    accepted++
    socket.on('error', () => undefined)
    Reflect.set(socket, 'readableFlowing', null)
    const address = socket.remoteAddress ?? ''
    handshakes.add(socket, addressSource(address), {
      begin: () => {
        const one: Begun = { address, turn, socket, received: Buffer.alloc(0), secondFlightInTurn: -1 }
        begun.push(one)
        socket.on('data', (chunk) => {
          one.received = Buffer.concat([one.received, chunk])
          if (one.received.length >= HELLO.length + SECOND_FLIGHT.length) {
            one.secondFlightInTurn = turn
            handshakes.secured(socket)
          }
        })
        socket.resume()
      },
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    handshakes,
    begun,
    failed,
    accepted: () => accepted,
    async open(localAddress = '127.0.0.1') {
      const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
      sockets.add(socket)
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      return socket
    },
  }
}

async function openMany(
  port: Port,
  count: number,
  address: (i: number) => string = () => '127.0.0.1',
): Promise<Socket[]> {
  const before = port.accepted()
  const sockets: Socket[] = []
  for (let i = 0; i < count; i++) sockets.push(await port.open(address(i)))
  await waitFor('all accepted', () => port.accepted() === before + count)
  return sockets
}

/** How often something happened in the turn in which it happened most. */
function mostInATurn(turns: readonly number[]): number {
  const counts = new Map<number, number>()
  for (const turn of turns) counts.set(turn, (counts.get(turn) ?? 0) + 1)
  return Math.max(...counts.values())
}

describe('a burst of ClientHellos in the same moment', () => {
  test('begins one handshake in a turn, whole, and none is lost', async () => {
    const port = await openPort()
    for (const socket of await openMany(port, BURST)) socket.write(HELLO)
    await waitFor('all begun', () => port.begun.length === BURST)
    assert.equal(mostInATurn(port.begun.map(({ turn }) => turn)), 1)
    await waitFor('all received', () => port.begun.every(({ received }) => received.equals(HELLO)))
    assert.deepEqual(port.handshakes.counts(), { hello: 0, queued: 0, inProgress: BURST })
  })

  test('another address that comes behind it is one of the next', async () => {
    const port = await openPort()
    const [burst, other] = [await openMany(port, BURST), await port.open('127.0.0.2')]
    for (const socket of [...burst, other]) socket.write(HELLO)
    await waitFor('all begun', () => port.begun.length === BURST + 1)
    const place = port.begun.findIndex(({ address }) => address === '127.0.0.2')
    assert.ok(place < BURST / 4, `${place} of the burst before it`)
  })

  test('while the thread has other work, it goes on, too', async () => {
    let work = 0
    const port = await openPort({ otherWork: () => work++ })
    for (const socket of await openMany(port, BURST)) socket.write(HELLO)
    await waitFor('all begun', () => port.begun.length === BURST)
    assert.equal(mostInATurn(port.begun.map(({ turn }) => turn)), 1)
  })
})

describe('what clients send next', () => {
  test('all in the same moment: few are read in a turn, and none is lost', async () => {
    const port = await openPort()
    const sockets = await openMany(port, BURST)
    for (const socket of sockets) socket.write(HELLO)
    await waitFor('all begun', () => port.begun.length === BURST)
    for (const socket of sockets) socket.write(SECOND_FLIGHT)
    await waitFor('all done', () => port.begun.every(({ secondFlightInTurn }) => secondFlightInTurn >= 0))
    assert.ok(mostInATurn(port.begun.map(({ secondFlightInTurn }) => secondFlightInTurn)) <= 2)
    assert.deepEqual(port.handshakes.counts(), { hello: 0, queued: 0, inProgress: 0 })
  })

  test('a client is served although hundreds before it, of another address, are silent', async () => {
    const port = await openPort()
    const silent = await openMany(port, BURST)
    const other = await port.open('127.0.0.2')
    for (const socket of [other, ...silent]) socket.write(HELLO)
    await waitFor('all begun', () => port.begun.length === BURST + 1)
    other.write(SECOND_FLIGHT)
    await waitFor('the other is done', () => port.handshakes.counts().inProgress === BURST)
  })

  test('with too many in progress, the oldest of the address with the most gives way', async () => {
    const port = await openPort({ maxInProgress: 10 })
    const addresses = ['127.0.0.2', ...Array.from({ length: 9 }, () => '127.0.0.1'), '127.0.0.3', '127.0.0.4']
    for (const [i, address] of addresses.entries()) {
      const socket = await port.open(address)
      socket.write(HELLO)
      await waitFor('begun', () => port.begun.length === i + 1)
    }
    assert.deepEqual(
      port.failed,
      [0, 1].map(() => ({ source: 'address 127.0.0.1', reason: 'overflow' })),
    )
    await waitFor('closed', () => port.begun[1]?.socket.destroyed === true && port.begun[2]?.socket.destroyed === true)
    assert.deepEqual(
      port.begun.map(({ socket }) => !socket.destroyed),
      addresses.map((_, i) => i !== 1 && i !== 2),
    )
  })
})

describe('before a handshake', () => {
  test('a ClientHello that comes octet by octet begins with its last one', async () => {
    const port = await openPort()
    const socket = await port.open()
    for (const octet of HELLO.subarray(0, -1)) {
      socket.write(Buffer.of(octet))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await waitFor('accepted', () => port.handshakes.counts().hello === 1)
    assert.equal(port.begun.length, 0)
    socket.write(HELLO.subarray(-1))
    await waitFor('begun', () => port.begun[0]?.received.equals(HELLO))
  })

  test('a client is served although thousands of sockets are silent, and those close at the deadline', async () => {
    const port = await openPort()
    await openMany(port, 10 * BURST, (i) => `127.0.${1 + (i % 8)}.1`)
    const other = await port.open('127.0.0.2')
    other.write(HELLO)
    await waitFor('begun', () => port.begun.length === 1)
    assert.equal(port.handshakes.counts().hello, 10 * BURST)
    tickAll(performance.now() + TIMEOUT_MS)
    assert.deepEqual(port.handshakes.counts(), { hello: 0, queued: 0, inProgress: 0 })
    assert.equal(port.failed.length, 10 * BURST + 1)
  })

  test('silent ones that speak at last, all at once, are heard', async () => {
    const port = await openPort()
    for (const socket of (await openMany(port, BURST)).reverse()) socket.write(HELLO)
    await waitFor('all begun', () => port.begun.length === BURST)
  })

  test('a connection that has closed before its turn has none', async () => {
    const port = await openPort()
    const sockets = await openMany(port, BURST)
    for (const socket of sockets) socket.write(HELLO)
    for (const socket of sockets.slice(BURST / 2)) socket.destroy()
    await waitFor('no connection waits', () => {
      const { hello, queued } = port.handshakes.counts()
      return hello === 0 && queued === 0
    })
    assert.ok(port.begun.length < BURST, `${port.begun.length} begun`)
  })

  test('what is not TLS is closed; plain HTTP is told, as by Go', async () => {
    const port = await openPort()
    const http = await port.open()
    const answer: Buffer[] = []
    http.on('data', (chunk: Buffer) => answer.push(chunk))
    http.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const garbage = await port.open()
    garbage.write(Buffer.alloc(100, 7))
    garbage.resume()
    const large = await port.open()
    large.write(Buffer.from([22, 3, 1, 0xff, 0xff]))
    large.resume()
    await waitFor('closed', () => port.failed.length === 3)
    await waitFor('answered', () => Buffer.concat(answer).toString().startsWith('HTTP/1.0 400 Bad Request'))
    assert.equal(port.begun.length, 0)
  })
})
