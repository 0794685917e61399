// TLS towards clients: which certificate is shown, whose client certificates count for which cluster, and for how long.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { connect as tlsConnect } from 'node:tls'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Open, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { http1Connect, requestHead } from '../harness/clients/http1-client.ts'
import { openHttp2, openRaw, type RawOptions } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { serverCertificate } from '../harness/pki.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const A = 'a.example.com'
const B = 'b.example.com'
const A_IP = '127.0.0.2'
const B_IP = '127.0.0.3'
const servingCA = createCA({ commonName: 'serving' })
// As kubeadm does it: every cluster's CA has the same name.
const caA = createCA({ commonName: 'kubernetes' })
const caB = createCA({ commonName: 'kubernetes' })
const aliceOfA = clientPair(caA, 'alice', ['dev'])
const bobOfB = clientPair(caB, 'bob')
const serverA = serverCertificate(servingCA, [A], [])
const serverB = serverCertificate(servingCA, [B], [])
let stubA: StubUpstream
let stubB: StubUpstream
let gateway: InProcessGateway
let open: ClientHttp2Session[] = []

function serving(
  pair: KeyPair | undefined,
  clientCA: string,
  serverNames: string[] = [],
): Partial<UpstreamClusterSpec> {
  const own = pair === undefined ? {} : { certData: base64(pair.certPem), keyData: base64(pair.keyPem) }
  return { secureServing: { ...own, clientCAData: base64(clientCA), serverNames } }
}

function clusterA(spec: Partial<UpstreamClusterSpec> = {}, clientCA = caA.certPem, pair = serverA): UpstreamCluster {
  const wanted = { ...serving(pair, clientCA, ['*.a.example.com']), addresses: { ips: [A_IP] }, ...spec }
  return clusterObject([stubA], { name: A, spec: wanted })
}

function clusterB(spec: Partial<UpstreamClusterSpec> = {}, clientCA = caB.certPem): UpstreamCluster {
  return clusterObject([stubB], {
    name: B,
    spec: { ...serving(serverB, clientCA), addresses: { ips: [B_IP] }, ...spec },
  })
}

before(async () => {
  stubA = await startStub()
  stubB = await startStub()
  gateway = await startInProcess([clusterA(), clusterB()], { listen: [{ host: '0.0.0.0', port: 0 }] })
})
after(async () => {
  for (const session of open) session.destroy()
  await gateway.stop()
  await stubA.stop()
  await stubB.stop()
})
beforeEach(() => {
  for (const session of open) session.destroy()
  open = []
  for (const stub of [stubA, stubB]) {
    stub.seen.length = 0
    stub.answer = (request) => reply(request, 200, '{}')
  }
  gateway.apply([clusterA(), clusterB()])
})

async function connect(options: Omit<RawOptions, 'port'>): Promise<ClientHttp2Session> {
  const session = await openHttp2({ port: gateway.port, ...options })
  open.push(session)
  return session
}

/** One request on a connection of its own. */
async function ask(options: Omit<RawOptions, 'port'>, head: readonly string[] = []): Promise<Response> {
  const session = await connect(options)
  return await h2Request(session, head.includes(':authority') ? head : [...head, ':authority', options.serverName ?? A])
}

function lastUser(stub: StubUpstream): string | undefined {
  return stub.seen.at(-1)?.values('impersonate-user')[0]
}

const utf8 = (values: readonly string[] | undefined): string[] =>
  (values ?? []).map((value) => Buffer.from(value, 'latin1').toString('utf8'))

/** A PEM of the leaf and what leads to its root. */
function chained(leaf: KeyPair, ...intermediates: KeyPair[]): KeyPair {
  return { certPem: [leaf, ...intermediates].map(({ certPem }) => certPem).join('\n'), keyPem: leaf.keyPem }
}

