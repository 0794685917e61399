import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { after, before, type TestContext, test } from 'node:test'
import { base64 } from '../../../../test/harness/clusters/kubeconfig.ts'
import { stubServing } from '../../../../test/harness/upstreams/stub-upstream.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import { type Logger, SILENT } from '../../../kit/api/ports.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { PODS } from '../../../kube/api/kinds/foreign-kinds.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { createCA, issueCertificate } from '../../../pki/io/pki.ts'
import type { ClientConfig, UpstreamServer } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import { NO_ADDRESSES, type ServerAddresses, SLICE } from '../../core/cluster/compile-settings.ts'
import { ClusterTable } from '../../state/clusters.ts'
import { createUpstreamKubeClient } from './kube-client.ts'

const quiet = (): void => undefined
const logged: unknown[] = []
const log: Logger = { ...SILENT, debug: (_, fields) => logged.push(fields) }

interface Seen {
  readonly path: string
  readonly authorization: string
  readonly user: string
}

/** An API server with one Pod; a watch stays open and silent. */
class Apiserver {
  readonly seen: Seen[] = []
  readonly watches = new Set<ServerResponse>()
  status = 200
  url = ''
  readonly #server: Server
  readonly #sockets = new Set<Duplex>()

  constructor() {
    const { ca, pair } = stubServing()
    const tls = { cert: pair.certPem, key: pair.keyPem, requestCert: true, rejectUnauthorized: false, ca: ca.certPem }
    this.#server = createServer(tls, (request, response) => this.#answer(request, response))
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  async start(host = '127.0.0.1'): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, host, resolve))
    this.url = `https://${host}:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { CN } =
      (request.socket as unknown as { getPeerCertificate(): { subject?: { CN?: string } } }).getPeerCertificate()
        .subject ?? {}
    this.seen.push({ path: request.url ?? '', authorization: request.headers.authorization ?? '', user: CN ?? '' })
    const { searchParams } = new URL(request.url ?? '', this.url)
    if (searchParams.get('watch') === '1') {
      this.watches.add(response)
      response.on('close', () => this.watches.delete(response))
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
      return
    }
    const items = [{ metadata: { name: 'a', uid: 'u', resourceVersion: '3', labels: { app: 'web' } } }]
    const list = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items }
    const refusal = { kind: 'Status', code: this.status, reason: 'Forbidden', message: 'no' }
    response.writeHead(this.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(this.status === 200 ? list : refusal))
  }
}

const servers = [new Apiserver(), new Apiserver()] as const
const [first, second] = servers

before(async () => {
  for (const server of servers) await server.start()
})
after(async () => {
  for (const server of servers) await server.stop()
})

function scene(t: TestContext) {
  for (const server of servers) {
    server.seen.length = 0
    server.status = 200
  }
  const clusters = new ClusterTable()
  let revision = 0
  const apply = (
    clientConfig: ClientConfig,
    endpoints: readonly UpstreamServer[],
    addresses: ServerAddresses = NO_ADDRESSES,
  ): void => {
    const spec = {
      servers: endpoints,
      clientConfig: { caData: base64(stubServing().ca.certPem), ...clientConfig },
      dispatchPolicies: [],
    }
    const metadata = { name: 'prod' }
    const object = {
      apiVersion: 'proxy.kubegateway.io/v1alpha1' as const,
      kind: 'UpstreamCluster' as const,
      metadata,
      spec,
    }
    const compiled = compileCluster({ object, revision: String(revision++) }, undefined, addresses)
    clusters.change([compiled], [], systemClock.monotonic())
  }
  const probe = (server: Apiserver, ok: boolean): void => {
    const live = clusters.get('prod')
    const endpoint = live?.endpoints.byUrl(server.url)
    if (live === undefined || endpoint === undefined) throw new Error('no such endpoint')
    const times = Math.max(live.compiled.healthCheck.unhealthyThreshold, live.compiled.healthCheck.healthyThreshold)
    for (let i = 0; i < times; i++) {
      live.endpoints.onProbe(endpoint, ok, '', live.compiled.healthCheck, systemClock.monotonic())
    }
  }
  const timing = { firstDelayMs: 5, longestDelayMs: 20 }
  const client = createUpstreamKubeClient({
    guard: undefined,
    cluster: () => clusters.get('prod'),
    name: 'prod',
    log,
    timing,
  })
  t.after(() => client.close())
  return { clusters, apply, probe, client }
}

const TOKEN = { bearerToken: base64('sesame') }

test('calls go to healthy endpoints in turn, with the credentials of the cluster', async (t) => {
  const { apply, probe, client } = scene(t)
  apply(
    TOKEN,
    servers.map(({ url }) => ({ endpoint: url })),
  )
  probe(first, true)
  probe(second, true)
  for (let i = 0; i < 4; i++) assert.equal((await client.list(PODS, '', 'app=web')).items.length, 1)
  assert.deepEqual([first.seen.length, second.seen.length], [2, 2])
  assert.equal(first.seen[0]?.authorization, 'Bearer sesame')
  assert.match(first.seen[0]?.path ?? '', /^\/api\/v1\/pods\?labelSelector=app%3Dweb/)
  probe(first, false)
  for (let i = 0; i < 4; i++) await client.list(PODS, '')
  assert.deepEqual([first.seen.length, second.seen.length], [2, 6])
  assert.equal(await client.currentVersion?.(PODS), '7')
  assert.equal(second.seen.at(-1)?.path, '/api/v1/pods?limit=1')
})

test('what is logged of a watch names the cluster', async (t) => {
  const { client } = scene(t)
  const following = client.follow(PODS, '', {
    onReplace: () => undefined,
    onChange: () => undefined,
    onState: () => undefined,
  })
  t.after(() => following.stop())
  const why = 'there is no UpstreamCluster prod'
  const expected = JSON.stringify({ cluster: 'prod', resource: 'pods', why })
  await waitFor('a line', () => logged.some((fields) => JSON.stringify(fields) === expected))
})

test('no endpoint, no cluster, and a wrong CA give no answer; a refusal is one', async (t) => {
  const { clusters, apply, probe, client } = scene(t)
  const noAnswer = async (about: RegExp): Promise<void> => {
    const error: unknown = await client.list(PODS, '').catch((caught: unknown) => caught)
    assert.ok(error instanceof Error && !(error instanceof StatusError))
    assert.match(error.message, about)
  }
  await noAnswer(/there is no UpstreamCluster prod/)
  apply(TOKEN, [{ endpoint: first.url }])
  await noAnswer(/prod has no endpoint that has been checked yet/)
  probe(first, false)
  await noAnswer(/prod has no healthy endpoint/)
  apply(TOKEN, [{ endpoint: first.url, disabled: true }])
  await noAnswer(/prod has no enabled endpoint/)
  apply(TOKEN, [{ endpoint: first.url }])
  probe(first, true)
  first.status = 403
  await assert.rejects(client.list(PODS, ''), (error) => error instanceof StatusError && error.code === 403)
  apply({ ...TOKEN, caData: base64(createCA({ commonName: 'other' }).certPem) }, [{ endpoint: first.url }])
  await noAnswer(new RegExp(`no answer from ${first.url}`))
  first.status = 200
  apply({ ...TOKEN, caData: '', insecure: true }, [{ endpoint: first.url }])
  await client.list(PODS, '')
  clusters.change([], ['prod'], systemClock.monotonic())
  await noAnswer(/there is no UpstreamCluster prod/)
})

test('an address of a name, and one of an EndpointSlice, is verified by the name of the server', async (t) => {
  // The certificate is valid for localhost and 127.0.0.1.
  const other = new Apiserver()
  await other.start('127.0.0.2')
  t.after(() => other.stop())
  const { host, port } = new URL(other.url)
  for (const [name, works] of [
    ['localhost', true],
    ['api.test', false],
  ] as const) {
    const { apply, probe, client } = scene(t)
    const endpoint = `https://${name}:${port}`
    const ways: readonly [UpstreamServer, ServerAddresses][] = [
      [{ endpoint, resolve: true }, new Map([[endpoint, ['127.0.0.2']]])],
      [{ endpoint }, new Map([[SLICE, [host]]])],
    ]
    for (const [server, addresses] of ways) {
      apply(TOKEN, [server], addresses)
      probe(other, true)
      if (works) assert.equal((await client.list(PODS, '')).items.length, 1)
      else await assert.rejects(client.list(PODS, ''), /no answer from https:\/\/127\.0\.0\.2/)
    }
  }
  assert.equal(other.seen.length, 2)
})

