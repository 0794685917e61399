// One replica asks the others over their admin listeners: merged answers, replicas that hang or are gone, and credentials.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { Agent, request } from 'undici'
import { AdminPort, adminFiles } from '../../src/admin/app/port/admin-port.ts'
import { advertisedAddress, KnownReplicas } from '../../src/admin/app/replicas/known-replicas.ts'
import { mergedRoute } from '../../src/admin/app/replicas/replicas.ts'
import { replicaLease } from '../../src/gateway/core/status/gateways.ts'
import { tapPeers } from '../../src/insight/app/tap/tap-peers.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { REPLICAS_CHARGE } from '../../src/kit/core/shares/charge.ts'
import type { ObjectClient } from '../../src/kube/api/object-client.ts'
import { threadAnswers } from '../../src/kube/io/answers/thread-answers.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { serverCertificate } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const closers: (() => unknown)[] = []
let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-replicas-'))
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  rmSync(dir, { recursive: true, force: true })
})

function write(name: string, text: string): string {
  const file = join(dir, name)
  writeFileSync(file, text)
  return file
}

async function replica(
  name: string,
  settings: Partial<Config>,
  peers: readonly number[],
): Promise<{ readonly port: number }> {
  const config = {
    ...loadConfig({ flags: { configDir: 'given' }, env: {}, readFile: () => '' }),
    adminListen: '127.0.0.1:0',
    replicaName: name,
    adminPeers: peers.map((port) => ({ host: '127.0.0.1', port })),
    ...settings,
  }
  const files = adminFiles(config, SILENT)
  const known = new KnownReplicas({ config, client: undefined, access: undefined, files, log: SILENT })
  const admin = await AdminPort.open({
    config,
    files,
    state: { live: () => [], ready: () => [], describe: () => ({}) },
    metrics: { contentType: 'text/plain', text: () => Promise.resolve('') },
    routes: [
      mergedRoute<{ by: string[] }>(known, {
        path: '/api/v1/top',
        access: 'view',
        answer: ({ query }) => ({ by: [`${name}:${query.get('by')}`] }),
        read: (json) => json as { by: string[] },
        merge: (parts) => ({ by: parts.flatMap(({ part }) => part.by) }),
      }),
    ],
    login: undefined,
    log: SILENT,
    audit: undefined,
  })
  closers.push(() => admin.stop())
  return { port: admin.port }
}

/** Takes connections, and never answers. */
async function hangs(): Promise<number> {
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function top(port: number): Promise<unknown> {
  const response = await request(`http://127.0.0.1:${port}/api/v1/top?by=user&replicas=all`)
  return await response.body.json()
}

test('answers of all replicas are merged; who hangs or is gone is named', async () => {
  const b = await replica('b', {}, [])
  const hanging = await hangs()
  const a = await replica('a', {}, [b.port, hanging, 1])
  const { missing, ...merged } = (await top(a.port)) as { missing: string[] }
  assert.deepEqual(merged, { by: ['a:user', 'b:user'] })
  assert.deepEqual(missing.toSorted(), ['127.0.0.1:1', `127.0.0.1:${hanging}`].toSorted())
  // Not asked for all: this one alone, and no other replica is asked.
  const alone = await request(`http://127.0.0.1:${a.port}/api/v1/top?by=verb`)
  assert.deepEqual(await alone.body.json(), { by: ['a:verb'] })
})

/** As many connections as have begun an answer and are open. */
async function answers(listener: RequestListener): Promise<{ readonly port: number; readonly open: () => number }> {
  let open = 0
  const server = createHttpServer(listener)
  server.on('connection', (socket) => {
    open++
    socket.on('close', () => open--)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, open: () => open }
}

test('what another replica answers is read within limits, and its memory is charged', async () => {
  const held = (): number => threadAnswers.known.heldBy(REPLICAS_CHARGE.source)
  const many = await answers((_, response) => response.end(`{"by":["many"],"x":[${'{},'.repeat(500_000)}0]}`))
  const endless = await answers((_, response) => {
    response.on('error', () => undefined)
    const write = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024, ' '))) {
        // Until the socket is full.
      }
    }
    response.on('drain', write)
    write()
  })
  const failing = await answers((_, response) => response.writeHead(500).write('x'))
  let seen = 0
  const slow = await answers((_, response) => {
    response.write(`{"by":["slow","${'x'.repeat(100_000)}`)
    const looking = setInterval(() => {
      seen = Math.max(seen, held())
      if (seen < 100_000) return
      clearInterval(looking)
      response.end('"]}')
    }, 1)
    response.on('close', () => clearInterval(looking))
  })
  const hostile = [many, endless, failing]
  const a = await replica('a', {}, [...hostile.map(({ port }) => port), slow.port])
  const { missing, by } = (await top(a.port)) as { missing: string[]; by: string[] }
  assert.deepEqual(by.slice(0, 2), ['a:user', 'slow'])
  assert.deepEqual(new Set(missing), new Set(hostile.map(({ port }) => `127.0.0.1:${port}`)))
  assert.ok(seen >= 100_000, `${seen}`)
  assert.equal(held(), 0)
  await waitFor('their connections to end', () => hostile.every(({ open }) => open() === 0))
})

