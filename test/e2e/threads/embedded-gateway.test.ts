// The gateway with its own API server, as people use it: objects come by kubectl, and each change is in force in all threads
// for the next request; the switch, revocation and credentials by the commands; nothing is lost over a restart.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { connect as tlsConnect } from 'node:tls'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, issueCertificate, type KeyPair } from '../../../src/pki/io/pki.ts'
import type { Json } from '../../harness/clients/control-client.ts'
import { h2Open, h2Response } from '../../harness/clients/h2-client.ts'
import {
  ClientConnections,
  type EmbeddedGateway,
  runCli,
  startEmbedded,
  UC_PATH,
} from '../../harness/gateways/embedded.ts'
import type { KubectlResult } from '../../harness/kubectl/kubectl.ts'
import { ALLOW_ALL, base64, clientPair } from '../../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../../harness/upstreams/stub-upstream.ts'
import { GiveUp, waitFor } from '../../harness/wait.ts'

const THREADS = Number(process.env['PORTCULLIS_TEST_THREADS'] ?? 2)
const NAME = 'prod.example.com'
const POST = [':method', 'POST', ':path', '/api/v1/namespaces/default/pods']
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')

let east: StubUpstream
let west: StubUpstream
let embedded: EmbeddedGateway
let clients: ClientConnections
let dir: string

function secret(name: string, data: Readonly<Record<string, string>>): object {
  const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)]))
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, data: encoded }
}

function reference(name: string, key: string): { namespace: string; name: string; key: string } {
  return { namespace: 'default', name, key }
}

function servingPair(commonName: string): KeyPair {
  return issueCertificate(createCA({ commonName }), { commonName, usage: 'server', dnsNames: [NAME] })
}

/** Everything that can be a reference to a Secret is one. */
function spec(): UpstreamClusterSpec {
  return {
    servers: [{ endpoint: east.url }],
    clientConfig: { bearerTokenRef: reference('upstream', 'token'), caRef: reference('upstream', 'ca') },
    secureServing: {
      certRef: reference('serving', 'tls.crt'),
      keyRef: reference('serving', 'tls.key'),
      clientCARef: reference('serving', 'ca.crt'),
    },
    dispatchPolicies: [ALLOW_ALL],
    healthCheck: { intervalSeconds: 1 },
  }
}

const object = (name: string, fields: object): object => ({
  apiVersion: 'proxy.kubegateway.io/v1alpha1',
  kind: 'UpstreamCluster',
  metadata: { name },
  spec: fields,
})

function serving(name: string, ca: KeyPair): object {
  const pair = servingPair(name)
  return secret('serving', { 'tls.crt': pair.certPem, 'tls.key': pair.keyPem, 'ca.crt': ca.certPem })
}

const says = (stub: StubUpstream, name: string): void => {
  stub.answer = (request) => reply(request, 200, JSON.stringify({ server: name }))
}

async function answering(fields: object): Promise<void> {
  // A replacement of the whole spec: what the test before has set is gone. kubectl reads the version that it replaces, and
  // says Conflict when the gateway writes the status right then, as it would with any apiserver.
  await waitFor('the replacement', async () => {
    const { code, stderr } = await embedded.kubectl(['replace', '-f', '-'], {
      stdin: JSON.stringify(object(NAME, fields)),
    })
    if (code !== 0 && !stderr.includes('(Conflict)')) throw new GiveUp(`kubectl replace: ${stderr}`)
    return code === 0
  })
}

async function statusOf(name = NAME): Promise<Json> {
  return (await embedded.admin.get(`${UC_PATH}/${name}`)).json.status
}

async function inForce(): Promise<boolean> {
  const { metadata, status } = (await embedded.admin.get(`${UC_PATH}/${NAME}`)).json
  const [gateway] = status?.gateways ?? []
  return gateway?.observedGeneration === metadata.generation && gateway.threadsApplied === THREADS
}

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-e2e-'))
  east = await startStub()
  west = await startStub()
  says(east, 'east')
  says(west, 'west')
  embedded = await startEmbedded({ args: ['--replica-name=replica-1', '--control-viewer=user:carol'] })
  clients = new ClientConnections(() => embedded.gateway, NAME, alice)
  await embedded.apply(
    secret('upstream', { token: 'first', ca: east.caPem }),
    serving('first serving', clientCA),
    object(NAME, spec()),
  )
})
after(async () => {
  clients?.close()
  await embedded?.stop()
  await east?.stop()
  await west?.stop()
  rmSync(dir, { recursive: true, force: true })
})

