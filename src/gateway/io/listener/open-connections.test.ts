import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { waitFor } from '../../../../test/harness/wait.ts'
import { BoundedConnections, endsOf, SourceConnections } from './open-connections.ts'

test('each address has so many connections at a time', () => {
  const sources = new SourceConnections(2)
  const open = (address: string): EventEmitter | undefined => {
    const socket = new EventEmitter()
    return sources.admit(socket, address) ? socket : undefined
  }
  const first = open('192.0.2.1')
  assert.ok(first !== undefined && open('::ffff:192.0.2.1') !== undefined)
  assert.equal(open('192.0.2.1'), undefined)
  assert.ok(open('192.0.2.2') !== undefined)
  first.emit('close')
  assert.ok(open('192.0.2.1') !== undefined)
  assert.equal(open('192.0.2.1'), undefined, 'the one that was refused did not count, and did not free a place')
  assert.ok(open('2001:db8::1') !== undefined && open('2001:db8::2') !== undefined)
  assert.equal(open('2001:db8::3'), undefined, 'a network of 64 bits is one host')
  assert.ok(open('2001:db8:0:1::1') !== undefined)
})

test('0 means no limit', () => {
  const sources = new SourceConnections(0)
  for (let i = 0; i < 1_000; i++) assert.ok(sources.admit(new EventEmitter(), '192.0.2.1'))
})

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Port {
  readonly connections: BoundedConnections
  /** Opens a connection; `closed` tells whether the server has closed it. */
  open(localAddress: string): Promise<{ closed(): boolean }>
}

/** @param answering whether connections of an address have a request whose response never completes */
async function openPort(answering: (address: string) => boolean): Promise<Port> {
  const connections = new BoundedConnections({ total: 8, perAddress: 4 })
  const admitted = new Set<string>()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    const ends = endsOf(socket)
    connections.admit(socket)
    if (!socket.destroyed && answering(socket.remoteAddress ?? '')) connections.answering(ends, 1)
    admitted.add(`${socket.remoteAddress} ${socket.remotePort}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  const { port } = server.address() as AddressInfo
  return {
    connections,
    async open(localAddress) {
      const socket: Socket = connect({ host: '127.0.0.1', port, localAddress })
      closers.push(() => socket.destroy())
      socket.on('error', () => undefined).resume()
      let closed = false
      socket.once('close', () => {
        closed = true
      })
      await once(socket, 'connect')
      const key = `${socket.localAddress} ${socket.localPort}`
      await waitFor('the server to see it', () => admitted.has(key))
      return { closed: () => closed }
    },
  }
}

test('addresses whose answers are never read do not keep out another one', async () => {
  const port = await openPort((address) => address !== '127.0.0.9')
  for (const address of ['127.0.0.2', '127.0.0.3']) for (let i = 0; i < 4; i++) await port.open(address)
  assert.equal(port.connections.size, 8)
  const probe = await port.open('127.0.0.9')
  // The client of one that was closed reconnects, before the probe has sent its request.
  const others = [await port.open('127.0.0.4'), await port.open('127.0.0.5')]
  await port.open('127.0.0.2')
  await port.open('127.0.0.3')
  assert.equal(port.connections.size, 8)
  for (const one of [probe, ...others]) assert.equal(one.closed(), false)
})

test('an address that has all it may have, none of them idle, is refused one more', async () => {
  const port = await openPort(() => true)
  const first = [await port.open('127.0.0.2'), await port.open('127.0.0.2')]
  for (let i = 0; i < 2; i++) await port.open('127.0.0.2')
  const more = await port.open('127.0.0.2')
  await waitFor('the last to be closed', () => more.closed())
  for (const one of first) assert.equal(one.closed(), false)
})
