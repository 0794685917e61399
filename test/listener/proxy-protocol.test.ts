// PROXY protocol on --listen: whose headers are believed, what the addresses in them count for, and what is closed.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type Socket, connect as tcpConnect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { listen } from '../../src/gateway/io/listener/listener-socket.ts'
import type { ProxyOutcome } from '../../src/gateway/io/listener/proxy-protocol.ts'
import { parseCidr } from '../../src/kit/core/dial/cidr.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { type Balancer, type BalancerOptions, startBalancer } from '../harness/balancers/balancer.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { BARE_PORT } from '../harness/gateways/bare-port.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { serverCertificate } from '../harness/pki.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const BY_ADDRESS = 'by-address.example.com'
const CLIENT = '198.51.100.9'
const DENIED = '203.0.113.5'
const VIP = '192.0.2.80'
/** Not in `--proxy-protocol-from`. */
const STRANGER = '127.0.0.9'
const V1 = `PROXY TCP4 ${CLIENT} ${VIP} 40000 443\r\n`

const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')
const serving = serverCertificate(clientCA, [BY_ADDRESS], [VIP])
let stub: StubUpstream
let seen: SeenRequest[] = []
let gateway: InProcessGateway | undefined
let dir: string
const balancers: Balancer[] = []

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-proxy-'))
  stub = await startStub()
  stub.answer = (request) => {
    seen.push(request)
    reply(request, 200, '{}')
  }
})
afterEach(async () => {
  for (const balancer of balancers.splice(0)) balancer.stop()
  await gateway?.stop()
  gateway = undefined
  seen = []
})
after(async () => {
  await stub.stop()
  rmSync(dir, { recursive: true, force: true })
})

function objects(): UpstreamCluster[] {
  const access = { accessControl: { deny: [{ name: 'no', sourceIPs: [`${DENIED}/32`] }] } }
  const secure = {
    clientCAData: base64(clientCA.certPem),
    certData: base64(serving.certPem),
    keyData: base64(serving.keyPem),
  }
  return [
    clusterObject([stub], { clientCA, spec: access }),
    clusterObject([stub], { name: BY_ADDRESS, spec: { secureServing: secure, addresses: { ips: [VIP] }, ...access } }),
  ]
}

async function start(overrides: Partial<Config> = {}): Promise<InProcessGateway> {
  const trusted = ['127.0.0.1', '127.0.0.2'].flatMap((text) => parseCidr(text) ?? [])
  gateway = await startInProcess(objects(), {
    listen: [{ host: '127.0.0.1', port: 0, proxyProtocol: true }],
    proxyProtocolFrom: trusted,
    ...overrides,
  })
  return gateway
}

async function through(header: Buffer | string, options: Partial<BalancerOptions> = {}): Promise<number> {
  const balancer = await startBalancer({ port: gateway?.port ?? 0, header, ...options })
  balancers.push(balancer)
  return balancer.port
}

function v2(verCmd: number, family: number, body: Buffer): Buffer {
  const head = Buffer.from([verCmd, family, body.length >> 8, body.length & 0xff])
  return Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a', 'hex'), head, body])
}

function address(text: string): Buffer {
  return Buffer.from(text.split('.').map(Number))
}

function tcp4(source: string, destination: string, tlvs = Buffer.alloc(0)): Buffer {
  return v2(0x21, 0x11, Buffer.concat([address(source), address(destination), Buffer.from('9c4001bb', 'hex'), tlvs]))
}

