// The gateway's own certificate is replaced while it runs: by files that change, never by files that cannot be used.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type ConnectionOptions, connect } from 'node:tls'
import { servingPkiDir } from '../../src/gateway/io/listener/serving-certificate.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { writeKeyPair } from '../../src/pki/io/pki-files.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { serverCertificate } from '../harness/pki.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const servingCA = createCA({ commonName: 'serving' })
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const first = serverCertificate(servingCA, ['first.example.com'], [])
const second = serverCertificate(servingCA, ['second.example.com'], [])
const HOST = 'prod.example.com'
/** Chance gives each of two threads one of these, but for once in thousands of runs. */
const CONNECTIONS = 12
/** Files are looked at once a second, and each look here is a dozen handshakes. */
const SELDOM = { intervalMs: 200 }
let dir: string
let stub: StubUpstream
let gateway: InProcessGateway | undefined

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-serving-'))
  stub = await startStub()
  stub.answer = (request) => reply(request, 200, '{}')
})
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
  await stub.stop()
  rmSync(dir, { recursive: true, force: true })
})

function write({ certPem, keyPem }: { certPem: string; keyPem: string }): void {
  for (const [name, text] of [
    ['tls.crt', certPem],
    ['tls.key', keyPem],
  ] as const) {
    writeFileSync(join(dir, `${name}.new`), text)
    renameSync(join(dir, `${name}.new`), join(dir, name))
  }
}

async function start(folder = dir, delivered?: Promise<void>): Promise<InProcessGateway> {
  const files = { tlsCertFile: join(folder, 'tls.crt'), tlsPrivateKeyFile: join(folder, 'tls.key') }
  gateway = await startInProcess([clusterObject([stub], { clientCA })], { threads: 2, ...files }, delivered)
  return gateway
}

/** What connections are shown that name no cluster, and those of a cluster that has no certificate of its own. */
async function shown({ port }: InProcessGateway): Promise<readonly string[]> {
  const names = Array.from({ length: CONNECTIONS }, async (_, i) => {
    const { socket } = await openRaw({ port, ...(i % 2 === 1 && { serverName: HOST }) })
    const { CN } = socket.getPeerCertificate().subject
    socket.destroy()
    return String(CN)
  })
  return [...new Set(await Promise.all(names))]
}

function untilShown(running: InProcessGateway, pair: KeyPair): Promise<unknown> {
  const name = pair === first ? 'first.example.com' : 'second.example.com'
  return waitFor(
    `all threads to show ${name}`,
    async () => {
      const names = await shown(running)
      return names.length === 1 && names[0] === name
    },
    SELDOM,
  )
}

/** The addresses of this machine beside loopback; connections to them stay on the machine. */
function otherAddresses(): readonly string[] {
  const infos = Object.values(networkInterfaces()).flatMap((all = []) => all)
  return infos.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address)
}