describe('the certificate of the gateway', () => {
  const shown = async (options: Omit<RawOptions, 'port'>): Promise<string> => {
    const { socket } = await openRaw({ port: gateway.port, ...options })
    const { CN } = socket.getPeerCertificate().subject
    socket.destroy()
    return String(CN)
  }

  test('is chosen by SNI, else by the address, else it is the own one', async () => {
    assert.equal(await shown({ serverName: A }), A)
    assert.equal(await shown({ serverName: B }), B)
    assert.equal(await shown({ serverName: 'A.Example.COM' }), A)
    assert.equal(await shown({ serverName: 'x.a.example.com' }), A)
    assert.equal(await shown({ host: B_IP }), B)
    assert.equal(await shown({ host: B_IP, serverName: A }), A, 'a name outranks the address')
    const own = await shown({})
    assert.ok(own !== A && own !== B)
    assert.equal(await shown({ serverName: 'nobody.example.com' }), own)
    assert.equal(await shown({ serverName: 'x.y.a.example.com' }), own, 'a wildcard covers one label')
  })

  test('is replaced for new connections, and a running watch goes on', async () => {
    stubA.answer = ({ stream }) => {
      stream.respond([':status', '200', 'content-type', 'application/json'])
      stream.write('{"type":"ADDED"}\n')
    }
    const session = await connect({ serverName: A, cert: aliceOfA })
    const watch = h2Open(session, [':authority', A, ':path', '/api/v1/pods?watch=1'])
    let received = ''
    watch.on('data', (chunk: Buffer) => {
      received += chunk.toString()
    })
    await once(watch, 'data')
    const renewed = issueCertificate(servingCA, { commonName: 'renewed', dnsNames: [A], usage: 'server' })
    gateway.apply([clusterA({}, caA.certPem, renewed), clusterB()])
    assert.equal(await shown({ serverName: A }), 'renewed')
    assert.equal(await shown({ host: A_IP }), 'renewed')
    assert.equal(await shown({ serverName: B }), B)
    stubA.seen[0]?.stream.write('{"type":"BOOKMARK"}\n')
    await waitFor('the event', () => received.endsWith('{"type":"BOOKMARK"}\n'))
    assert.equal(watch.closed, false)
  })

  test('a removed cluster: its name falls back to the own certificate', async () => {
    gateway.apply([clusterB()])
    const own = await shown({})
    assert.equal(await shown({ serverName: A }), own)
    assert.equal((await ask({ serverName: A, cert: aliceOfA })).status, 404)
  })

  test('TLS 1.2 and 1.3 only', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { socket } = await openRaw({
        port: gateway.port,
        serverName: A,
        tls: { minVersion: version, maxVersion: version },
      })
      assert.equal(socket.getProtocol(), version)
      socket.destroy()
    }
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    await assert.rejects(openRaw({ port: gateway.port, serverName: A, tls: old }), {
      code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    })
  })
})

