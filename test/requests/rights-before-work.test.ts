// Rights before work: of a request to delete pods nothing beyond the head is read, parsed or asked upstream for a user who may
// not, or may not as far as is known; and what is read then is small.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { MAX_TARGET_LENGTH } from '../../src/gateway/core/request/request-info.ts'
import { MAX_REMOVAL_BYTES } from '../../src/gateway/request/calls/request-bodies.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type PodUpstream, startPodUpstream } from '../harness/upstreams/pod-upstream.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const PODS = '/api/v1/namespaces/default/pods'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends GuardedGateway {
  readonly upstream: PodUpstream
  readonly session: ClientHttp2Session
  send(method: string, path: string, body?: string, fields?: readonly string[]): Promise<Response>
}

async function setUp(podProtection: NonNullable<UpstreamClusterSpec['podProtection']> = {}): Promise<Scene> {
  const upstream = await startPodUpstream()
  upstream.add('a')
  const object = clusterObject([upstream.stub], { clientCA, spec: { podProtection, logging: { mode: 'on' } } })
  const gateway = await startGuardedGateway(object)
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(upstream.stub.stop, gateway.stop, () => session.destroy())
  const send: Scene['send'] = (method, path, body, fields = []) => {
    const bytes = body === undefined ? undefined : Buffer.from(body)
    const length = bytes === undefined ? [] : ['content-length', String(bytes.length)]
    return h2Request(session, [':method', method, ':path', path, ...length, ...fields], bytes)
  }
  return { ...gateway, upstream, session, send }
}

function message({ body }: Response): string {
  return String(Reflect.get(JSON.parse(String(body)) as object, 'message'))
}

describe('who may not delete', () => {
  test('gets the same answer whether the pod exists or not, and upstream is asked about no pod', async () => {
    const scene = await setUp()
    scene.upstream.allows = () => false
    const exists = await scene.send('DELETE', `${PODS}/a`)
    const absent = await scene.send('DELETE', `${PODS}/b`)
    assert.deepEqual([exists.status, absent.status], [403, 403])
    assert.equal(message(exists).replace('"a"', '"b"'), message(absent))
    const evictions = [
      await scene.send('POST', `${PODS}/a/eviction`, '{}'),
      await scene.send('POST', `${PODS}/b/eviction`, '{}'),
    ]
    assert.deepEqual(
      evictions.map(({ status }) => status),
      [403, 403],
    )
    assert.equal((await scene.send('DELETE', PODS)).status, 403)
    assert.deepEqual([scene.upstream.reads.length, scene.upstream.writes.length, scene.gate.asked.length], [0, 0, 0])
  })

  test('has no body read: neither parsed, nor refused for its size or format, nor asked to be sent', async () => {
    const scene = await setUp()
    scene.upstream.allows = () => false
    for (const [body, fields] of [
      ['}'.repeat(MAX_REMOVAL_BYTES + 1), ['content-type', 'application/yaml']],
      ['{', []],
      ['xx', ['content-type', 'application/cbor']],
    ] as const) {
      assert.equal((await scene.send('DELETE', `${PODS}/a`, body, fields)).status, 403)
      assert.equal((await scene.send('POST', `${PODS}/a/eviction`, body, fields)).status, 403)
    }
    // The body never comes, and the answer does not wait for it.
    const head = [':method', 'DELETE', ':path', `${PODS}/a`, 'expect', '100-continue']
    const stream = h2Open(scene.session, head, { endStream: false })
    const answer = await h2Response(stream)
    assert.deepEqual([answer.status, answer.interim.length], [403, 0])
  })
})

describe('whose rights are not known', () => {
  const away = (scene: Scene): void => {
    scene.upstream.stub.answerAccess = ({ request }) => reply(request, 403, '{}')
  }

  test('is refused, and the reason is named; an eviction so that drain waits', async () => {
    const scene = await setUp()
    away(scene)
    const answer = await scene.send('DELETE', `${PODS}/a`, '{')
    assert.equal(answer.status, 503)
    assert.match(message(answer), /the caller's right to delete it could not be verified: .*403/)
    assert.equal((await scene.send('POST', `${PODS}/a/eviction`, '{')).status, 429)
    assert.deepEqual([scene.upstream.reads.length, scene.upstream.writes.length, scene.gate.asked.length], [0, 0, 0])
  })

  for (const policy of [{ failurePolicy: 'Ignore' }, { shadow: true }] as const) {
    test(`goes on as it came with ${JSON.stringify(policy)}: upstream authorizes`, async () => {
      const scene = await setUp(policy)
      away(scene)
      const body = ' {"gracePeriodSeconds":  0}'
      const answer = await scene.send('DELETE', `${PODS}/a`, body, ['content-type', 'application/json'])
      assert.equal(answer.status, 200)
      assert.match(valuesOf(answer.head, 'warning').join(), /could not be verified/)
      assert.equal(String(scene.upstream.writes[0]?.body), body)
      assert.deepEqual([scene.upstream.reads.length, scene.gate.asked.length], [0, 0])
    })
  }
})

describe('the body of a deletion', () => {
  const filled = (bytes: number): string => `{"filler":"${'x'.repeat(bytes - 13)}"}`

  test('is read up to the limit, and the answer to a longer one names it', async () => {
    const scene = await setUp()
    assert.equal((await scene.send('DELETE', `${PODS}/a`, filled(MAX_REMOVAL_BYTES))).status, 200)
    scene.upstream.add('a')
    for (const [method, path] of [
      ['DELETE', `${PODS}/a`],
      ['DELETE', PODS],
      ['POST', `${PODS}/a/eviction`],
    ] as const) {
      const answer = await scene.send(method, path, filled(MAX_REMOVAL_BYTES + 1))
      assert.equal(answer.status, 413)
      assert.match(message(answer), /limit is 16384 bytes for a deletion or eviction where this gateway protects pods/)
    }
    assert.deepEqual([scene.upstream.writes.length, scene.gate.asked.length], [1, 1])
  })

  test('that is announced as too long is not asked to be sent', async () => {
    const scene = await setUp()
    const length = String(MAX_REMOVAL_BYTES + 1)
    const head = [':method', 'DELETE', ':path', `${PODS}/a`, 'expect', '100-continue', 'content-length', length]
    const stream = h2Open(scene.session, head, { endStream: false })
    const answer = await h2Response(stream)
    assert.deepEqual([answer.status, answer.interim.length], [413, 0])
  })
})

test('a target above its limit is answered with 414, whichever client asks, and shown in part by the audit log', async () => {
  const scene = await setUp()
  const target = (length: number): string => `/clusters/none/?${'x'.repeat(length - 16)}`
  assert.equal((await scene.send('GET', target(MAX_TARGET_LENGTH))).status, 404)
  const stranger = h2Connect({ port: scene.port, serverName: 'prod.example.com' })
  cleanups.push(() => stranger.destroy())
  const answer = await h2Request(stranger, [':method', 'GET', ':path', `/version?${'x'.repeat(MAX_TARGET_LENGTH - 8)}`])
  assert.equal(answer.status, 414)
  assert.match(message(answer), /262145 characters, and the limit of this server is 262144/)
  const logged = (): readonly unknown[] =>
    scene.audit.filter((event) => String(Reflect.get(event, 'requestURI')).startsWith('/version?'))
  await waitFor('the audit log', () => logged().length === 1)
  assert.equal(String(Reflect.get(Object(logged()[0]), 'requestURI')).length, 1024)
})