describe('objects by kubectl', { concurrency: false }, () => {
  test('Ready=True, and requests are served by every thread', async () => {
    assert.match(
      await embedded.succeed(['wait', '--for=condition=Ready', `uc/${NAME}`, '--timeout=30s']),
      /condition met/,
    )
    east.seen.length = 0
    await clients.everywhereStatus(200)
    const connections = new Set(east.seen.map(({ session }) => session))
    assert.ok(connections.size >= THREADS, `${connections.size} connections upstream, one for each thread at least`)
    assert.deepEqual(new Set(east.seen.flatMap((seen) => seen.values('authorization'))), new Set(['Bearer first']))
    const table = await embedded.succeed(['get', 'uc'])
    assert.match(table, /^NAME +READY +.*AGE/)
    assert.match(table, new RegExp(`^${NAME} +True +`, 'm'))
  })

  test('status says what each thread of each replica has in force, and Events tell of it', async () => {
    const { generation } = (await embedded.admin.get(`${UC_PATH}/${NAME}`)).json.metadata
    const status = await waitFor('the status', async () => {
      const now = await statusOf()
      return now?.observedGeneration === generation && now
    })
    const [gateway, ...others] = status.gateways
    assert.deepEqual(others, [])
    assert.deepEqual(
      { ...gateway, appliedAt: '' },
      { name: 'replica-1', threads: THREADS, threadsApplied: THREADS, observedGeneration: generation, appliedAt: '' },
    )
    assert.ok(Date.parse(gateway.appliedAt) > 0)
    assert.deepEqual(status.endpoints, { ready: 1, total: 1 })
    const selector = `involvedObject.name=${NAME}`
    await waitFor('the Event', async () =>
      /^default .* Normal +Applied +upstreamcluster\/prod/m.test(
        await embedded.succeed(['get', 'events', '-A', '--field-selector', selector]),
      ),
    )
    assert.match(await embedded.succeed(['describe', 'uc', NAME]), /Events:[\s\S]*Applied/)
  })
})