describe('client certificates', () => {
  test('count on the cluster whose CA issued them, on no other, and never become anonymous', async () => {
    assert.equal((await ask({ serverName: A, cert: aliceOfA })).status, 200)
    assert.equal(lastUser(stubA), 'alice')
    assert.equal((await ask({ serverName: B, cert: bobOfB })).status, 200)
    assert.equal(lastUser(stubB), 'bob')
    const foreign = await ask({ serverName: B, cert: aliceOfA })
    assert.equal(foreign.status, 401)
    assert.equal(JSON.parse(foreign.body.toString()).message, 'Unauthorized')
    assert.equal((await ask({ serverName: A, cert: bobOfB })).status, 401)
    assert.equal(stubA.seen.length, 1)
    assert.equal(stubB.seen.length, 1)
  })

  test('a connection for one cluster does not serve another: 421', async () => {
    const session = await connect({ serverName: A, cert: aliceOfA })
    assert.equal((await h2Request(session, [':authority', B])).status, 421)
    assert.equal((await h2Request(session, [':authority', A, ':path', `/clusters/${B}/api`])).status, 421)
    assert.equal((await h2Request(session, [':authority', 'x.a.example.com:8443'])).status, 200, 'another name of it')
    const client = await http1Connect({ port: gateway.port, serverName: A, cert: aliceOfA })
    client.send(requestHead('GET /api/v1/pods', [`Host: ${B}`]))
    assert.equal((await client.response()).status, 421)
    client.send(requestHead('GET /api/v1/pods', [`Host: ${A}`]))
    assert.equal((await client.response()).status, 200)
    client.destroy()
    assert.equal(stubB.seen.length, 0)
  })

  test('none: anonymous, unless the cluster says no', async () => {
    assert.equal((await ask({ serverName: A })).status, 200)
    assert.equal(lastUser(stubA), 'system:anonymous')
    assert.deepEqual(stubA.seen[0]?.values('impersonate-group'), ['system:unauthenticated'])
    gateway.apply([clusterA({ authentication: { anonymous: false } }), clusterB()])
    assert.equal((await ask({ serverName: A })).status, 401)
    assert.equal((await ask({ serverName: A, cert: aliceOfA })).status, 200)
    assert.equal(stubA.seen.length, 2)
  })

  test('a cluster without client CAs accepts no certificate', async () => {
    gateway.apply([clusterA({ secureServing: {} }), clusterB()])
    assert.equal((await ask({ serverName: A, cert: aliceOfA })).status, 401)
    assert.equal((await ask({ serverName: A })).status, 200)
    assert.equal(lastUser(stubA), 'system:anonymous')
  })

  const now = Date.now()
  const day = 24 * 3_600_000
  const root = createCA({ commonName: 'root' })
  const middle = issueCertificate(root, { commonName: 'middle', usage: 'none', isCA: true })
  const lower = issueCertificate(middle, { commonName: 'lower', usage: 'none', isCA: true })
  const twin = createCA({ commonName: 'kubernetes' })
  const bad: [string, KeyPair, string][] = [
    ['self-signed', createCA({ commonName: 'alice' }), caA.certPem],
    ['from a CA with the right name but another key', clientPair(twin, 'alice'), caA.certPem],
    ['for servers only', issueCertificate(caA, { commonName: 'alice', usage: 'server' }), caA.certPem],
    [
      'expired',
      issueCertificate(caA, {
        commonName: 'alice',
        usage: 'client',
        notBefore: new Date(now - 2 * day),
        notAfter: new Date(now - day),
      }),
      caA.certPem,
    ],
    [
      'not yet valid',
      issueCertificate(caA, {
        commonName: 'alice',
        usage: 'client',
        notBefore: new Date(now + day),
        notAfter: new Date(now + 2 * day),
      }),
      caA.certPem,
    ],
    ['without its intermediate', clientPair(middle, 'alice'), root.certPem],
    ['issued by an end-entity certificate', chained(clientPair(aliceOfA, 'admin'), aliceOfA), caA.certPem],
    ['from a root above the intermediate that is trusted', clientPair(root, 'alice'), middle.certPem],
    ['with a control character in its name', clientPair(caA, 'a\x01b'), caA.certPem],
  ]
  for (const [name, pair, bundle] of bad) {
    test(`${name}: 401, never anonymous`, async () => {
      gateway.apply([clusterA({}, bundle), clusterB()])
      assert.equal((await ask({ serverName: A, cert: pair })).status, 401)
      // The same where the CAs of all clusters verify.
      assert.equal((await ask({ cert: pair }, [':path', `/clusters/${A}/api`])).status, 401)
      assert.equal(stubA.seen.length, 0)
    })
  }

  const good: [string, KeyPair, string][] = [
    ['without extended key usage', issueCertificate(caA, { commonName: 'alice', usage: 'none' }), caA.certPem],
    ['for clients and servers', issueCertificate(caA, { commonName: 'alice', usage: 'both' }), caA.certPem],
    ['with its intermediate', chained(clientPair(middle, 'alice'), middle), root.certPem],
    ['with two intermediates', chained(clientPair(lower, 'alice'), lower, middle), root.certPem],
    [
      'from an intermediate that the bundle holds beside its root',
      clientPair(middle, 'alice'),
      root.certPem + middle.certPem,
    ],
    // As in Go: what is in the bundle is trusted, root or not.
    ['from an intermediate that alone is trusted', clientPair(middle, 'alice'), middle.certPem],
    ['with its intermediate, which alone is trusted', chained(clientPair(middle, 'alice'), middle), middle.certPem],
    ['from one of several CAs', aliceOfA, twin.certPem + caA.certPem + caB.certPem],
  ]
  for (const [name, pair, bundle] of good) {
    test(`${name}: accepted`, async () => {
      gateway.apply([clusterA({}, bundle), clusterB()])
      assert.equal((await ask({ serverName: A, cert: pair })).status, 200)
      assert.equal(lastUser(stubA), 'alice')
      assert.equal((await ask({ cert: pair }, [':path', `/clusters/${A}/api`])).status, 200)
      assert.equal(lastUser(stubA), 'alice')
    })
  }

  /** A connection with a certificate that is good until then, and was good for a request. A slow machine needs more time for it. */
  async function usedInTime(open: (notAfter: Date) => Promise<ClientHttp2Session>): Promise<ClientHttp2Session> {
    for (let ms = 3_000; ; ms *= 2) {
      const notAfter = new Date(Date.now() + ms)
      const session = await open(notAfter)
      const { status } = await h2Request(session, [':authority', A])
      if (status === 200) return session
      // A certificate's time is in whole seconds.
      assert.ok(status === 401 && Date.now() > notAfter.getTime() - 1_000, `${status}`)
      session.destroy()
    }
  }

  test('one that expires on an open connection counts no more', async () => {
    const session = await usedInTime(async (notAfter) => {
      const soon = issueCertificate(caA, { commonName: 'alice', usage: 'client', notAfter })
      return connect({ serverName: A, cert: soon })
    })
    await waitFor('401', async () => (await h2Request(session, [':authority', A])).status === 401)
    assert.equal(session.destroyed, false)
    assert.ok(stubA.seen.every((request) => request.values('impersonate-user')[0] === 'alice'))
  })

  test('an intermediate that expires takes the certificate along', async () => {
    gateway.apply([clusterA({}, root.certPem), clusterB()])
    const session = await usedInTime(async (notAfter) => {
      const brief = issueCertificate(root, { commonName: 'brief', usage: 'none', isCA: true, notAfter })
      return connect({ serverName: A, cert: chained(clientPair(brief, 'alice'), brief) })
    })
    await waitFor('401', async () => (await h2Request(session, [':authority', A])).status === 401)
  })

  test('a CA that is taken away, and one that comes back, count on open connections at once', async () => {
    const session = await connect({ serverName: A, cert: aliceOfA })
    const status = async (): Promise<number> => (await h2Request(session, [':authority', A])).status
    assert.equal(await status(), 200)
    gateway.apply([clusterA({}, caB.certPem), clusterB()])
    assert.equal(await status(), 401)
    gateway.apply([clusterA({}, caB.certPem + caA.certPem), clusterB()])
    assert.equal(await status(), 200)
    gateway.apply([clusterA({ secureServing: {} }), clusterB()])
    assert.equal(await status(), 401)
    assert.equal(stubA.seen.length, 2)
    assert.ok(!stubA.seen.some((request) => request.values('impersonate-user')[0] !== 'alice'))
  })

  test('a wrong certificate beside a good token: the token counts', async () => {
    stubA.tokens.set('good', { username: 'carol' })
    const head = ['authorization', 'Bearer good']
    assert.equal((await ask({ serverName: A, cert: bobOfB }, head)).status, 200)
    assert.equal(lastUser(stubA), 'carol')
    assert.equal((await ask({ serverName: A, cert: bobOfB }, ['authorization', 'Bearer bad'])).status, 401)
    assert.equal((await ask({ serverName: A, cert: bobOfB }, ['authorization', 'Basic eA=='])).status, 401)
    assert.equal((await ask({ serverName: A, cert: aliceOfA }, head)).status, 200)
    assert.equal(lastUser(stubA), 'alice', 'a good certificate comes first')
  })
})

