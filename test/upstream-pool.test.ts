// A request that is sent before it is known whether the endpoint speaks h2: its body arrives whole, whichever it is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUpstreamEndpoint } from '../src/io/upstream-pool.ts'
import { startHttp1Stub } from './harness/stub-http1.ts'
import { startStub } from './harness/stub-upstream.ts'

const CLIENT = { insecure: true, bearerToken: '', key: '', cert: '', ca: '', serverName: '', qps: 0, burst: 0 }

/** Sends `chunks` on the very first request to the endpoint, some of them later; resolves with status and answer. */
function upload(url: string, port: number, chunks: readonly Buffer[]): Promise<{ status: string; text: string }> {
  const compiled = { url, scheme: 'https', host: '127.0.0.1', port, disabled: false, weight: 100 } as const
  const endpoint = createUpstreamEndpoint(compiled, CLIENT, { onBroken: () => undefined })
  return new Promise((resolve, reject) => {
    let status = ''
    let text = ''
    const head = [':method', 'POST', ':path', '/api/v1/pods', ':authority', `127.0.0.1:${port}`, ':scheme', 'https']
    const stream = endpoint.open('unary', head, false, {
      onHeaders: (list) => {
        status = list[1] ?? ''
      },
      onBody: (chunk, end) => {
        text += chunk.toString()
        stream.credit(chunk.length)
        if (!end) return
        endpoint.destroy()
        resolve({ status, text })
      },
      onTrailers: () => undefined,
      onDrained: () => undefined,
      onReset: (reason) => {
        endpoint.destroy()
        reject(new Error(reason))
      },
    })
    const [first = Buffer.alloc(0), ...rest] = chunks
    stream.body(first, rest.length === 0)
    setImmediate(() => rest.forEach((chunk, i) => void stream.body(chunk, i === rest.length - 1)))
  })
}

const CHUNKS = ['one ', 'two ', 'three'].map((text) => Buffer.from(text))

test('an endpoint that speaks HTTP/1.1 alone', async () => {
  const stub = await startHttp1Stub()
  stub.answer = ({ message, response }) => {
    message.pipe(response)
  }
  assert.deepEqual(await upload(stub.url, stub.port, CHUNKS), { status: '200', text: 'one two three' })
  await stub.stop()
})

test('an endpoint that speaks h2', async () => {
  const stub = await startStub()
  stub.answer = ({ stream }) => {
    stream.respond([':status', '200'])
    stream.pipe(stream)
  }
  assert.deepEqual(await upload(stub.url, stub.port, CHUNKS), { status: '200', text: 'one two three' })
  await stub.stop()
})
