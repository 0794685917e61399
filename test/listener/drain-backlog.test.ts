// What the kernel has accepted, and the process has not, when a drain begins: closing the port would reset it.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import process from 'node:process'
import { test } from 'node:test'
import { listen } from '../../src/io/listener/listener-socket.ts'
import { waitFor } from '../harness/wait.ts'

test('connections in the queue of the port when a drain begins are served', async () => {
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    maxHeaderBytes: 4096,
    maxConcurrentStreams: 1,
    headerTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    maxConnectionsPerAddress: 0,
    contexts: { forAddress: () => assert.fail(), forCluster: () => assert.fail() },
    clusterForServerName: () => undefined,
    clusterForAddress: () => undefined,
    handler: () => assert.fail(),
    onUpgrade: () => assert.fail(),
  })
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
  await waitFor('all to be accepted', () => listener.connections() === sockets.length || ends.length > 0)
  assert.deepEqual(ends, [])

  listener.drain()
  const late = connect({ host: '127.0.0.1', port: listener.port })
  const refused = await new Promise<NodeJS.ErrnoException>((resolve) => late.once('error', resolve))
  assert.equal(refused.code, 'ECONNREFUSED')
  for (const socket of sockets) socket.destroy()
  await waitFor('their end', () => listener.connections() === 0)
})
