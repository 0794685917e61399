// A server whose response head never ends.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { Agent, type buildConnector, request } from 'undici'
import { serverCertificate } from '../../../../test/harness/pki.ts'
import { createCA } from '../../../pki/io/pki.ts'
import { http1Connector, parserOf } from './http1-connector.ts'

test('a head that is too large is not parsed any further', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  let fieldsAfterwards = 0
  const plain = http1Connector({})
  const connect: buildConnector.connector = (target, done) =>
    plain(target, (...outcome) => {
      done(...outcome)
      const [, socket] = outcome
      const parser = socket === null ? undefined : parserOf(socket)
      assert.ok(socket !== null && parser !== undefined)
      queueMicrotask(() => {
        const guarded = parser.onHeaderField
        parser.onHeaderField = (name) => {
          if (socket.destroyed) fieldsAfterwards++
          return guarded.call(parser, name)
        }
      })
    })
  const agent = new Agent({ connect, maxHeaderSize: 1_000 })
  try {
    const { port } = server.address() as AddressInfo
    const answered = request(`http://127.0.0.1:${port}/`, { dispatcher: agent })
    await assert.rejects(answered, { code: 'UND_ERR_HEADERS_OVERFLOW' })
    // The first is told to stop.
    assert.equal(fieldsAfterwards, 1)
  } finally {
    await agent.destroy()
    server.close()
  }
})

test('a TLS context that is given counts: its CAs, and no others', async () => {
  const ca = createCA({ commonName: 'a CA of its own' })
  const { certPem: cert, keyPem: key } = serverCertificate(ca, ['localhost'], ['127.0.0.1'])
  const server = createTlsServer({ cert, key }, (_, response) => void response.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const ask = async (options: buildConnector.BuildOptions): Promise<string> => {
    const agent = new Agent({ connect: http1Connector(options) })
    try {
      const { body } = await request(`https://127.0.0.1:${port}/`, { dispatcher: agent })
      return await body.text()
    } finally {
      await agent.destroy()
    }
  }
  try {
    const secureContext = createSecureContext({ ca: ca.certPem })
    assert.equal(await ask({ secureContext } as buildConnector.BuildOptions), 'hello')
    assert.equal(await ask({ ca: ca.certPem }), 'hello')
    await assert.rejects(ask({}), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
  } finally {
    server.close()
  }
})