test('another token, another certificate, another server: from the next call on', async (t) => {
  const { apply, probe, client } = scene(t)
  apply(TOKEN, [{ endpoint: first.url }])
  probe(first, true)
  await client.list(PODS, '')
  apply({ bearerToken: base64('other') }, [{ endpoint: first.url }])
  await client.list(PODS, '')
  const { certPem, keyPem } = issueCertificate(stubServing().ca, { commonName: 'gateway', usage: 'client' })
  apply({ certData: base64(certPem), keyData: base64(keyPem), serverName: 'localhost' }, [{ endpoint: first.url }])
  await client.list(PODS, '')
  assert.deepEqual(
    first.seen.map(({ authorization, user }) => [authorization, user]),
    [
      ['Bearer sesame', ''],
      ['Bearer other', ''],
      ['', 'gateway'],
    ],
  )
  apply({ serverName: 'elsewhere.test' }, [{ endpoint: first.url }])
  await assert.rejects(client.list(PODS, ''), /its certificate is for another name/)
  apply(TOKEN, [{ endpoint: second.url }])
  probe(second, true)
  await client.list(PODS, '')
  assert.equal(second.seen.length, 1)
})

test('a watch moves to another endpoint when its own is no longer healthy or listed, without a new list', async (t) => {
  const { apply, probe, client } = scene(t)
  const both = servers.map(({ url }) => ({ endpoint: url }))
  apply(TOKEN, both)
  probe(first, true)
  const received: string[] = []
  const following = client.follow(
    PODS,
    '',
    {
      onReplace: (objects) => void received.push(`all ${objects.length}`),
      onChange: quiet,
      onVersion: (version) => void received.push(version),
      onState: quiet,
    },
    { labelSelector: 'app=web', transform: ({ metadata }) => ({ metadata }) },
  )
  t.after(() => following.stop())
  const lists = (): number => [...first.seen, ...second.seen].filter(({ path }) => !path.includes('watch=')).length
  await waitFor('the first watch', () => first.watches.size === 1)
  probe(second, true)
  probe(first, false)
  await waitFor('the watch on the other', () => second.watches.size === 1 && first.watches.size === 0)
  // It stays if there is no better one.
  probe(second, false)
  probe(first, true)
  await waitFor('the watch on the first', () => first.watches.size === 1)
  apply(TOKEN, [{ endpoint: second.url }])
  probe(second, true)
  await waitFor('the watch on the only one', () => second.watches.size === 1 && first.watches.size === 0)
  apply({ bearerToken: base64('other') }, [{ endpoint: second.url }])
  await waitFor(
    'the watch of another',
    () => second.seen.at(-1)?.authorization === 'Bearer other' && second.watches.size === 1,
  )
  assert.deepEqual([lists(), received], [1, ['all 1', '7']])
  assert.match(second.seen.at(-1)?.path ?? '', /labelSelector=app%3Dweb.*resourceVersion=7/)
})