describe('without SNI', () => {
  test('path prefix, host, address; the chain is checked against the cluster that the request selects', async () => {
    const session = await connect({ cert: aliceOfA })
    const at = async (authority: string, path: string): Promise<number> =>
      (await h2Request(session, [':authority', authority, ':path', path])).status
    assert.equal(await at('127.0.0.1:8443', `/clusters/${A}/api`), 200)
    assert.equal(await at(A, '/api'), 200)
    assert.equal(stubA.seen.length, 2)
    assert.equal(await at('127.0.0.1:8443', `/clusters/${B}/api`), 401)
    assert.equal(await at(B, '/api'), 401)
    assert.equal(await at('127.0.0.1:8443', '/api'), 404)
    assert.equal(await at(A, '/api'), 200, 'the refusals left no mark')
    assert.equal(stubB.seen.length, 0)
    assert.ok(stubA.seen.every((request) => request.values('impersonate-user')[0] === 'alice'))
  })

  test('the default cluster', async () => {
    gateway.apply([clusterA(), clusterB({ default: true })])
    assert.equal((await ask({ cert: bobOfB }, [':authority', '127.0.0.1'])).status, 200)
    assert.equal(lastUser(stubB), 'bob')
    assert.equal((await ask({ cert: aliceOfA }, [':authority', '127.0.0.1'])).status, 401)
    assert.equal((await ask({ cert: aliceOfA }, [':authority', A])).status, 200)
    assert.equal((await ask({ serverName: 'nobody.example.com', cert: bobOfB }, [':authority', 'x'])).status, 200)
  })

  test('the address that the client connected to', async () => {
    assert.equal((await ask({ host: A_IP, cert: aliceOfA }, [':authority', A_IP])).status, 200)
    assert.equal(lastUser(stubA), 'alice')
    assert.equal((await ask({ host: B_IP, cert: bobOfB }, [':authority', B_IP])).status, 200)
    assert.equal((await ask({ host: B_IP, cert: aliceOfA }, [':authority', B_IP])).status, 401)
    assert.equal((await ask({ host: A_IP, cert: bobOfB }, [':authority', A_IP])).status, 401)
  })

  test('a path prefix outranks the address, with the certificates of its cluster', async () => {
    const path = `/clusters/${B}/api`
    assert.equal((await ask({ host: A_IP, cert: bobOfB }, [':authority', A_IP, ':path', path])).status, 200)
    assert.equal(lastUser(stubB), 'bob')
    assert.equal((await ask({ host: A_IP, cert: aliceOfA }, [':authority', A_IP, ':path', path])).status, 401)
    const named = { host: A_IP, serverName: 'gateway.example.com', cert: bobOfB }
    assert.equal((await ask(named, [':authority', 'gateway.example.com', ':path', path])).status, 200)
    assert.equal(stubA.seen.length, 0)
  })

  test('the port that the client connected to', async () => {
    gateway.apply([clusterA(), clusterB({ addresses: { ports: [gateway.port] } })])
    assert.equal((await ask({ cert: bobOfB }, [':authority', '127.0.0.1'])).status, 200)
    assert.equal(lastUser(stubB), 'bob')
    assert.equal((await ask({ host: A_IP, cert: aliceOfA }, [':authority', A_IP])).status, 200, 'the IP comes first')
    assert.equal(lastUser(stubA), 'alice')
  })

  test('a CA that a new cluster brings counts on new connections', async () => {
    gateway.apply([clusterA()])
    assert.equal((await ask({ cert: bobOfB }, [':path', `/clusters/${B}/api`])).status, 404)
    gateway.apply([clusterA(), clusterB()])
    assert.equal((await ask({ cert: bobOfB }, [':path', `/clusters/${B}/api`])).status, 200)
  })
})

