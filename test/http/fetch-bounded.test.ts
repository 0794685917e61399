import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { Agent } from 'undici'
import { sendAdmin } from '../../src/cli/io/admin-request.ts'
import { serverCharge } from '../../src/kit/core/shares/charge.ts'
import { DOCUMENT } from '../../src/kube/core/answers/answer-limits.ts'
import { AnswerTooLargeError } from '../../src/kube/core/answers/call-errors.ts'
import { type BoundedReply, faultText, fetchBounded } from '../../src/kube/io/answers/fetch-bounded.ts'
import { threadAnswers } from '../../src/kube/io/answers/thread-answers.ts'
import { createCA, issueServingCertificate } from '../../src/pki/io/pki.ts'
import { waitFor } from '../harness/wait.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** @param sockets that are open to it */
async function listening(server: Server, sockets = new Set<Socket>()): Promise<string> {
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Whatever is sent to it is answered with this text, and the connection stays open. */
async function saying(text: string): Promise<{ readonly host: string; readonly sockets: ReadonlySet<Socket> }> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => void socket.once('data', () => socket.write(text)))
  return { host: await listening(server, sockets), sockets }
}

const serve = (answer: RequestListener): Promise<string> => listening(createServer(answer))

const never = (): AbortSignal => new AbortController().signal

test('the signal ends a call whose TLS handshake is not answered, and its socket', async () => {
  const { host, sockets } = await saying('')
  const end = new AbortController()
  const asked = fetchBounded(`https://${host}/`, { signal: end.signal })
  await waitFor('the connection', () => sockets.size === 1)
  end.abort()
  await assert.rejects(asked, (error) => faultText(error) === 'it takes too long')
  await waitFor('its end', () => sockets.size === 0)
})

test('the signal ends an answer that is not read, and nothing is thrown beside', async () => {
  const { host, sockets } = await saying('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc')
  const end = new AbortController()
  await fetchBounded(`http://${host}/`, { signal: end.signal })
  end.abort()
  await waitFor('its end', () => sockets.size === 0)
})

const readings: Readonly<Record<string, (reply: BoundedReply) => Promise<unknown>>> = {
  'counted text': (reply) => reply.countedText(DOCUMENT, serverCharge('test')),
  whole: (reply) => reply.whole(1024),
  'the beginning': (reply) => reply.beginning(1024),
  lines: async (reply) => {
    for await (const line of reply.lines(1024)) assert.equal(line, 'never whole')
  },
}
for (const [name, read] of Object.entries(readings)) {
  test(`an answer that breaks off is an error: ${name}`, async () => {
    const sockets = new Set<Socket>()
    const server = createTcpServer((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'))
    })
    const reply = await fetchBounded(`http://${await listening(server, sockets)}/`, { signal: never() })
    const reading = read(reply)
    for (const socket of sockets) socket.destroy()
    await assert.rejects(reading, (error) => /closed|broke/.test(faultText(error)))
    assert.equal(threadAnswers.known.heldBy(serverCharge('test').source), 0)
  })
}

test('an answer without an end is left at the limit, and its connection with it', async () => {
  const endless: RequestListener = (_, response) => {
    const more = (): void => {
      while (response.write('x'.repeat(16_384)));
    }
    response.on('drain', more)
    more()
  }
  for (const read of [
    (reply: BoundedReply) =>
      assert.rejects(
        reply.countedText(DOCUMENT, serverCharge('test')),
        (error) => error instanceof AnswerTooLargeError,
      ),
    (reply: BoundedReply) => assert.rejects(reply.whole(70_000), /more than 70000 bytes/),
    async (reply: BoundedReply) => assert.equal((await reply.beginning(70_000)).length, 70_000),
    (reply: BoundedReply) => assert.rejects(reply.lines(70_000).next(), /a line is too long/),
    async (reply: BoundedReply) => reply.discard(),
  ]) {
    const sockets = new Set<Socket>()
    const host = await listening(createServer(endless), sockets)
    await read(await fetchBounded(`http://${host}/`, { signal: never() }))
    await waitFor('the end of the connection', () => sockets.size === 0)
    assert.equal(threadAnswers.known.heldBy(serverCharge('test').source), 0)
  }
})

test('interim heads without an end are an error', async () => {
  const { host, sockets } = await saying('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(101))
  await assert.rejects(fetchBounded(`http://${host}/`, { signal: never() }), /more than 100 interim heads/)
  await waitFor('the end of the connection', () => sockets.size === 0)
})

test('redirects are not followed, bodies and header fields are sent, and lines come as they are', async () => {
  const host = await serve((request, response) => {
    response.writeHead(302, { location: '/elsewhere', 'x-seen': `${request.headers['x-asked']}` })
    request.on('data', (data) => response.write(`${request.method} ${request.url}\n\n${data}`))
    request.on('end', () => response.end())
  })
  const reply = await fetchBounded(`http://${host}/a?b=%2F..`, {
    method: 'PUT',
    headers: { 'x-asked': 'yes' },
    body: 'ä\nlast',
    signal: never(),
  })
  assert.deepEqual([reply.code, reply.header('x-seen'), reply.header('x-none')], [302, 'yes', ''])
  const lines: string[] = []
  for await (const line of reply.lines(100)) lines.push(line)
  assert.deepEqual(lines, ['PUT /a?b=%2F..', 'ä', 'last'])
})

test('a connection of its own ends with the answer; connections that are given are used again', async (t) => {
  const sockets = new Set<Socket>()
  let opened = 0
  const server = createServer((_, response) => response.end('ok')).on('connection', () => opened++)
  const url = `http://${await listening(server, sockets)}/`
  await (await fetchBounded(url, { signal: never() })).whole(10)
  await waitFor('the end of the connection', () => sockets.size === 0)
  const connections = new Agent({ connections: 1 })
  t.after(() => connections.destroy())
  for (let i = 0; i < 3; i++) await (await fetchBounded(url, { signal: never(), connections })).whole(10)
  assert.equal(opened, 2)
})

test('each address that has failed is named', () => {
  const errors = [new Error('connect ECONNREFUSED ::1:1'), new Error('connect ECONNREFUSED 127.0.0.1:1\n')]
  assert.equal(faultText(new AggregateError(errors)), 'connect ECONNREFUSED ::1:1, connect ECONNREFUSED 127.0.0.1:1')
})

test('a pinned certificate is accepted whatever it is for, and no other of its CA', async () => {
  const ca = createCA({ commonName: 'ca' })
  const [own, other] = [issueServingCertificate(ca, ['10.9.8.7']), issueServingCertificate(ca, ['127.0.0.1'])]
  const server = createTlsServer({ cert: own.certPem, key: own.keyPem }, (_, response) => response.end('ok'))
  const url = new URL(`https://${await listening(server)}/`)
  const send = (trust: { pinned?: string; ca?: string }): Promise<BoundedReply> => {
    const credential = { headers: {}, ca: '', publicCAs: false, cert: '', key: '', serverName: '', ...trust }
    return sendAdmin(url, { method: 'GET', body: undefined, credential, signal: never() })
  }
  assert.equal((await (await send({ pinned: own.certPem })).whole(10)).toString(), 'ok')
  await assert.rejects(send({ pinned: other.certPem }))
  await assert.rejects(send({ ca: ca.certPem }), /altnames/)
})
