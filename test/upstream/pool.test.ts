// A request that is sent before it is known whether the endpoint speaks h2: its body arrives whole, whichever it is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RequestClass } from '../../src/gateway/io/upstream/pool.ts'
import { startHttp1Stub } from '../harness/upstreams/stub-http1.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { ask, endpointAt, type Outcome, type TestEndpoint } from '../harness/upstreams/upstream-exchange.ts'

const CHUNKS = ['one ', 'two ', 'three'].map((text) => Buffer.from(text))

/** Sends the chunks on one of the very first requests to the endpoint, some of them later. */
function upload({ pool }: TestEndpoint, kind: RequestClass): Promise<Outcome> {
  const { stream, outcome } = ask(pool, { kind, method: 'POST', path: '/api/v1/pods', end: false })
  const [first = Buffer.alloc(0), ...rest] = CHUNKS
  stream.body(first, false)
  setImmediate(() => rest.forEach((chunk, i) => void stream.body(chunk, i === rest.length - 1)))
  return outcome
}

const WHOLE = { status: '200', text: 'one two three', reset: undefined }

test('an endpoint that speaks HTTP/1.1 alone: every class, the shared fields too', async () => {
  const stub = await startHttp1Stub()
  const shared: unknown[] = []
  stub.answer = ({ message, response }) => {
    shared.push(message.headers['x-shared'])
    message.pipe(response)
  }
  const endpoint = endpointAt(stub.port)
  const outcomes = (['unary', 'unary', 'watch', 'anonymous'] as const).map((kind) => upload(endpoint, kind))
  assert.deepEqual(await Promise.all(outcomes), [WHOLE, WHOLE, WHOLE, WHOLE])
  assert.deepEqual(shared, ['yes', 'yes', 'yes', 'yes'])
  assert.equal(endpoint.pool.describe().protocol, 'http/1.1')
  assert.deepEqual(await upload(endpoint, 'unary'), WHOLE)
  assert.deepEqual(endpoint.broken, [], 'that it speaks no h2 is no failure')
  endpoint.pool.destroy()
  await stub.stop()
})

test('an endpoint that speaks h2', async () => {
  const stub = await startStub()
  stub.answer = ({ stream }) => {
    stream.respond([':status', '200'])
    stream.pipe(stream)
  }
  const endpoint = endpointAt(stub.port)
  assert.deepEqual(await Promise.all([upload(endpoint, 'unary'), upload(endpoint, 'watch')]), [WHOLE, WHOLE])
  assert.equal(endpoint.pool.describe().protocol, 'h2')
  assert.deepEqual(stub.seen[0]?.values('x-shared'), ['yes'])
  endpoint.pool.destroy()
  await stub.stop()
})

test('a body that is complete, or trailers, before the connection is there', async () => {
  const stub = await startStub()
  let trailers: unknown
  stub.answer = ({ stream }) => {
    stream.on('trailers', (fields) => {
      trailers = fields['x-sum']
    })
    stream.respond([':status', '200'])
    stream.pipe(stream)
  }
  const endpoint = endpointAt(stub.port)
  const whole = ask(endpoint.pool, { method: 'POST', end: false })
  whole.stream.body(Buffer.from('whole'), true)
  const trailed = ask(endpoint.pool, { method: 'POST', end: false })
  trailed.stream.body(Buffer.from('trailed'), false)
  trailed.stream.trailers(['x-sum', '7'])
  assert.equal(whole.stream.queued, 5)
  assert.equal((await whole.outcome).text, 'whole')
  assert.equal((await trailed.outcome).text, 'trailed')
  assert.equal(trailers, '7')
  endpoint.pool.destroy()
  await stub.stop()
})