describe('resumption', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${version}: no session is resumed, on the same cluster or another`, async () => {
      const tls = { minVersion: version, maxVersion: version } as const
      const sessions: Buffer[] = []
      const socket = tlsConnect({
        host: '127.0.0.1',
        port: gateway.port,
        servername: A,
        rejectUnauthorized: false,
        cert: aliceOfA.certPem,
        key: aliceOfA.keyPem,
        ...tls,
      })
      socket.on('session', (session) => sessions.push(session))
      await once(socket, 'secureConnect')
      socket.write(requestHead('GET /api/v1/pods', [`Host: ${A}`, 'Connection: close']))
      socket.resume()
      await once(socket, 'close')
      const offered = sessions.at(-1) ?? socket.getSession()
      assert.equal(lastUser(stubA), 'alice')
      for (const serverName of [A, B, undefined]) {
        if (offered === undefined) break
        // Without a certificate: an identity could only come from the session.
        const client = await http1Connect({
          port: gateway.port,
          session: offered,
          tls,
          ...(serverName === undefined ? {} : { serverName }),
        })
        assert.equal(client.raw.socket.isSessionReused(), false)
        client.send(requestHead(`GET ${serverName === B ? '' : `/clusters/${A}`}/api`, [`Host: ${serverName ?? A}`]))
        assert.equal((await client.response()).status, 200)
        assert.equal(lastUser(serverName === B ? stubB : stubA), 'system:anonymous')
        client.destroy()
      }
    })
  }
})

describe('the user that a certificate names', () => {
  const names = [
    'alice smith',
    'Zoë 王小明 🙂',
    'a,b;c',
    'CN=admin,O=system:masters',
    'a/b/O=system:masters',
    'a+O=system:masters',
    'per%cent%2Fx%',
    '"quoted" \\ back',
    '#hash <x>',
    'system:node:n1',
    'x'.repeat(60),
  ]
  for (const name of names) {
    test(JSON.stringify(name), async () => {
      const pair = issueCertificate(caA, { commonName: name, organizations: [`of ${name}`, 'two'], usage: 'client' })
      assert.equal((await ask({ serverName: A, cert: pair })).status, 200)
      const [seen] = stubA.seen
      assert.deepEqual(utf8(seen?.values('impersonate-user')), [name])
      assert.deepEqual(utf8(seen?.values('impersonate-group')), [`of ${name}`, 'two', 'system:authenticated'])
      assert.deepEqual(seen?.values('impersonate-uid'), [])
    })
  }

  test('groups in their order, duplicates too; the uid; the credential id', async () => {
    const organizations = ['z', 'a', 'system:masters', 'a', 'm']
    const pair = issueCertificate(caA, { commonName: 'alice', organizations, uid: 'u-1 é', usage: 'client' })
    await ask({ serverName: A, cert: pair })
    const [seen] = stubA.seen
    assert.deepEqual(seen?.values('impersonate-group'), [...organizations, 'system:authenticated'])
    assert.deepEqual(utf8(seen?.values('impersonate-uid')), ['u-1 é'])
    const [credential] = seen?.values('impersonate-extra-authentication.kubernetes.io%2fcredential-id') ?? []
    assert.match(credential ?? '', /^X509SHA256=[0-9a-f]{64}$/)
  })

  test('no common name: the certificate has no opinion', async () => {
    const pair = issueCertificate(caA, { commonName: '', organizations: ['system:masters'], usage: 'client' })
    assert.equal((await ask({ serverName: A, cert: pair })).status, 200)
    assert.equal(lastUser(stubA), 'system:anonymous')
    assert.deepEqual(stubA.seen[0]?.values('impersonate-group'), ['system:unauthenticated'])
  })

  test('an empty uid: 401', async () => {
    const pair = issueCertificate(caA, { commonName: 'alice', uid: '', usage: 'client' })
    assert.equal((await ask({ serverName: A, cert: pair })).status, 401)
    assert.equal(stubA.seen.length, 0)
  })
})
