import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { createServer, type TLSSocket, connect as tlsConnect } from 'node:tls'
import { standsStill, waitFor } from '../../../../test/harness/wait.ts'
import { createCA, issueCertificate } from '../../../pki/io/pki.ts'
import { listenSharedRead } from './shared-read.ts'

const ca = createCA({ commonName: 'shared read' })
const { certPem, keyPem } = issueCertificate(ca, { commonName: 'localhost', dnsNames: ['localhost'], usage: 'server' })
/** Several TLS records, of which no two are the same. */
const SENT = Buffer.from(Array.from({ length: 30_000 }, (_, i) => `${i},`).join(''))

const server = createServer({ cert: certPem, key: keyPem, ALPNProtocols: ['h2'] })
server.listen(0, '127.0.0.1')
after(() => server.close())

/** A client, and the socket that the server has for it. */
async function pair(): Promise<{ readonly client: TLSSocket; readonly accepted: TLSSocket }> {
  if (!server.listening) await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const secured = once(server, 'secureConnection')
  const client = tlsConnect({ host: '127.0.0.1', port, servername: 'localhost', ca: ca.certPem })
  await once(client, 'secureConnect')
  const [accepted] = (await secured) as [TLSSocket]
  return { client, accepted }
}

test('all sockets that a server has accepted read into one memory', async () => {
  const memories = new Set<ArrayBufferLike>()
  const got: Buffer[] = []
  for (let i = 0; i < 3; i++) {
    const { client, accepted } = await pair()
    const listens = listenSharedRead(accepted, (chunk) => {
      memories.add(chunk.buffer)
      got.push(Buffer.from(chunk))
    })
    assert.ok(listens, 'this version of Node keeps the option `onread` in another place: see shared-read.ts')
    got.length = 0
    client.end(SENT)
    await once(accepted, 'end')
    assert.ok(Buffer.concat(got).equals(SENT))
    accepted.destroy()
  }
  assert.equal(memories.size, 1)
})

test('what a socket has read before comes first', async () => {
  const { client, accepted } = await pair()
  client.write('before ')
  await once(accepted, 'readable')
  accepted.removeAllListeners('readable')
  const got: string[] = []
  assert.ok(listenSharedRead(accepted, (chunk) => void got.push(chunk.toString())))
  client.end('after')
  await once(accepted, 'end')
  assert.equal(got.join(''), 'before after')
  accepted.destroy()
})

test('a paused socket reads no further, and then goes on', async () => {
  const { client, accepted } = await pair()
  const got: Buffer[] = []
  let bytes = 0
  assert.ok(
    listenSharedRead(accepted, (chunk) => {
      got.push(Buffer.from(chunk))
      bytes += chunk.length
      if (got.length === 1) accepted.pause()
    }),
  )
  const much = Buffer.concat(Array.from({ length: 100 }, () => SENT))
  client.end(much)
  await waitFor('the pause', () => got.length > 0)
  const stood = await standsStill('what is read', () => bytes)
  assert.ok(stood <= 128 * 1024, `${stood} bytes`)
  accepted.resume()
  await once(accepted, 'end')
  assert.ok(Buffer.concat(got).equals(much))
  accepted.destroy()
})

test('what is no open socket is listened to as ever', async () => {
  assert.equal(
    listenSharedRead(new Socket(), () => undefined),
    false,
  )
  const pipe = new PassThrough()
  const got: string[] = []
  assert.equal(
    listenSharedRead(pipe, (chunk) => void got.push(chunk.toString())),
    false,
  )
  pipe.end('some')
  await once(pipe, 'end')
  assert.deepEqual(got, ['some'])
})
