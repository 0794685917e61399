// The degrade switch, and who is refused by rule: what an incident lets through, what every refusal says.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { DEGRADE_MODES, type DegradeMode } from '../../src/gateway/api/upstream-cluster/degrade-modes.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { http1Connect } from '../harness/clients/http1-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const users = {
  alice: clientPair(clientCA, 'alice', ['dev']),
  bob: clientPair(clientCA, 'bob', ['ops']),
  kubelet: clientPair(clientCA, 'system:node:n1', ['system:nodes']),
} as const
type User = keyof typeof users

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: InProcessGateway
  readonly sessions: Readonly<Record<User, ClientHttp2Session>>
  change(spec: Partial<UpstreamClusterSpec>): void
}

async function setUp(spec: Partial<UpstreamClusterSpec> = {}): Promise<Scene> {
  const stub = await startStub()
  const gateway = await startInProcess([clusterObject([stub], { clientCA, spec })])
  const session = (user: User): ClientHttp2Session =>
    h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: users[user] })
  const sessions = { alice: session('alice'), bob: session('bob'), kubelet: session('kubelet') }
  cleanups.push(stub.stop, gateway.stop, () => {
    for (const each of Object.values(sessions)) each.destroy()
  })
  return { stub, gateway, sessions, change: (next) => gateway.apply([clusterObject([stub], { clientCA, spec: next })]) }
}

function send(scene: Scene, user: User, method: string, path: string, fields: string[] = []): Promise<Response> {
  const body = method === 'GET' || method === 'HEAD' ? undefined : Buffer.from('{}')
  return h2Request(scene.sessions[user], [':method', method, ':path', path, ...fields], body)
}

async function statusOf(scene: Scene, user: User, method: string, path: string, fields?: string[]): Promise<number> {
  return (await send(scene, user, method, path, fields)).status
}

interface Status {
  readonly message: string
  readonly reason: string
  readonly details?: { readonly causes?: readonly { reason: string; message: string; field: string }[] }
}

function statusIn(response: Response): Status {
  return JSON.parse(response.body.toString()) as Status
}

type Row = readonly [User, string, string, DegradeMode]
/** User, request, then the strictest mode that lets it through. */
const ROWS = JSON.parse(
  readFileSync(new URL('../data/degrade-requests.json', import.meta.url), 'utf8'),
) as readonly Row[]
/** Those that the stub answers with 200: exec and the like need an upgrade, and a TokenReview a token. */
const TABLE = ROWS.filter(([, , path]) => !/\/(exec|attach|portforward|tokenreviews)$/.test(path))

/** Drains wait on a 429; what is refused as a disruption is refused for good. */
function refusalOf(mode: DegradeMode, path: string): number {
  if (mode !== 'NoDisruption') return 503
  return path.endsWith('/eviction') ? 429 : 403
}