test('the connection to a replica that refuses a tap is closed', async () => {
  const failing = await answers((_, response) => response.writeHead(500).write('x'))
  const url = new URL(`http://127.0.0.1:${failing.port}`)
  const others = () => Promise.resolve([{ name: 'failing', url }])
  const credential = () => Promise.resolve({ headers: {}, ca: '', publicCAs: false, cert: '', key: '', serverName: '' })
  const [peer] = await tapPeers({ others, credential }, new URLSearchParams(), 'somebody')
  await assert.rejects(async () => await peer?.lines(new AbortController().signal).next(), /it answers 500/)
  await waitFor('its connection to end', () => failing.open() === 0)
})

test('replicas know each other by the token, and by the exact certificate: the token is sent to no other server', async () => {
  const ca = createCA({ commonName: 'admin' })
  const pair = (name: string) => {
    const { certPem, keyPem } = serverCertificate(ca, ['gateway.example'], [])
    return { adminTlsCertFile: write(`${name}.crt`, certPem), adminTlsPrivateKeyFile: write(`${name}.key`, keyPem) }
  }
  const [own, other] = [pair('own'), pair('other')]
  const adminTokenFile = write('token', 'S3cret')
  const same = await replica('same', { ...own, adminTokenFile }, [])
  const wrongToken = await replica('wrong', { ...own, adminTokenFile: write('token2', 'another') }, [])
  const impostor = await replica('impostor', { ...other, adminTokenFile }, [])
  const peers = [same.port, wrongToken.port, impostor.port]
  const a = await replica('a', { ...own, adminTokenFile }, peers)
  const b = await replica('b', { ...own, adminTokenFile, adminCaFile: write('ca.crt', ca.certPem) }, peers)
  const dispatcher = new Agent({ connect: { ca: ca.certPem, servername: 'gateway.example' } })
  closers.push(() => dispatcher.close())
  const ask = async (port: number) => {
    const url = `https://127.0.0.1:${port}/api/v1/top?by=user&replicas=all`
    const response = await request(url, { headers: { authorization: 'Bearer S3cret' }, dispatcher })
    return (await response.body.json()) as { by: string[]; missing: string[] }
  }
  const { by, missing } = await ask(a.port)
  assert.deepEqual(by, ['a:user', 'same:user'])
  assert.deepEqual(new Set(missing), new Set([wrongToken, impostor].map(({ port }) => `127.0.0.1:${port}`)))
  // By a CA the names count: certificates for gateway.example are not for 127.0.0.1.
  assert.deepEqual((await ask(b.port)).by, ['b:user'])
})

test('a replica tells of an address that others reach, and of no other', () => {
  const config = loadConfig({ flags: { configDir: 'given' }, env: {}, readFile: () => '' })
  for (const [adminListen, expected] of [
    ['127.0.0.1:9090', ''],
    ['0.0.0.0:9090', ''],
    ['[::]:9090', ''],
    ['10.0.0.1:0', '10.0.0.1:4711'],
  ]) {
    assert.equal(advertisedAddress({ ...config, adminListen: adminListen ?? '' }, 4711), expected)
  }
  const adminAdvertise = { host: 'fd00::1', port: 9090 }
  assert.equal(advertisedAddress({ ...config, adminListen: '0.0.0.0:1', adminAdvertise }, 1), '[fd00::1]:9090')
})

test('a Lease tells of the admin listener, and what a client wrote into it is bounded and checked', async () => {
  const plain = { ...loadConfig({ flags: {}, env: {}, readFile: () => '' }), replicaName: 'a' }
  const config = { ...plain, adminTlsCertFile: 'given' }
  const now = new Date().toISOString()
  const long = 'x'.repeat(1000)
  const items = [
    replicaLease('a', 'default', now, '10.0.0.1:9090'),
    replicaLease('b', 'default', now, '10.0.0.2:9090'),
    replicaLease('gone', 'default', '2020-01-01T00:00:00.000000Z', '10.0.0.3:9090'),
    replicaLease('without', 'default', now),
    replicaLease('odd', 'default', now, 'user:pw@evil.example/path?x'),
    replicaLease('no-url', 'default', now, '1.2.3.999:9090'),
    replicaLease(long, 'default', now, '[fd00::1]:9090'),
  ]
  const list: ObjectClient['list'] = (_, namespace) =>
    Promise.resolve({ items: namespace === 'default' ? items : [], resourceVersion: '1' })
  const client = { list } as unknown as ObjectClient
  const files = { token: '', serving: undefined }
  const deps = { config, client, access: undefined, files, log: SILENT }
  const known = new KnownReplicas(deps)
  assert.deepEqual(
    (await known.others()).map(({ name, url }) => [name.length, url.href]),
    [
      [1, 'https://10.0.0.2:9090/'],
      [256, 'https://[fd00::1]:9090/'],
    ],
  )
  // Without TLS a replica cannot prove that it is what a Lease says: a user who may write one would be sent the token.
  const inTheClear = new KnownReplicas({ ...deps, config: plain })
  assert.deepEqual(await inTheClear.others(), [])
  const many = Array.from({ length: 1000 }, (_, i) => replicaLease(`r-${i}`, 'default', now, `10.0.0.2:${i + 1}`))
  items.push(...many)
  assert.equal((await new KnownReplicas(deps).others()).length, 256)
})
