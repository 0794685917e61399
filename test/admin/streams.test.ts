// Streams and bodies of the admin listener over real sockets.

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { request } from 'undici'
import {
  type AnyResponse,
  type PlainRequest,
  type PlainServer,
  type StreamOut,
  startPlainServer,
} from '../../src/gateway/io/listener/http-plain.ts'
import { standsStill, waitFor } from '../harness/wait.ts'

const TEXT = 'text/plain'
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(answer: (request: PlainRequest) => Promise<AnyResponse>): Promise<PlainServer> {
  const server = await startPlainServer({ host: '127.0.0.1', port: 0 }, answer)
  closers.push(() => server.stop())
  return server
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  closers.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const stream = (write: (out: StreamOut) => Promise<void>): Promise<AnyResponse> =>
  Promise.resolve({ code: 200, contentType: TEXT, stream: write })

test('what is written arrives at once, and the end is an end', async () => {
  const go = Promise.withResolvers<void>()
  const server = await serve(() =>
    stream(async (out) => {
      await out.write('one\n')
      await go.promise
      await out.write(Buffer.from('two\n'))
    }),
  )
  const { body } = await request(`http://127.0.0.1:${server.port}/`)
  const chunks: string[] = []
  for await (const chunk of body) {
    chunks.push(String(chunk))
    go.resolve()
  }
  assert.deepEqual(chunks, ['one\n', 'two\n'])
})

test('an answer may take longer than a connection may be silent: a profile takes a minute', async () => {
  const accepted: Socket[] = []
  const onSocket = (message: unknown): void => void accepted.push((message as { socket: Socket }).socket)
  subscribe('net.server.socket', onSocket)
  closers.push(() => unsubscribe('net.server.socket', onSocket))
  const go = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const server = await serve(async () => {
    asked.resolve()
    await go.promise
    return { code: 200, contentType: TEXT, body: 'late' }
  })
  const client = await open(server.port)
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await asked.promise
  assert.deepEqual(
    accepted.map(({ timeout }) => timeout),
    [0],
  )
  go.resolve()
  assert.match(String((await once(client, 'data'))[0]), /late$/)
  assert.ok((accepted[0]?.timeout ?? 0) > 0, 'silence counts again')
})

test('who sends more and more requests without waiting for answers is cut off', async () => {
  let asked = 0
  const server = await serve(({ signal }) => {
    asked++
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))))
  })
  const client = await open(server.port)
  const closed = new Promise((resolve) => client.on('close', resolve))
  client.on('error', () => undefined).resume()
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20_000))
  await closed
  assert.equal(asked, 16)
})

test('a client that does not read stops the writer; when it goes, the writer ends', async () => {
  let written = 0
  let ended = ''
  const chunk = Buffer.alloc(64 * 1024)
  const server = await serve(({ signal }) =>
    stream(async (out) => {
      try {
        for (;;) {
          await out.write(chunk)
          written++
        }
      } catch (error) {
        ended = `${error} ${signal.aborted}`
        throw error
      }
    }),
  )
  const socket = await open(server.port)
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  // Until nothing moves: the buffers of both systems are full.
  await standsStill('the writer', () => written)
  assert.ok(written < 1000, `${written} chunks were taken from the writer`)
  socket.destroy()
  await waitFor('the end of the writer', () => ended !== '')
  assert.equal(ended, 'Error: the client has gone true')
})

test('a writer that fails breaks the answer off: the client does not take it for whole', async () => {
  const server = await serve(() =>
    stream(async (out) => {
      await out.write('half')
      throw new Error('out of luck')
    }),
  )
  const { body } = await request(`http://127.0.0.1:${server.port}/`)
  await assert.rejects(body.text())
})

test('the number of streams is limited; when one ends there is room again', async () => {
  const open64: (() => void)[] = []
  const server = await serve(({ path, signal }) =>
    path === '/short'
      ? Promise.resolve({ code: 200, contentType: TEXT, body: 'ok' })
      : stream((out) => {
          void out.write('\n')
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
        }),
  )
  const get = async (path: string): Promise<number> => {
    // From several addresses: one may not have all connections.
    const localAddress = `127.0.0.${2 + (open64.length % 4)}`
    const socket = connect({ port: server.port, host: '127.0.0.1', localAddress })
    closers.push(() => socket.destroy())
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    const [data] = await once(socket, 'data')
    open64.push(() => socket.destroy())
    return Number(/ (\d+) /.exec(String(data))?.[1])
  }
  for (let i = 0; i < 64; i++) assert.equal(await get('/stream'), 200)
  assert.deepEqual([await get('/stream'), await get('/short')], [429, 200])
  open64[0]?.()
  let code = 0
  await waitFor('room', async () => {
    code = await get('/stream')
    return code === 200
  })
})

test('a body is read to its limit; beyond it the answer is 413', async () => {
  const server = await serve(async ({ readBody }) => ({
    code: 200,
    contentType: TEXT,
    body: String((await readBody(1000)).length),
  }))
  const put = async (body: string): Promise<unknown[]> => {
    const response = await request(`http://127.0.0.1:${server.port}/`, { method: 'PUT', body })
    return [response.statusCode, await response.body.text()]
  }
  assert.deepEqual(await put('x'.repeat(1000)), [200, '1000'])
  assert.deepEqual(await put('x'.repeat(1001)), [413, 'the body has more than 1000 bytes\n'])
  assert.deepEqual(await put(''), [200, '0'])
  // An unread body does not stand in the way of the next request of the connection.
  const other = await serve(() => Promise.resolve({ code: 200, contentType: TEXT, body: 'ok' }))
  const socket = await open(other.port)
  const body = 'y'.repeat(500_000)
  let got = ''
  socket.on('data', (data) => {
    got += data
  })
  socket.write(
    `PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}GET / HTTP/1.1\r\nHost: a\r\n\r\n`,
  )
  await waitFor('both answers', () => got.split('200 OK').length === 3)
})