async function count(outcome: ProxyOutcome): Promise<number> {
  const text = (await gateway?.metrics()) ?? ''
  const pattern = new RegExp(`^portcullis_proxy_protocol_connections_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm')
  return Number(pattern.exec(text)?.[1] ?? 0)
}

async function handshakeErrors(): Promise<number> {
  return Number(/tls_handshake_errors_total (\d+)/.exec((await gateway?.metrics()) ?? '')?.[1] ?? 0)
}

async function askHttp2(port: number, certificate: KeyPair = alice): Promise<number> {
  const session = h2Connect({ port, serverName: HOST, certificate })
  const { status } = await h2Request(session, [])
  session.destroy()
  return status
}

async function askHttp1(port: number): Promise<number> {
  return (await http1Request({ port, serverName: HOST, cert: alice }, requestHead('GET /api/v1/pods'))).status
}

function forwardedFor(): readonly string[] {
  return seen.flatMap((request) => request.values('x-forwarded-for'))
}

/** A raw connection, without TLS. @returns resolves when the gateway has closed it */
function closes(bytes: Buffer | string, localAddress = '127.0.0.1', port = gateway?.port ?? 0): Promise<void> {
  const socket = tcpConnect({ host: '127.0.0.1', port, localAddress })
  socket.on('error', () => undefined).resume()
  socket.write(bytes)
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

const LONG = Buffer.concat([Buffer.from([4, 0xff, 0xf0]), Buffer.alloc(0xfff0, 7)])
const HEADERS: readonly [string, Buffer | string][] = [
  ['version 1', V1],
  ['version 2', tcp4(CLIENT, VIP)],
  ['version 2 with 65,535 bytes', tcp4(CLIENT, VIP, LONG)],
]

describe('the declared source', () => {
  for (const [name, header] of HEADERS) {
    for (const how of ['together', 'before', 'bytes'] as const) {
      if (how === 'bytes' && header.length > 1_000) continue
      test(`${name}, ${how}: X-Forwarded-For over HTTP/2 and HTTP/1.1`, async () => {
        await start()
        const port = await through(header, { how })
        assert.deepEqual([await askHttp2(port), await askHttp1(port)], [200, 200])
        assert.deepEqual(forwardedFor(), [CLIENT, CLIENT])
        assert.equal(await count('declared'), 2)
      })
    }
  }

  test('addresses of one IPv6 network of 64 bits are one source of failures, and another network is another', async () => {
    await start({ maxAuthenticationFailures: 5, authenticationFailureBlockMs: 60_000 })
    let guesses = 0
    const guess = async (client: string): Promise<number> => {
      const header = v2(0x21, 0x21, Buffer.from(`${client}${'01'.repeat(16)}9c4001bb`, 'hex'))
      const session = h2Connect({ port: await through(header), serverName: HOST })
      const { status } = await h2Request(session, ['authorization', `Bearer guess-${guesses++}`])
      session.destroy()
      return status
    }
    const rotated = (): string => `20010db800000001${guesses.toString(16).padStart(16, '0')}`
    for (let i = 0; i < 5; i++) assert.equal(await guess(rotated()), 401)
    await waitFor('429', async () => (await guess(rotated())) === 429)
    assert.equal(await guess('20010db8000000020000000000000001'), 401)
  })

  test('access lists, both logs, with the load balancer beside it', async () => {
    const auditLogPath = join(dir, 'audit.log')
    await start({ auditLogPath })
    assert.equal(await askHttp2(await through(V1)), 200)
    assert.equal(await askHttp2(await through(tcp4(DENIED, VIP), { localAddress: '127.0.0.2' })), 403)
    const events = await waitFor('the audit events', () => {
      const lines = readFileSync(auditLogPath, 'utf8').trim().split('\n')
      return lines.length >= 2 && lines.map((line) => JSON.parse(line))
    })
    assert.deepEqual(
      events.map(({ sourceIPs, annotations }) => [sourceIPs, annotations['portcullis.io/proxy-address']]),
      [
        [[CLIENT], '127.0.0.1'],
        [[DENIED], '127.0.0.2'],
      ],
    )
  })

  test('limits of connections count for it, and not for the load balancer', async () => {
    await start({ maxConnectionsPerAddress: 2 })
    const [one, other, local] = [
      await through(V1),
      await through(tcp4('198.51.100.10', VIP)),
      await through('PROXY UNKNOWN\r\n'),
    ]
    const open = async (port: number): Promise<{ destroy(): void } | undefined> =>
      await openRaw({ port, serverName: HOST }).catch(() => undefined)
    const held: ({ destroy(): void } | undefined)[] = [await open(one), await open(one)]
    assert.ok(!held.includes(undefined))
    assert.equal(await open(one), undefined)
    assert.equal(await askHttp2(other), 200)
    for (let i = 0; i < 5; i++) held.push(await open(local))
    assert.ok(!held.includes(undefined), 'its own connections are not limited')
    assert.match((await gateway?.metrics()) ?? '', /portcullis_client_connections_refused_total 1\n/)
    for (const connection of held) connection?.destroy()
    await waitFor('a place for the first client', async () => (await open(one)) !== undefined)
  })

  test('in every thread, whichever accepts', async () => {
    await start({ threads: 2 })
    const port = await through(V1)
    const statuses = await Promise.all(Array.from({ length: 16 }, () => askHttp2(port)))
    assert.deepEqual(new Set(statuses), new Set([200]))
    assert.deepEqual(new Set(forwardedFor()), new Set([CLIENT]))
  })
})

describe('the declared destination', () => {
  test('chooses the cluster and its certificate', async () => {
    await start()
    for (const header of [V1, tcp4(CLIENT, VIP), `PROXY TCP6 2001:db8::9 ::ffff:${VIP} 1 443\r\n`]) {
      const client = await http1Connect({ port: await through(header), cert: alice })
      assert.equal(client.raw.socket.getPeerCertificate().subject.CN, BY_ADDRESS)
      client.send(requestHead('GET /api/v1/pods', [], 'an-address'))
      assert.equal((await client.response()).status, 200)
      client.destroy()
    }
    const elsewhere = await http1Connect({ port: await through(tcp4(CLIENT, '192.0.2.81')), cert: alice })
    elsewhere.send(requestHead('GET /api/v1/pods', [], 'an-address'))
    assert.equal((await elsewhere.response()).status, 404)
  })
})

describe('without declared addresses', () => {
  for (const [name, header] of [
    ['LOCAL, a health check', v2(0x20, 0x00, Buffer.alloc(0))],
    ['LOCAL with addresses', v2(0x20, 0x11, tcp4(DENIED, VIP).subarray(16))],
    ['UNSPEC', v2(0x21, 0x00, Buffer.alloc(0))],
    ['UNKNOWN', 'PROXY UNKNOWN\r\n'],
    ['UNKNOWN with addresses', `PROXY UNKNOWN ${DENIED} ${VIP} 1 2\r\n`],
  ] as const) {
    test(`${name}: served with those of the connection`, async () => {
      await start()
      const port = await through(header, { localAddress: '127.0.0.2' })
      assert.deepEqual([await askHttp2(port), await askHttp1(port)], [200, 200])
      assert.deepEqual(forwardedFor(), ['127.0.0.2', '127.0.0.2'])
      assert.equal(await count('local'), 2)
    })
  }
})

describe('an address that is not trusted', () => {
  test('is closed before a byte is read, counted, and named in the log', async () => {
    const running = await start()
    await closes('', STRANGER)
    await closes(tcp4(CLIENT, VIP), STRANGER)
    await assert.rejects(openRaw({ port: await through(V1, { localAddress: STRANGER }), serverName: HOST }))
    assert.equal(await count('untrusted'), 3)
    assert.equal(seen.length, 0)
    const told = running.logged.filter(({ message }) => message.includes('--proxy-protocol-from'))
    assert.deepEqual(
      told.map(({ fields }) => fields),
      [{ address: STRANGER }],
    )
  })

  test('served plain where that is set; a header of it is not believed', async () => {
    await start({ proxyProtocolOthers: 'plain' })
    assert.equal(await askHttp2(await through('', { localAddress: STRANGER })), 200)
    assert.deepEqual(forwardedFor(), [STRANGER])
    await assert.rejects(openRaw({ port: await through(V1, { localAddress: STRANGER }), serverName: HOST }))
    await waitFor('the failed handshake', async () => (await handshakeErrors()) === 1)
    assert.deepEqual([await count('plain'), await count('declared'), await count('untrusted')], [2, 0, 0])
    assert.equal(await askHttp2(await through(V1)), 200, 'a header of a trusted one is')
  })
})

describe('what a trusted sender may not do', () => {
  const wrong: readonly [string, Buffer | string][] = [
    ['no header', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['HTTP', 'GET / HTTP/1.1\r\n\r\n'],
    ['an unknown version', v2(0x31, 0x11, Buffer.alloc(12))],
    ['an unknown family', v2(0x21, 0x12, Buffer.alloc(12))],
    ['a wrong checksum', tcp4(CLIENT, VIP, Buffer.from('03000412345678', 'hex'))],
    ['a line without end', `PROXY UNKNOWN ${'x'.repeat(200)}`],
  ]
  test('what is no header, or a malformed one, is closed and counted', async () => {
    const running = await start()
    for (const [i, [name, bytes]] of wrong.entries()) {
      await closes(bytes)
      assert.equal(await count('invalid'), i + 1, name)
    }
    assert.ok(
      running.logged.some(
        ({ message, fields }) => message.includes('PROXY header') && fields['problem'] === 'no PROXY header',
      ),
    )
    assert.equal(await askHttp2(await through(V1)), 200)
  })

  test('a header that does not come, or not to its end, is waited for until the deadline', async () => {
    await start({ headerTimeoutMs: 100 })
    await Promise.all(
      ['', V1.slice(0, -1), tcp4(CLIENT, VIP).subarray(0, -1), tcp4(CLIENT, VIP, LONG).subarray(0, 60_000)].map(
        (bytes) => closes(bytes),
      ),
    )
    assert.equal(await count('timeout'), 4)
  })

  test('a second header, which a client has put behind the first, is not TLS', async () => {
    await start()
    const forged = tcp4(DENIED, '192.0.2.81')
    await assert.rejects(openRaw({ port: await through(Buffer.concat([Buffer.from(V1), forged])), serverName: HOST }))
    await assert.rejects(
      openRaw({ port: await through(Buffer.concat([tcp4(CLIENT, VIP), Buffer.from(V1)])), serverName: HOST }),
    )
    await waitFor('both failed handshakes', async () => (await handshakeErrors()) === 2)
    assert.equal(seen.length, 0)
  })

  test('who looks only whether the port is open does no harm', async () => {
    await start()
    const socket = tcpConnect({ host: '127.0.0.1', port: gateway?.port ?? 0 })
    await new Promise<void>((resolve) => socket.once('connect', resolve))
    socket.end()
    await waitFor('its end', async () => (await count('ended')) === 1)
    assert.equal(await count('invalid'), 0)
  })

  test('connections that wait for a header do not hold up the end', async () => {
    const running = await start()
    const waiting = closes('')
    await waitFor('it to be accepted', async () => /portcullis_/.test(await running.metrics()))
    await running.stop()
    gateway = undefined
    await waiting
  })

  test('the oldest of those that wait for a header gives way', async () => {
    const outcomes: ProxyOutcome[] = []
    const listener = await listen({
      ...BARE_PORT,
      proxyProtocol: {
        from: [parseCidr('127.0.0.0/8') ?? assert.fail()],
        others: 'refuse',
        timeoutMs: 60_000,
        maxAwaiting: 10,
        onOutcome: (outcome) => outcomes.push(outcome),
      },
    })
    const sockets: Socket[] = []
    const closed: number[] = []
    for (let i = 0; i < 15; i++) {
      const socket = tcpConnect({ host: '127.0.0.1', port: listener.port })
      socket
        .on('error', () => undefined)
        .on('close', () => closed.push(i))
        .resume()
      sockets.push(socket)
      await waitFor('it to be accepted', () => listener.connections() === Math.min(i + 1, 10))
      await new Promise<void>((resolve) => (socket.connecting ? socket.once('connect', resolve) : resolve()))
    }
    await waitFor('five to be closed', () => closed.length === 5)
    assert.deepEqual([closed.toSorted((a, b) => a - b), outcomes], [[0, 1, 2, 3, 4], Array(5).fill('overflow')])
    listener.close()
    for (const socket of sockets) socket.destroy()
  })
})

test('a port without it never guesses: a PROXY header is not TLS', async () => {
  await start({ listen: [{ host: '127.0.0.1', port: 0 }], proxyProtocolFrom: [] })
  await assert.rejects(openRaw({ port: await through(V1), serverName: HOST }))
  assert.equal(await handshakeErrors(), 1)
  assert.equal(await askHttp2(gateway?.port ?? 0), 200)
})

test('with several threads: a connection that is passed to another one brings its header along', async () => {
  await start({ threads: 4 })
  const ports = await Promise.all(Array.from({ length: 8 }, () => through(tcp4(CLIENT, VIP))))
  const sessions = ports.map((port) => h2Connect({ port, serverName: HOST, certificate: alice }))
  const answers = await Promise.all(sessions.map((session) => h2Request(session, [])))
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(8).fill(200),
  )
  assert.deepEqual(forwardedFor(), Array(8).fill(CLIENT))
  const metrics = (await gateway?.metrics()) ?? ''
  const held = [...metrics.matchAll(/^portcullis_thread_client_connections\{thread="\d"\} (\d+)$/gm)]
  assert.deepEqual(
    held.map(([, count]) => count),
    Array(4).fill('2'),
  )
  for (const session of sessions) session.destroy()
})
