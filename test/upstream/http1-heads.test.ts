// Heads and trailers of answers over HTTP/1.1: within the limits they pass, beyond them the connection ends while they come. The endpoint is not
// blamed: a pod may have sent them through its server.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { threadAnswers } from '../../src/kube/io/answers/thread-answers.ts'
import {
  ask,
  endpointAt,
  type Outcome,
  type RawUpstream,
  startRawUpstream,
  type TestEndpoint,
} from '../harness/upstreams/upstream-exchange.ts'
import { waitFor } from '../harness/wait.ts'

const OK = 'HTTP/1.1 200 OK\r\n'
const LENGTH = 'content-length: 2\r\n'
const CHUNKED = 'transfer-encoding: chunked\r\n'
const EARLY = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'
const KIB = 1024
const PROTOCOL_ERROR: Omit<Outcome, 'text'> = { status: '', reset: 'protocol' }

let upstream: RawUpstream
let endpoint: TestEndpoint

afterEach(async () => {
  endpoint.pool.destroy()
  await upstream.stop()
})

/** The answer to a request is `text`, which never ends if `again` is there. */
async function answered(text: string, again = ''): Promise<Outcome> {
  upstream = await startRawUpstream((socket) => {
    const more = (): void => {
      while (!socket.destroyed && socket.write(again));
    }
    socket.once('data', () => {
      socket.write(text)
      if (again === '') return
      socket.on('drain', more)
      more()
    })
  }, 'http/1.1')
  endpoint = endpointAt(upstream.port)
  return await ask(endpoint.pool).outcome
}

function held(): number {
  return threadAnswers.known.heldBy('the gateway itself, of cluster "prod.example.com"')
}

for (const [what, text] of [
  ['3,999 fields', `${OK}${LENGTH}${'a: b\r\n'.repeat(3_998)}\r\nok`],
  ['a field of 250 KiB', `${OK}${LENGTH}x: ${'y'.repeat(250 * KIB)}\r\n\r\nok`],
  ['100 interim heads', `${EARLY.repeat(100)}${OK}${LENGTH}\r\nok`],
  ['3,999 trailers', `${OK}${CHUNKED}\r\n2\r\nok\r\n0\r\n${'a: b\r\n'.repeat(3_999)}\r\n`],
] as const) {
  test(`${what} pass, and nothing of them stays charged`, async () => {
    assert.deepEqual(await answered(text), { status: '200', text: 'ok', reset: undefined })
    assert.equal(held(), 0)
    const again = ask(endpoint.pool).outcome
    for (const socket of upstream.sockets) socket.write(`${OK}${LENGTH}\r\nok`)
    assert.equal((await again).text, 'ok', 'the connection goes on')
  })
}

for (const [what, text, again, last] of [
  ['fields', OK, 'a:\r\n'.repeat(4 * KIB), ''],
  ['a field', `${OK}x: `, 'y'.repeat(16 * KIB), ''],
  ['interim heads', '', EARLY.repeat(KIB), '103'],
  ['trailers', `${OK}${CHUNKED}\r\n2\r\nok\r\n0\r\n`, 'a:\r\n'.repeat(4 * KIB), '200'],
] as const) {
  test(`${what} without an end: the connection ends, and the endpoint is not blamed`, async () => {
    const { status, reset } = await answered(text, again)
    assert.deepEqual({ status, reset }, { ...PROTOCOL_ERROR, status: last })
    await waitFor('the end of the connection', () => upstream.sockets.every(({ destroyed }) => destroyed))
    assert.deepEqual(endpoint.broken, [])
    assert.equal(held(), 0)
  })
}

test('an endpoint that speaks HTTP/1.1 and then refuses connections is a failed request, and nothing is thrown', async () => {
  assert.deepEqual(await answered(`${OK}connection: close\r\n${LENGTH}\r\nok`), {
    status: '200',
    text: 'ok',
    reset: undefined,
  })
  const thrown: unknown[] = []
  process.setUncaughtExceptionCaptureCallback((error) => void thrown.push(error))
  try {
    await upstream.stop()
    const { reset } = await ask(endpoint.pool).outcome
    await new Promise((resolve) => setImmediate(resolve))
    assert.notEqual(reset, undefined)
  } finally {
    process.setUncaughtExceptionCaptureCallback(null)
  }
  assert.deepEqual(thrown, [])
})