describe('each kind of field is in force on all connections, without a restart', { concurrency: false }, () => {
  let pid = 0
  before(() => {
    pid = embedded.gateway.pid
  })
  afterEach(async () => {
    await answering(spec())
    // The answers alone do not tell that all threads have the object as it was.
    await waitFor('the object as it was, in all threads', inForce)
    await clients.everywhere('the object as it was', ({ body }) => body.toString() === '{"server":"east"}')
    assert.equal(embedded.gateway.pid, pid)
  })
  const change = (fields: object): Promise<Json> => embedded.patch(NAME, { spec: fields })
  const tokenEverywhere = (token: string): Promise<unknown> =>
    waitFor(`the token ${token} on all connections`, async () => {
      east.seen.length = 0
      await clients.everywhereStatus(200)
      return east.seen.every((seen) => seen.values('authorization').join() === `Bearer ${token}`)
    })

  test('servers', async () => {
    await change({ servers: [{ endpoint: west.url }] })
    await clients.everywhere('the other server', ({ body }) => body.toString() === '{"server":"west"}')
    await change({ servers: [{ endpoint: west.url, disabled: true }] })
    await clients.everywhereStatus(503)
    const ready = (await statusOf()).conditions.find(({ type }: Json) => type === 'Ready')
    assert.ok(ready)
    await embedded.succeed(['wait', '--for=condition=Ready=false', `uc/${NAME}`, '--timeout=30s'])
  })

  test('clientConfig: the token, inline in the place of the reference', async () => {
    await change({ clientConfig: { bearerTokenRef: null, bearerToken: base64('inline') } })
    await tokenEverywhere('inline')
  })

  test('secureServing: users of a CA, and further names', async () => {
    const otherCA = createCA({ commonName: 'other clients' })
    const bob = new ClientConnections(() => embedded.gateway, NAME, clientPair(otherCA, 'bob'))
    const stranger = new ClientConnections(() => embedded.gateway, 'second.example.com', clientPair(otherCA, 'bob'))
    try {
      await stranger.everywhereStatus(404)
      await change({
        secureServing: {
          clientCARef: null,
          clientCAData: base64(otherCA.certPem),
          serverNames: ['second.example.com'],
        },
        authentication: { anonymous: false },
      })
      await bob.everywhereStatus(200)
      await stranger.everywhereStatus(200)
      await clients.everywhereStatus(401)
    } finally {
      bob.close()
      stranger.close()
    }
  })

  test('flowControl: one limit for all threads', async () => {
    await change({
      flowControl: { flowControlSchemas: [{ name: 'few', tokenBucket: { qps: 1, burst: 1 } }] },
      dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'few' }],
    })
    await waitFor('the limit', async () => (await clients.ask()).some(({ status }) => status === 429))
    const startedMs = performance.now()
    const answers = await clients.ask()
    const admitted = answers.filter(({ status }) => status === 200).length
    assert.ok(admitted <= 2 + (performance.now() - startedMs) / 1000, `${admitted} admitted`)
    assert.ok(answers.every(({ status }) => status === 200 || status === 429))
  })

  test('dispatchPolicies', async () => {
    await change({ dispatchPolicies: [{ rules: ALLOW_ALL.rules, action: 'Deny' }] })
    await clients.everywhereStatus(403)
    await change({ dispatchPolicies: [{ rules: [{ verbs: ['list'], apiGroups: ['*'], resources: ['pods'] }] }] })
    await clients.everywhereStatus(200)
    await clients.everywhereStatus(403, POST)
  })

  test('accessControl', async () => {
    await change({ accessControl: { deny: [{ name: 'out', users: ['alice'] }] } })
    await clients.everywhereStatus(403)
    await change({ accessControl: { deny: null, allow: [{ users: ['bob'] }] } })
    await clients.everywhereStatus(403)
    await change({ accessControl: { allow: [{ users: ['alice'] }] } })
    await clients.everywhereStatus(200)
  })

  test('degrade', async () => {
    await change({ degrade: { mode: 'ReadOnly', reason: 'incident 7' } })
    const refused = await clients.everywhereStatus(503, POST)
    assert.ok(refused.every(({ body }) => body.toString().includes('incident 7')))
    await clients.everywhereStatus(200)
    await change({ degrade: { mode: 'Freeze' } })
    await clients.everywhereStatus(503)
    await change({ degrade: { mode: 'Off' } })
    await clients.everywhereStatus(200, POST)
  })

  test('the annotation of KubeGateway that freezes', async () => {
    const annotate = (value: string): Promise<string> =>
      embedded.succeed(['annotate', 'uc', NAME, `proxy.kubegateway.io/feature-gates${value}`])
    await annotate('=DenyAllRequests=true')
    await clients.everywhere('nothing to pass', ({ status }) => status >= 400)
    await annotate('-')
    await clients.everywhereStatus(200)
  })

  test('default: whatever no other cluster claims', async () => {
    const anything = new ClientConnections(() => embedded.gateway, 'whatever.example.com', alice)
    try {
      await anything.everywhereStatus(404)
      await change({ default: true })
      await anything.everywhereStatus(200)
      await change({ default: false })
      await anything.everywhereStatus(404)
    } finally {
      anything.close()
    }
  })

  test('addresses: of the connection, and the port', async () => {
    const { port } = embedded.gateway
    // An IP address is no name: there is none in the handshake.
    const byAddress = new ClientConnections(() => embedded.gateway, '', alice)
    const head = [':authority', `127.0.0.1:${port}`]
    try {
      await byAddress.everywhereStatus(404, head)
      await change({ addresses: { ips: ['127.0.0.1'] } })
      await byAddress.everywhereStatus(200, head)
      await change({ addresses: { ips: null } })
      await byAddress.everywhereStatus(404, head)
      await change({ addresses: { ports: [port] } })
      await byAddress.everywhereStatus(200, head)
    } finally {
      byAddress.close()
    }
  })

  test('authentication: anonymous, and who is revoked', async () => {
    const anonymous = new ClientConnections(() => embedded.gateway, NAME)
    try {
      await anonymous.everywhereStatus(200)
      await change({ authentication: { anonymous: false } })
      await anonymous.everywhereStatus(401)
    } finally {
      anonymous.close()
    }
    await change({ authentication: { revoked: [{ user: 'alice', reason: 'left' }] } })
    await clients.everywhereStatus(401)
    await change({ authentication: { revoked: [] } })
    await clients.everywhereStatus(200)
  })

  test('healthCheck: the path that is asked', async () => {
    east.seen.length = 0
    await change({ healthCheck: { path: '/livez' } })
    await waitFor('the other path', () => east.seen.some(({ path }) => path === '/livez'))
    east.healthy = false
    try {
      await change({ healthCheck: { path: '/readyz', unhealthyThreshold: 1 } })
      await waitFor('the status to say so', async () => (await statusOf()).endpoints.ready === 0)
    } finally {
      east.healthy = true
    }
  })

  test('logging', async () => {
    const lines = (path: string): number => embedded.gateway.accessLog().filter(({ target }) => target === path).length
    let round = 0
    /** Resolves once all requests of a round have their lines, or have none by the time those of another one could be there. */
    const loggedOfRound = async (): Promise<number> => {
      const path = `/api/v1/pods?limit=${++round}`
      const { length } = await clients.ask([':path', path])
      await clients.ask()
      return lines(path) / length
    }
    await change({ logging: { mode: 'on' } })
    await waitFor('lines of all connections', async () => (await loggedOfRound()) === 1)
    await change({ logging: { mode: 'off' } })
    await waitFor('no more lines', async () => (await loggedOfRound()) === 0)
  })

  test('Secrets that change', async () => {
    await embedded.apply(secret('upstream', { token: 'second', ca: east.caPem }))
    await tokenEverywhere('second')
    await embedded.apply(serving('second serving', clientCA))
    await waitFor('the other certificate', async () => (await shownCertificate()) === 'second serving')
    // The last good one stays in force.
    await embedded.apply(secret('serving', { 'tls.crt': 'no certificate', 'tls.key': 'no key', 'ca.crt': 'none' }))
    try {
      await embedded.succeed(['wait', '--for=condition=Ready=false', `uc/${NAME}`, '--timeout=30s'])
      const [ready] = (await statusOf()).conditions
      assert.equal(ready.reason, 'Invalid')
      assert.match(ready.message, /spec\.secureServing\.keyRef: .*\. the last good version stays in force/)
      assert.equal(await shownCertificate(), 'second serving')
      await clients.everywhereStatus(200)
    } finally {
      await embedded.apply(serving('third serving', clientCA))
    }
    await embedded.succeed(['wait', '--for=condition=Ready', `uc/${NAME}`, '--timeout=30s'])
  })

  test('an object that is deleted', async () => {
    const fields = { ...spec(), secureServing: { clientCARef: reference('serving', 'ca.crt') } }
    await embedded.apply(object('short.example.com', fields))
    const short = new ClientConnections(() => embedded.gateway, 'short.example.com', alice)
    try {
      await short.everywhereStatus(200)
      await embedded.succeed(['delete', 'uc', 'short.example.com'])
      await short.everywhereStatus(404)
    } finally {
      short.close()
    }
  })
})

