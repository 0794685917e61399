// What the kernel has accepted, and the process has not, when a drain begins: closing the port would reset it.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import process from 'node:process'
import { test } from 'node:test'
import { listen } from '../../src/gateway/io/listener/listener-socket.ts'
import { connectError } from '../harness/clients/connect-error.ts'
import { BARE_PORT } from '../harness/gateways/bare-port.ts'
import { waitFor } from '../harness/wait.ts'

test('connections in the queue of the port when a drain begins are accepted before it closes', async () => {
  const listener = await listen(BARE_PORT)
  const ends: string[] = []
  const sockets = Array.from({ length: 20 }, () => {
    const socket = connect({ host: '127.0.0.1', port: listener.port })
    socket.on('error', (error) => ends.push(error.message)).on('close', () => ends.push('closed'))
    return socket.resume()
  })
  // Their handshakes are complete in the kernel, and the event loop has not looked at the port since.
  await new Promise<void>((resolve) => process.nextTick(resolve))
  listener.drain()
  assert.ok(listener.connections() > 0, 'a drain waits for them')
  await waitFor('the port to close', async () => (await connectError(listener.port)) === 'ECONNREFUSED')
  await waitFor('those that only looked to be gone', () => listener.connections() <= sockets.length)
  assert.equal(listener.connections(), sockets.length)
  assert.deepEqual(ends, [])
  for (const socket of sockets) socket.destroy()
  await waitFor('their end', () => listener.connections() === 0)
})
