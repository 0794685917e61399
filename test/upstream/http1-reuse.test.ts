// Requests over HTTP/1.1 with bodies that an endpoint reads before it answers: all of them go over one connection, even if this thread is so busy that
// the answer is there before it is told that its write is complete.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { stubServing } from '../harness/upstreams/stub-upstream.ts'
import { ask, endpointAt } from '../harness/upstreams/upstream-exchange.ts'

const RUNS = 30
const BUSY_MS = 3

/** Tells its port, and then, when it is asked, over how many connections requests have come. */
const SERVER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { createServer } = require('node:https')
  const connections = new Set()
  const server = createServer(workerData, (request, response) => {
    let read = 0
    connections.add(request.socket)
    request.on('data', (chunk) => (read += chunk.length))
    request.on('end', () => response.end(String(read)))
  })
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
  parentPort.on('message', () => parentPort.postMessage(connections.size))
`

/** Takes most of this thread's time until the returned function is called. */
function beBusy(): () => void {
  let isOver = false
  const turn = (): void => {
    const untilMs = performance.now() + BUSY_MS
    while (performance.now() < untilMs);
    if (!isOver) setImmediate(turn)
  }
  turn()
  return () => {
    isOver = true
  }
}

for (const bytes of [0, 10, 100_000, 3_000_000]) {
  test(`bodies of ${bytes} bytes`, async () => {
    const { pair } = stubServing()
    const server = new Worker(SERVER, { eval: true, workerData: { cert: pair.certPem, key: pair.keyPem } })
    const [port] = (await once(server, 'message')) as [number]
    const { pool, broken } = endpointAt(port)
    const rest = beBusy()
    try {
      for (let run = 0; run < RUNS; run++) {
        const { stream, outcome } = ask(pool, { method: 'POST', end: false })
        stream.body(Buffer.alloc(bytes, 'x'), true)
        assert.equal((await outcome).text, String(bytes))
      }
      server.postMessage('how many?')
      assert.deepEqual(await once(server, 'message'), [1])
      assert.deepEqual(broken, [])
    } finally {
      rest()
      pool.destroy()
      await server.terminate()
    }
  })
}