describe('degrade modes', () => {
  for (const mode of DEGRADE_MODES) {
    const allows = (strictest: DegradeMode): boolean => DEGRADE_MODES.indexOf(mode) <= DEGRADE_MODES.indexOf(strictest)
    test(mode, async () => {
      // A rate that this is far below.
      const scene = await setUp({ degrade: { mode, limited: { startQPS: 1_000, endQPS: 1_000 } } })
      for (const [user, method, path, strictest] of TABLE) {
        const got = await statusOf(scene, user, method, path)
        assert.equal(got, allows(strictest) ? 200 : refusalOf(mode, path), `${user} ${method} ${path}`)
      }
      const refused = TABLE.filter(([, , , strictest]) => !allows(strictest)).map(([, , path]) => path)
      // The gateway asks for itself what the writes of nodes and workloads do.
      const own = scene.stub.seen.filter((request) => request.values('user-agent')[0] === 'portcullis')
      const arrived = scene.stub.seen.length - own.length + refused.length
      // The probe path is answered by the stub without a note.
      assert.equal(arrived, TABLE.length - 1, 'what is refused does not reach upstream')
    })
  }

  test('exec is not a read, though a WebSocket opens it with a GET', async () => {
    const scene = await setUp({ degrade: { mode: 'ReadOnly' } })
    assert.equal(await statusOf(scene, 'alice', 'GET', '/api/v1/namespaces/default/pods/web/exec?command=sh'), 503)
  })

  test('nothing is upgraded in ReadOnly but a watch: a console is opened with a GET, too', async () => {
    const upstream = await startUpgradeUpstream()
    const clientConfig = { caData: Buffer.from(upstream.caPem).toString('base64') }
    const spec = { servers: [{ endpoint: upstream.url }], clientConfig, degrade: { mode: 'ReadOnly' } } as const
    const gateway = await startInProcess([clusterObject([], { clientCA, spec })])
    cleanups.push(upstream.stop, gateway.stop)
    const vm = '/apis/subresources.kubevirt.io/v1/namespaces/x/virtualmachineinstances/vm'
    const pods = '/api/v1/namespaces/x/pods'
    for (const [path, status] of [
      [`${vm}/console`, 503],
      [`${vm}/vnc`, 503],
      [`${pods}/p/log?follow=true`, 503],
      ['/x', 503],
      [`${pods}?watch=1`, 101],
    ] as const) {
      const head = `GET ${path} HTTP/1.1\r\nHost: prod.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
      const client = await http1Connect({ port: gateway.port, serverName: 'prod.example.com', cert: users.alice })
      cleanups.push(() => client.destroy())
      client.send(head)
      assert.equal((await client.response()).status, status, path)
    }
  })

  test('a refusal says mode, reason and expiry, and nothing about coming back', async () => {
    const expiresAt = '2099-12-31T23:59:59Z'
    const scene = await setUp({ degrade: { mode: 'Freeze', reason: 'etcd is being restored', expiresAt } })
    const refused = await send(scene, 'alice', 'POST', '/api/v1/namespaces/default/pods')
    assert.equal(refused.status, 503)
    assert.deepEqual(valuesOf(refused.head, 'retry-after'), [], 'client-go would send the write again')
    const { message, reason, details } = statusIn(refused)
    assert.equal(reason, 'ServiceUnavailable')
    for (const part of ['Freeze', 'etcd is being restored', expiresAt]) assert.ok(message.includes(part), message)
    assert.deepEqual(
      details?.causes?.map((cause) => [cause.field, cause.message]),
      [
        ['spec.degrade.mode', 'Freeze'],
        ['spec.degrade.reason', 'etcd is being restored'],
        ['spec.degrade.expiresAt', expiresAt],
      ],
    )
    const head = await send(scene, 'alice', 'HEAD', '/api/v1/pods')
    assert.deepEqual([head.status, head.body.length], [503, 0])
  })

  test('after the expiry the mode is Off, without any change of the object', async () => {
    const expiresAt = new Date(Date.now() + 2_000).toISOString()
    const scene = await setUp({ degrade: { mode: 'Freeze', expiresAt } })
    const before = await statusOf(scene, 'alice', 'GET', '/api/v1/pods')
    assert.ok(before === 503 || Date.now() >= Date.parse(expiresAt), String(before))
    await waitFor('the expiry', async () => (await statusOf(scene, 'alice', 'GET', '/api/v1/pods')) === 200)
    assert.ok(Date.now() >= Date.parse(expiresAt), 'not before')
  })

  test('exempt rules are let through, and nothing else', async () => {
    const rule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], users: ['bob'] }
    const scene = await setUp({ degrade: { mode: 'Freeze', exempt: [rule] } })
    assert.equal(await statusOf(scene, 'bob', 'DELETE', '/api/v1/namespaces/default/pods/web'), 200)
    assert.equal(await statusOf(scene, 'alice', 'DELETE', '/api/v1/namespaces/default/pods/web'), 503)
    assert.equal(await statusOf(scene, 'bob', 'GET', '/metrics'), 503, 'the rule names resources only')
  })

  test('authentication comes first', async () => {
    const scene = await setUp({ degrade: { mode: 'Freeze' } })
    const session = h2Connect({ port: scene.gateway.port, serverName: 'prod.example.com' })
    assert.equal((await h2Request(session, ['authorization', 'Bearer wrong'])).status, 401)
    session.destroy()
    const stranger = clientPair(createCA({ commonName: 'someone else' }), 'bob')
    const other = h2Connect({ port: scene.gateway.port, serverName: 'prod.example.com', certificate: stranger })
    assert.equal((await h2Request(other, [])).status, 401)
    other.destroy()
  })

  test('running requests survive a Freeze; lifted, all flows', async () => {
    const scene = await setUp()
    scene.stub.answer = (request) => {
      if (!request.path.includes('watch')) return reply(request, 200, '{}')
      request.stream.respond([':status', '200', 'content-type', 'application/json'])
      request.stream.write('{"n":1}\n')
    }
    const watch = h2Open(scene.sessions.alice, [':path', '/api/v1/pods?watch=1'])
    const ended = h2Response(watch)
    await once(watch, 'data')
    scene.change({ degrade: { mode: 'Freeze' } })
    assert.equal(await statusOf(scene, 'alice', 'GET', '/api/v1/pods'), 503)
    const [upstream] = scene.stub.seen
    upstream?.stream.write('{"n":2}\n')
    await once(watch, 'data')
    scene.change({})
    assert.equal(await statusOf(scene, 'alice', 'POST', '/api/v1/namespaces/default/pods'), 200)
    upstream?.stream.end('{"n":3}\n')
    const { body, resetCode } = await ended
    assert.deepEqual([body.toString(), resetCode], ['{"n":1}\n{"n":2}\n{"n":3}\n', 0])
  })

  test('kubectl prints the reason once: only non-resource requests get a warning', async () => {
    const scene = await setUp({ degrade: { mode: 'Freeze', reason: 'INC' } })
    const warned = async (path: string): Promise<number> =>
      valuesOf((await send(scene, 'alice', 'GET', path)).head, 'warning').length
    assert.equal(await warned('/api/v1/pods'), 0)
    for (const path of ['/api', '/apis', '/api/v1', '/apis/apps/v1', '/openapi/v3'])
      assert.equal(await warned(path), 1, path)
  })

  test('shadow mode lets pass with a warning, whatever the reason is made of', async () => {
    const reason = 'Prüfung "live" \\ läuft 🚧\r\nx-injected: yes'
    const scene = await setUp({ degrade: { mode: 'Freeze', reason, shadow: true } })
    const passed = await send(scene, 'alice', 'GET', '/api/v1/pods')
    assert.equal(passed.status, 200)
    assert.deepEqual(valuesOf(passed.head, 'x-injected'), [])
    const [warning = '', ...more] = valuesOf(passed.head, 'warning')
    assert.deepEqual(more, [])
    const text = Buffer.from(warning, 'latin1').toString('utf8')
    assert.match(
      text,
      /^299 - "degrade in shadow mode would refuse: .*Prüfung \\"live\\" \\\\ läuft 🚧 {2}x-injected: yes"$/,
    )
  })
})

describe('rules that refuse', () => {
  test('no policy matches: 403 that names user and request', async () => {
    const policy = { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] }
    const scene = await setUp({ dispatchPolicies: [policy] })
    const refused = await send(scene, 'alice', 'DELETE', '/api/v1/namespaces/default/pods/web')
    assert.equal(refused.status, 403)
    const { message, reason } = statusIn(refused)
    assert.equal(reason, 'Forbidden')
    assert.match(message, /"alice" cannot delete .*no dispatch policy/)
    assert.deepEqual(valuesOf(refused.head, 'retry-after'), [])
    assert.equal(scene.stub.seen.length, 0)
  })

  test('action Deny: what its rules match, before the policies behind it; in shadow it only warns', async () => {
    const rules = [{ verbs: ['delete'], apiGroups: [''], resources: ['pods'], userGroups: ['dev'] }]
    const scene = await setUp({ dispatchPolicies: [{ rules, action: 'Deny' }, ALLOW_ALL] })
    const refused = await send(scene, 'alice', 'DELETE', '/api/v1/namespaces/default/pods/web')
    assert.equal(refused.status, 403)
    assert.match(statusIn(refused).message, /dispatchPolicies\[0\]/)
    assert.equal(await statusOf(scene, 'bob', 'DELETE', '/api/v1/namespaces/default/pods/web'), 200)
    assert.equal(await statusOf(scene, 'alice', 'GET', '/api/v1/pods'), 200)
    scene.change({ dispatchPolicies: [{ rules, action: 'Deny', shadow: true }, ALLOW_ALL] })
    const shadowed = await send(scene, 'alice', 'DELETE', '/api/v1/namespaces/default/pods/web')
    assert.equal(shadowed.status, 200)
    assert.match(valuesOf(shadowed.head, 'warning')[0] ?? '', /^299 - "dispatch-action in shadow mode/)
  })

  const LISTS: readonly [string, UpstreamClusterSpec['accessControl'], Record<string, boolean>][] = [
    ['deny a user', { deny: [{ users: ['alice'] }] }, { alice: false, bob: true }],
    ['deny a group', { deny: [{ userGroups: ['ops'] }] }, { alice: true, bob: false }],
    ['allow a group', { allow: [{ userGroups: ['dev', 'system:nodes'] }] }, { alice: true, bob: false, kubelet: true }],
    ['deny before allow', { allow: [{ users: ['*'] }], deny: [{ users: ['bob'] }] }, { alice: true, bob: false }],
    ['deny an address block', { deny: [{ sourceIPs: ['127.0.0.0/8'] }] }, { alice: false, bob: false }],
    ['another address block', { deny: [{ sourceIPs: ['10.0.0.0/8', '::/0'] }] }, { alice: true }],
    ['allow an address', { allow: [{ sourceIPs: ['127.0.0.1'] }] }, { alice: true, kubelet: true }],
    ['all fields must match', { deny: [{ users: ['alice'], sourceIPs: ['10.0.0.0/8'] }] }, { alice: true }],
    ['shadow', { deny: [{ users: ['alice'] }], shadow: true }, { alice: true }],
  ]
  for (const [what, accessControl, expected] of LISTS) {
    test(`accessControl: ${what}`, async () => {
      const scene = await setUp({ ...(accessControl === undefined ? {} : { accessControl }) })
      for (const [user, allowed] of Object.entries(expected)) {
        const response = await send(scene, user as User, 'GET', '/api/v1/pods')
        assert.equal(response.status, allowed ? 200 : 403, user)
        if (!allowed) assert.match(statusIn(response).message, new RegExp(`User "${nameOf(user)}" may not use cluster`))
      }
    })
  }

  test('accessControl: by user agent, and the refusal names the rule', async () => {
    const deny = [{ name: 'old clients', userAgents: ['kubectl/v1.1*'] }]
    const scene = await setUp({ accessControl: { deny } })
    const agent = (value: string): string[] => ['user-agent', value]
    const refused = await send(scene, 'alice', 'GET', '/api/v1/pods', agent('kubectl/v1.15.3 (linux/amd64)'))
    assert.equal(refused.status, 403)
    assert.match(statusIn(refused).message, /"old clients"/)
    assert.equal(await statusOf(scene, 'alice', 'GET', '/api/v1/pods', agent('kubectl/v1.30.0')), 200)
  })
})

function nameOf(user: string): string {
  return user === 'kubelet' ? 'system:node:n1' : user
}
