import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { createCA, issueServingCertificate } from '../../pki/io/pki.ts'
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

test('http where TLS is spoken, https where it is not, and an unknown CA: one line that says what to write', async () => {
  const serving = issueServingCertificate(createCA({ commonName: 'ca' }), ['127.0.0.1'])
  const secure = createSecureServer({ cert: serving.certPem, key: serving.keyPem }, (_, response) => response.end('{}'))
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
  closers.push(() => secure.close())
  const host = `127.0.0.1:${(secure.address() as AddressInfo).port}`
  const { host: plainHost } = (await serve((_, response) => response.end('{}'))).url
  const tokenFile = join(mkdtempSync(join(tmpdir(), 'admin-')), 'token')
  writeFileSync(tokenFile, 'abc')
  for (const [admin, text] of [
    [`http://${host}`, `does not answer: the connection was closed; if it speaks TLS, write --admin https://${host}`],
    [`https://${host}`, 'does not answer: its certificate is not signed by a known CA; name its CA with --ca-file'],
    [
      `https://${plainHost}`,
      `does not answer: it does not speak TLS; write --admin http://${plainHost}, if that is its admin listener`,
    ],
  ] as const) {
    await assert.rejects(new AdminClient({ admin, tokenFile }).send({ path: '/' }), (error) => {
      assert.ok(error instanceof UserError)
      assert.equal(`${error.message}; ${error.fix}`, `${admin} ${text}`)
      return true
    })
  }
})

test('refusals and missing answers are for people', async () => {
  const client = await serve((request, response) => {
    if (request.url === '/hangs') return
    response.statusCode = Number(request.url?.slice(1))
    response.end(request.url === '/503' ? 'a\nb\u001b[2J\n' : 'not for you\n')
  })
  for (const [path, text] of [
    ['/401', /answers 401: not for you; see --kubeconfig/],
    ['/403', /answers 403: not for you; the ClusterRoles portcullis-insight-view/],
    ['/404', /answers 404: not for you; is --admin/],
    ['/500', /answers 500/],
    ['/503', /answers 503: a; b\\x1b\[2J; /],
    ['/302', /answers 302/],
  ] as const) {
    await assert.rejects(client.send({ path }), (error) => {
      assert.ok(error instanceof UserError)
      assert.match(`${error.message}; ${error.fix}`, text)
      return true
    })
  }
  await assert.rejects(client.send({ path: '/hangs', timeoutMs: 20 }), /does not answer: it takes too long/)
  await assert.rejects(async () => {
    for await (const _ of client.lines({ path: '/hangs', timeoutMs: 20 })) assert.fail('a line')
  }, /does not answer/)
  await assert.rejects(new AdminClient({ admin: 'http://127.0.0.1:1' }).send({ path: '/' }), /ECONNREFUSED/)
  for (const admin of ['', 'localhost', 'ftp://a', 'http://user:pw@a'])
    assert.throws(() => new AdminClient({ admin }), /is not an http or https URL/)
})