function shownCertificate(): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: embedded.gateway.port, servername: NAME, rejectUnauthorized: false }
    const socket = tlsConnect(options, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

describe('the commands', { concurrency: false }, () => {
  const cli = (...args: string[]): ReturnType<typeof runCli> => runCli([...args, `--kubeconfig=${embedded.kubeconfig}`])

  test('degrade: in force everywhere when it says so, and over by itself', async () => {
    const thrown = await cli('degrade', NAME, '--mode', 'ReadOnly', '--reason', 'a drill', '--ttl', '6s', '--status')
    assert.equal(thrown.code, 0, thrown.stderr)
    assert.match(thrown.stdout, new RegExp(`replica-1 +${THREADS}/${THREADS} +\\d+ .*in force`))
    const refused = await clients.ask(POST)
    assert.ok(refused.every(({ status, body }) => status === 503 && body.toString().includes('a drill')))
    const selector = `involvedObject.name=${NAME},reason=Degraded`
    await waitFor('the Event', async () =>
      /a drill/.test(await embedded.succeed(['get', 'events', '--field-selector', selector])),
    )
    await clients.everywhereStatus(200, POST)
    await waitFor('the condition', async () => {
      const degraded = (await statusOf()).conditions.find(({ type }: Json) => type === 'Degraded')
      return degraded.status === 'False' && degraded.reason === 'Expired'
    })
    const off = await cli('degrade', NAME, '--mode', 'Off')
    assert.equal(off.code, 0, off.stderr)
  })

  test('revoke: a running watch is cut, and 401 from then on', async () => {
    east.answer = (request) => {
      if (!request.path.includes('watch=1')) return reply(request, 200, '{}')
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write('{"type":"BOOKMARK"}\n')
    }
    const watches = clients.sessions().map((session) => {
      return h2Response(h2Open(session, [':authority', NAME, ':path', '/api/v1/pods?watch=1']))
    })
    await waitFor('watches', () => east.seen.filter(({ path }) => path.includes('watch=1')).length >= watches.length)
    const file = join(dir, 'alice.crt')
    writeFileSync(file, alice.certPem)
    const revoked = await cli('revoke', NAME, '--certificate', file, '--reason', 'laptop lost')
    assert.equal(revoked.code, 0, revoked.stderr)
    // All of them end.
    await Promise.all(watches)
    await clients.everywhereStatus(401)
    const bob = new ClientConnections(() => embedded.gateway, NAME, clientPair(clientCA, 'bob'))
    await bob.everywhereStatus(200)
    bob.close()
    await embedded.patch(NAME, { spec: { authentication: null } })
    await clients.everywhereStatus(200)
    says(east, 'east')
  })

  test('control kubeconfig: who may do what', async () => {
    const server = `https://127.0.0.1:${embedded.gateway.controlPort}`
    const printed = async (file: string, ...args: string[]): Promise<string> => {
      const given = [`--data-dir=${embedded.dataDir}`, `--server=${server}`, ...args]
      const { code, stdout, stderr } = await runCli(['control', 'kubeconfig', ...given])
      assert.equal(code, 0, stderr)
      writeFileSync(join(dir, file), stdout)
      return join(dir, file)
    }
    const [admin = '', viewer = '', named = '', stranger = ''] = await Promise.all([
      printed('admin', '--user=dave', '--group=portcullis:admins'),
      printed('viewer', '--user=erin', '--group=portcullis:viewers', '--token-ttl=1h'),
      printed('named', '--user=carol'),
      printed('stranger', '--user=mallory', '--group=system:masters'),
    ])
    const as = (kubeconfig: string, ...args: string[]): Promise<KubectlResult> => embedded.kubectl(args, { kubeconfig })
    assert.match((await as(viewer, 'auth', 'whoami')).stdout, /erin/)
    for (const kubeconfig of [viewer, named]) {
      assert.equal((await as(kubeconfig, 'get', 'uc')).code, 0)
      assert.match(
        (await as(kubeconfig, 'label', 'uc', NAME, 'a=b')).stderr,
        /cannot patch resource "upstreamclusters"/,
      )
      assert.match((await as(kubeconfig, 'get', 'secrets')).stderr, /cannot list resource "secrets"/)
    }
    assert.match((await as(stranger, 'get', 'uc')).stderr, /User "mallory" cannot list resource "upstreamclusters"/)
    assert.equal((await as(admin, 'label', 'uc', NAME, 'a=b')).code, 0)
    assert.equal((await as(admin, 'label', 'uc', NAME, 'a-')).code, 0)
  })

  test('anonymous: health only; a bad token is no identity', async () => {
    const anonymous = embedded.clientOf({})
    for (const path of ['/livez', '/readyz', '/healthz']) {
      const { code, text } = await anonymous.get(path)
      assert.equal(code, 200, path)
      assert.match(text, /ok/)
    }
    for (const path of [UC_PATH, '/api', '/apis', '/openapi/v2', '/openapi/v3', '/api/v1/secrets', '/metrics']) {
      assert.equal((await anonymous.get(path)).code, 403, path)
    }
    assert.equal((await embedded.clientOf({ token: 'made.up.token' }).get('/livez')).code, 401)
    assert.equal((await embedded.gateway.admin('/readyz')).status, 200)
  })
})

test('a restart keeps everything', async () => {
  const path = `${UC_PATH}/${NAME}`
  const before = (await embedded.admin.get(path)).json
  const secrets = (await embedded.admin.get('/api/v1/secrets')).json.items
  assert.ok(secrets.length >= 2)
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    clients.close()
    await embedded.restart(signal)
    await clients.everywhereStatus(200)
    const now = (await embedded.admin.get(path)).json
    assert.deepEqual(now.spec, before.spec)
    assert.equal(now.metadata.uid, before.metadata.uid)
    assert.equal(now.metadata.generation, before.metadata.generation)
    assert.ok(Number(now.metadata.resourceVersion) >= Number(before.metadata.resourceVersion))
    assert.deepEqual((await embedded.admin.get('/api/v1/secrets')).json.items, secrets)
    // The kubeconfig knows the new port.
    await embedded.succeed(['wait', '--for=condition=Ready', `uc/${NAME}`, '--timeout=30s'])
  }
  assert.deepEqual(await embedded.succeed(['get', 'ns', '-o', 'name']).then((text) => text.split('\n').sort()), [
    '',
    'namespace/default',
    'namespace/kube-system',
    'namespace/portcullis-system',
  ])
})
