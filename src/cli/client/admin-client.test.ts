import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, test } from 'node:test'
import { UserError } from '../../api/validation/field-errors.ts'
import { AdminClient } from './admin-client.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<AdminClient> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  return new AdminClient({ admin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

test('JSON, a body that is sent, and other methods', async () => {
  const client = await serve((request, response) => {
    let body = ''
    request.on('data', (data) => {
      body += data
    })
    request.on('end', () => response.end(JSON.stringify([request.method, request.url, body])))
  })
  assert.deepEqual(await client.json({ path: '/api/v1/top?by=user' }), ['GET', '/api/v1/top?by=user', ''])
  const put = { method: 'PUT', path: '/debug/log-level', body: { level: 'debug' } } as const
  assert.deepEqual(await client.json(put), ['PUT', '/debug/log-level', '{"level":"debug"}'])
})

test('lines of a stream, as they come, until the signal aborts', async () => {
  let ended = false
  const client = await serve((_, response) => {
    response.write('{"a":1}\n\n{"b"')
    response.write(':2}\n')
    response.on('close', () => {
      ended = true
    })
  })
  const end = new AbortController()
  const seen: string[] = []
  for await (const line of client.lines({ path: '/api/v1/tap', signal: end.signal })) {
    seen.push(line)
    if (seen.length === 2) end.abort()
  }
  assert.deepEqual(seen, ['{"a":1}', '{"b":2}'])
  while (!ended) await new Promise((resolve) => setImmediate(resolve))
})

test('refusals and missing answers are for people', async () => {
  const client = await serve((request, response) => {
    if (request.url === '/hangs') return
    response.statusCode = Number(request.url?.slice(1))
    response.end('not for you\n')
  })
  for (const [path, text] of [
    ['/401', /answers 401: not for you; see --kubeconfig/],
    ['/403', /answers 403: not for you; the ClusterRoles portcullis-insight-view/],
    ['/404', /answers 404: not for you; is --admin/],
    ['/500', /answers 500/],
    ['/302', /answers 302/],
  ] as const) {
    await assert.rejects(client.send({ path }), (error) => {
      assert.ok(error instanceof UserError)
      assert.match(`${error.message}; ${error.fix}`, text)
      return true
    })
  }
  await assert.rejects(client.send({ path: '/hangs', timeoutMs: 20 }), /gives no answer: it takes too long/)
  await assert.rejects(async () => {
    for await (const _ of client.lines({ path: '/hangs', timeoutMs: 20 })) assert.fail('a line')
  }, /gives no answer/)
  await assert.rejects(new AdminClient({ admin: 'http://127.0.0.1:1' }).send({ path: '/' }), /ECONNREFUSED/)
  for (const admin of ['', 'localhost', 'ftp://a', 'http://user:pw@a'])
    assert.throws(() => new AdminClient({ admin }), /is not an http or https URL/)
})