describe('--tls-cert-file', () => {
  test('a new pair is shown to new connections in every thread; those that are open go on', async () => {
    write(first)
    const running = await start()
    await untilShown(running, first)
    const open = h2Connect({ port: running.port, serverName: HOST, certificate: alice })
    const ask = async (): Promise<number> =>
      (await h2Request(open, [':path', '/api/v1/pods', ':authority', HOST])).status
    assert.equal(await ask(), 200)
    write(second)
    await untilShown(running, second)
    assert.equal(await ask(), 200)
    const ends = Date.parse(new X509Certificate(second.certPem).validTo) / 1000
    const metrics = await running.metrics()
    const expiry = 'portcullis_certificate_expiration_timestamp_seconds'
    assert.ok(metrics.includes(`${expiry}{cluster="",certificate="serving"} ${ends}\n`), metrics)
    const clientEnds = Date.parse(new X509Certificate(clientCA.certPem).validTo) / 1000
    assert.ok(metrics.includes(`${expiry}{cluster="${HOST}",certificate="client-ca"} ${clientEnds}\n`), metrics)
    open.destroy()
    await running.crashThread(0)
    await running.crashThread(1)
    // Those that take their place are not started with the certificate of the start.
    await untilShown(running, second)
  })

  test('a pair that changes between its first reading and readiness is in force soon after', async () => {
    write(first)
    let deliver: () => void = () => undefined
    const delivered = new Promise<void>((resolve) => {
      deliver = resolve
    })
    const starting = start(dir, delivered)
    // It was read at once; the source is waited for.
    await yieldToEventLoop()
    write(second)
    deliver()
    await untilShown(await starting, second)
  })

  test('a certificate of its own making follows its CA', async () => {
    const own = { tlsCertFile: '', tlsPrivateKeyFile: '', dataDir: dir }
    gateway = await startInProcess([clusterObject([stub], { clientCA })], { threads: 2, ...own })
    const { port } = gateway
    writeKeyPair(servingPkiDir(dir), 'ca', servingCA)
    await waitFor('a certificate of the new CA', async () => {
      const { socket } = await openRaw({ port })
      const { CN } = socket.getPeerCertificate().issuer
      socket.destroy()
      return CN === 'serving'
    })
  })

  test('a certificate of its own making is for the addresses of this machine, and for --serving-host', async () => {
    const own = { tlsCertFile: '', tlsPrivateKeyFile: '', dataDir: dir, servingHosts: ['vip.example.com'] }
    const listen = [{ host: '0.0.0.0', port: 0 }]
    gateway = await startInProcess([clusterObject([stub], { clientCA })], { ...own, listen })
    const { port } = gateway
    const ca = readFileSync(join(servingPkiDir(dir), 'ca.crt'))
    const accepts = (options: ConnectionOptions): Promise<void> =>
      new Promise((resolve, reject) => {
        const socket = connect({ port, ca, ...options }, () => resolve(void socket.destroy())).on('error', reject)
      })
    await accepts({ host: '127.0.0.1', servername: 'vip.example.com' })
    for (const address of otherAddresses()) await accepts({ host: address })
  })

  test('a mounted Secret, whose links are exchanged', async () => {
    for (const [name, pair] of [
      ['..1', first],
      ['..2', second],
    ] as const) {
      mkdirSync(join(dir, name))
      writeFileSync(join(dir, name, 'tls.crt'), pair.certPem)
      writeFileSync(join(dir, name, 'tls.key'), pair.keyPem)
    }
    symlinkSync('..1', join(dir, '..data'))
    for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(dir, name))
    const running = await start()
    await untilShown(running, first)
    symlinkSync('..2', join(dir, '..new'))
    renameSync(join(dir, '..new'), join(dir, '..data'))
    await untilShown(running, second)
  })

  for (const [what, bad, says] of [
    ['a key of another certificate', { certPem: second.certPem, keyPem: first.keyPem }, /tls\.key does not belong to/],
    [
      'a certificate that is cut off',
      { certPem: second.certPem.slice(0, 300), keyPem: second.keyPem },
      /cut off or damaged/,
    ],
    ['an empty file', { certPem: '', keyPem: '' }, /holds no PEM certificate/],
  ] as const) {
    test(`${what} leaves the pair before in force, and says so once, until it is repaired`, async () => {
      write(first)
      const running = await start()
      write(bad)
      const told = (): readonly { fields: Record<string, unknown> }[] =>
        running.logged.filter(({ message }) => message.startsWith('the serving certificate cannot be replaced'))
      await waitFor('the error', () => told().length > 0)
      assert.match(String(told()[0]?.fields['error']), says)
      assert.deepEqual(await shown(running), ['first.example.com'])
      assert.match(await running.metrics(), /^portcullis_file_last_reload_successful\{file="tls-cert-file"\} 0$/m)
      write(second)
      await untilShown(running, second)
      assert.match(await running.metrics(), /^portcullis_file_last_reload_successful\{file="tls-cert-file"\} 1$/m)
      assert.equal(told().length, 1)
    })
  }
})
