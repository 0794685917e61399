// Pod protection on the request path: what is judged, what goes upstream then, and what becomes of what was reserved.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, mock, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { admitted, type GuardedGateway, refused, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type PodUpstream, startPodUpstream, statusOf } from '../harness/upstreams/pod-upstream.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const PODS = '/api/v1/namespaces/default/pods'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
/** No pod has it. */
const NO_POD_UID = '00000000-0000-0000-0000-000000000000'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends GuardedGateway {
  readonly upstream: PodUpstream
  readonly session: ClientHttp2Session
  send(method: string, path: string, body?: string | Buffer, fields?: readonly string[]): Promise<Response>
}

type Protection = NonNullable<UpstreamClusterSpec['podProtection']>

async function setUp(podProtection: Protection = {}, withGate = true): Promise<Scene> {
  const upstream = await startPodUpstream()
  const object = clusterObject([upstream.stub], { clientCA, spec: { podProtection, logging: { mode: 'on' } } })
  const gateway = await startGuardedGateway(object, withGate)
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(upstream.stub.stop, gateway.stop, () => session.destroy())
  const send: Scene['send'] = (method, path, body, fields = []) => {
    const bytes = body === undefined ? undefined : Buffer.from(body)
    const length = bytes === undefined ? [] : ['content-length', String(bytes.length)]
    return h2Request(session, [':method', method, ':path', path, ...length, ...fields], bytes)
  }
  return { ...gateway, upstream, session, send }
}

function json(body: Buffer | undefined): Record<string, unknown> {
  return JSON.parse(String(body)) as Record<string, unknown>
}

describe('what is asked about', () => {
  test('a namespace without protector, an excluded one, and anything but deletions are forwarded unchanged', async () => {
    const scene = await setUp({ excludedNamespaces: ['kube-system'] })
    scene.cover(new Set(['elsewhere', 'kube-system']))
    scene.upstream.add('a')
    const body = '{"gracePeriodSeconds":  0}'
    await scene.send('DELETE', `${PODS}/a`, body, ['content-type', 'application/json'])
    assert.equal(String(scene.upstream.writes[0]?.body), body)
    await scene.send('DELETE', '/api/v1/namespaces/kube-system/pods/a')
    scene.cover(undefined)
    await scene.send('DELETE', `${PODS}/a/proxy/x`)
    await scene.send('DELETE', '/api/v1/namespaces/default/services/a')
    await scene.send('POST', `${PODS}/a/binding`, '{}')
    await scene.send('DELETE', '/api/v1/pods')
    assert.equal(scene.upstream.writes.length, 6)
    assert.deepEqual([scene.upstream.reads.length, scene.gate.asked.length], [0, 0])
  })

  test('an admitted deletion is bound to the evaluated pod, with all that the query asked for', async () => {
    const scene = await setUp({ cell: 'one' })
    scene.upstream.add('a')
    const answer = await scene.send('DELETE', `${PODS}/a?gracePeriodSeconds=7&propagationPolicy=Background&dryRun=All`)
    assert.equal(answer.status, 200)
    const [write] = scene.upstream.writes
    assert.deepEqual(json(write?.body), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: 7,
      propagationPolicy: 'Background',
      dryRun: ['All'],
      preconditions: { uid: 'uid-a' },
    })
    assert.deepEqual(
      [write?.user, write?.contentType, write?.contentLength],
      ['alice', 'application/json', String(write?.body.length)],
    )
    const [asked] = scene.gate.asked[0] ?? []
    assert.deepEqual(
      [asked?.cell, asked?.cause, asked?.via, asked?.user, asked?.dryRun, asked?.pod.uid, asked?.timeoutMs],
      ['one', 'DeletePod', 'filter', 'alice', true, 'uid-a', 10_000],
    )
  })

  test('pods that do not exist, terminate or are not selected are not evaluated', async () => {
    const scene = await setUp({ objectSelector: { matchLabels: { app: 'a' } } })
    assert.equal((await scene.send('DELETE', `${PODS}/none`)).status, 404)
    scene.upstream.add('going', { deletionTimestamp: '2026-01-01T00:00:00Z' })
    scene.upstream.add('other', { labels: { app: 'b' } })
    await scene.send('DELETE', `${PODS}/going`, '{"gracePeriodSeconds":0}')
    await scene.send('DELETE', `${PODS}/other`)
    const conditions = scene.upstream.writes.map(({ body }) => json(body)['preconditions'])
    assert.deepEqual(conditions, [{ uid: NO_POD_UID }, { uid: 'uid-going' }, { uid: 'uid-other' }])
    assert.equal(json(scene.upstream.writes[1]?.body)['gracePeriodSeconds'], 0)
    assert.equal(scene.gate.asked.length, 0)
  })

  test('a pod that is created between lookup and deletion is evaluated', async () => {
    const scene = await setUp()
    scene.upstream.answerWrite = ({ request, body }) => {
      if (String(body).includes('uid-late')) return false
      scene.upstream.add('late')
      reply(request, 409, JSON.stringify(statusOf(409, 'Conflict')))
      return true
    }
    assert.equal((await scene.send('DELETE', `${PODS}/late`)).status, 200)
    assert.deepEqual([scene.upstream.writes.length, scene.gate.asked.length], [2, 1])
  })

  test('a body that only upstream can decode does not make it the deletion of another pod', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    const preconditions = (uid: string): Buffer => Buffer.concat([Buffer.from([10, uid.length]), Buffer.from(uid)])
    const another = preconditions('another')
    const real = preconditions('uid-a')
    // Field 2^32 + 2: Go reads field 2 (int32(wire >> 3) in its generated code).
    const hidden = Buffer.concat([Buffer.from([0x92, 0x80, 0x80, 0x80, 0x80, 0x01, real.length]), real])
    const options = Buffer.concat([Buffer.from([18, another.length]), another, hidden])
    const body = Buffer.concat([Buffer.from('k8s\0'), Buffer.from([18, options.length]), options])
    const answer = await scene.send('DELETE', `${PODS}/a`, body, ['content-type', PROTOBUF])
    assert.deepEqual([answer.status, scene.upstream.writes.length], [400, 0])
  })

  test('pods for which the ledger has no verdict stay, alone and in a collection', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.upstream.add('b')
    scene.gate.review = (requests) => Promise.resolve(requests.slice(1).map(admitted))
    const one = await scene.send('DELETE', `${PODS}/a`)
    assert.deepEqual([one.status, scene.upstream.writes.length], [503, 0])
    assert.match(String(one.body), /the ledger gave no verdict/)
    scene.gate.review = (requests) => Promise.resolve(requests.slice(0, 1).map(admitted))
    const both = await scene.send('DELETE', PODS)
    assert.match(String(both.body), /1 of 2 pods were deleted, 1 must stay.*the ledger gave no verdict/)
    assert.deepEqual(
      scene.upstream.writes.map(({ body }) => json(body)['preconditions']),
      [{ uid: 'uid-a' }],
    )
  })

  test('a path unknown to upstream is not a collection', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    await scene.send('DELETE', `${PODS}//a`)
    assert.deepEqual([scene.upstream.reads.length, scene.gate.asked.length], [0, 0])
    assert.deepEqual(
      scene.upstream.writes.map(({ path }) => path),
      [`${PODS}//a`],
    )
  })

  test("a deletion of an earlier pod of the name is upstream's to refuse", async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    const body = '{"preconditions":{"uid":"uid-a"},"preconditions":{"uid":"another"}}'
    await scene.send('DELETE', `${PODS}/a`, body)
    assert.equal(String(scene.upstream.writes[0]?.body), '{"preconditions":{"uid":"another"}}')
    assert.equal(scene.gate.asked.length, 0)
  })

  test('users who may not delete learn nothing, and use up no quota', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.upstream.allows = ({ name }) => name === 'b'
    const answer = await scene.send('DELETE', `${PODS}/a`)
    assert.equal(answer.status, 403)
    assert.equal(
      json(answer.body)['message'],
      'pods "a" is forbidden: User "alice" cannot delete resource "pods" in API group "" in the namespace "default": because',
    )
    assert.deepEqual([scene.gate.asked.length, scene.upstream.writes.length], [0, 0])
    // By its name alone: the second question.
    scene.upstream.add('b')
    assert.equal((await scene.send('DELETE', `${PODS}/b`)).status, 200)
  })
})

describe('refusals', () => {
  test('429 with the numbers; Retry-After only where it helps', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.gate.judge = (request) => refused(request)
    const answer = await scene.send('DELETE', `${PODS}/a`)
    const status = json(answer.body)
    assert.equal(answer.status, 429)
    assert.deepEqual([status['reason'], status['code']], ['TooManyRequests', 429])
    const message = 'PodProtector default/ppr reports too few available replicas to admit pod deletion'
    const causes = [{ reason: 'PodDeletionRefused', message, field: 'spec.minAvailable' }]
    assert.deepEqual([status['message'], status['details']], [message, { name: 'a', kind: 'pods', causes }])
    assert.deepEqual(valuesOf(answer.head, 'retry-after'), [])
    scene.gate.judge = (request) => refused(request, { status: 'RetryAdvised', retryAfterSeconds: 1 })
    const again = await scene.send('DELETE', `${PODS}/a`)
    assert.deepEqual(valuesOf(again.head, 'retry-after'), ['1'])
    assert.equal(scene.upstream.writes.length, 0)
    await waitFor('the logs', () => scene.access.length === 2 && scene.audit.length === 2)
    assert.deepEqual(
      [scene.access[0]?.['reason'], scene.access[0]?.['refusedBy'], scene.access[0]?.['protection']],
      ['protected', 'default/ppr', 'Rejected'],
    )
    assert.equal(scene.audit[0]?.annotations['podseidon.kubewharf.io/reject-by-podprotector'], 'ppr')
    assert.equal(scene.audit[0]?.annotations['podseidon.kubewharf.io/dry-run'], undefined)
  })

  test('an eviction has the cause that its clients look for', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.gate.judge = (request) => refused(request)
    const answer = await scene.send('POST', `${PODS}/a/eviction`, '{"metadata":{"name":"a"}}')
    const { causes } = json(answer.body)['details'] as { causes: { reason: string }[] }
    assert.deepEqual(
      [answer.status, causes.map(({ reason }) => reason)],
      [429, ['DisruptionBudget', 'PodDeletionRefused']],
    )
  })

  test('overridden: forwarded with a warning', async () => {
    const scene = await setUp({ shadow: true })
    scene.upstream.add('a')
    scene.upstream.add('b')
    scene.gate.judge = (request) => ({
      ...refused(request),
      overridden: 'shadow',
      reservation: admitted(request).reservation,
    })
    const answer = await scene.send('DELETE', `${PODS}/a`)
    assert.equal(answer.status, 200)
    assert.match(valuesOf(answer.head, 'warning').join(), /^299 - "protection in shadow mode would refuse.*too few/)
    assert.equal(scene.gate.asked[0]?.[0]?.shadow, true)
    scene.gate.judge = (request) => ({ ...refused(request), overridden: 'force-delete' })
    assert.match(valuesOf((await scene.send('DELETE', `${PODS}/b`)).head, 'warning').join(), /deleted by force/)
    await waitFor('the logs', () => scene.access.length === 2 && scene.audit.length === 2)
    assert.deepEqual(scene.access[0]?.['shadow'], ['protection/default/ppr'])
    assert.equal(scene.audit[0]?.annotations['podseidon.kubewharf.io/dry-run'], '1')
  })

  for (const [what, prepare, withGate] of [
    ['no ledger', () => undefined, false],
    [
      'an error of the ledger',
      (scene: Scene) => {
        scene.gate.judge = (request) => refused(request, { status: 'Error', protector: '', causes: [] })
      },
      true,
    ],
    ['a pod that cannot be read', (scene: Scene) => answerReads(scene, 403, '{}'), true],
    ['an answer that is no pod', (scene: Scene) => answerReads(scene, 200, '{"items":[7]}'), true],
    ['an answer that is cut off', (scene: Scene) => answerReads(scene, 200, '{"items":['), true],
  ] as const) {
    test(`${what}: the failure policy decides`, async () => {
      const scene = await setUp({}, withGate)
      scene.upstream.add('a')
      prepare(scene)
      assert.equal((await scene.send('DELETE', `${PODS}/a`)).status, 503)
      assert.equal((await scene.send('POST', `${PODS}/a/eviction`, '{}')).status, 429)
      assert.equal((await scene.send('DELETE', PODS)).status, 503)
      assert.equal(scene.upstream.writes.length, 0)
      const lenient = await setUp({ failurePolicy: 'Ignore' }, withGate)
      lenient.upstream.add('a')
      prepare(lenient)
      const answer = await lenient.send('DELETE', `${PODS}/a?dryRun=All`)
      assert.equal(answer.status, 200)
      assert.match(valuesOf(answer.head, 'warning').join(), /without protection/)
    })
  }
})

function answerReads(scene: Scene, status: number, body: string): void {
  scene.upstream.answerRead = (request) => {
    reply(request, status, body)
    return true
  }
}

describe('bodies', () => {
  test('evictions in protocol buffers: bound, read for dry run and criterion', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    const text = (field: number, value: Buffer | string): Buffer => {
      const bytes = Buffer.from(value)
      return Buffer.concat([Buffer.from([field * 8 + 2, bytes.length]), bytes])
    }
    const annotation = Buffer.concat([text(1, 'podseidon.kubewharf.io/health-criterion'), text(2, 'Ready')])
    const eviction = Buffer.concat([
      text(1, Buffer.concat([text(1, 'a'), text(12, annotation)])),
      text(2, Buffer.concat([Buffer.from([8, 5]), text(5, 'All')])),
    ])
    const meta = Buffer.concat([text(1, 'policy/v1'), text(2, 'Eviction')])
    const unknown = Buffer.concat([text(1, meta), Buffer.from([18, eviction.length]), eviction])
    const sent = Buffer.concat([Buffer.from('k8s\0'), unknown])
    await scene.send('POST', `${PODS}/a/eviction`, sent, ['content-type', PROTOBUF])
    const [asked] = scene.gate.asked[0] ?? []
    assert.deepEqual([asked?.cause, asked?.criterion, asked?.dryRun], ['EvictPod', 'Ready', true])
    const [write] = scene.upstream.writes
    assert.equal(write?.contentType, PROTOBUF)
    const bound = text(2, text(2, text(1, 'uid-a')))
    const raw = Buffer.concat([eviction, bound])
    assert.deepEqual(
      write?.body,
      Buffer.concat([Buffer.from('k8s\0'), text(1, meta), Buffer.from([18, raw.length]), raw]),
    )
  })

  for (const [what, body, fields, code, reason] of [
    ['broken JSON', '{', [], 400, 'BadRequest'],
    ['CBOR', 'xx', ['content-type', 'application/cbor'], 415, 'UnsupportedMediaType'],
    ['too much', 'x'.repeat(16 * 1024 + 1), [], 413, 'RequestEntityTooLarge'],
    ['too much YAML', `a:\n  ${'['.repeat(1024)}`, ['content-type', 'application/yaml'], 413, 'RequestEntityTooLarge'],
  ] as const) {
    test(`${what}: ${code}`, async () => {
      const scene = await setUp()
      scene.upstream.add('a')
      for (const [method, path] of [
        ['DELETE', `${PODS}/a`],
        ['DELETE', PODS],
        ['POST', `${PODS}/a/eviction`],
      ] as const) {
        const answer = await scene.send(method, path, body, fields)
        assert.deepEqual([answer.status, json(answer.body)['reason']], [code, reason])
      }
      assert.deepEqual([scene.gate.asked.length, scene.upstream.writes.length], [0, 0])
    })
  }

  test('a body that comes late, in pieces, is read whole', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    const head = [':method', 'DELETE', ':path', `${PODS}/a`, 'expect', '100-continue']
    const stream = h2Open(scene.session, head, { endStream: false })
    const answered = h2Response(stream)
    stream.write(`{"filler":"${'x'.repeat(12 * 1024)}`)
    stream.once('headers', () => stream.end('"}'))
    const answer = await answered
    assert.deepEqual([answer.status, answer.interim.length], [200, 1])
    assert.deepEqual(json(scene.upstream.writes[0]?.body)['preconditions'], { uid: 'uid-a' })
  })

  test('a client that disconnects in the middle of its body', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    const stream = h2Open(scene.session, [':method', 'DELETE', ':path', `${PODS}/a`], { endStream: false })
    stream.write('{')
    stream.close(8)
    await waitFor('the end', () => scene.access.length === 1)
    assert.equal(scene.access[0]?.['aborted'], 'client')
    assert.deepEqual([scene.upstream.reads.length, scene.upstream.writes.length], [0, 0])
  })
})

describe('what was reserved', () => {
  for (const [status, released] of [
    [200, false],
    [403, true],
    [422, true],
    [429, true],
    [404, false],
    [409, false],
    [408, false],
    [500, false],
    [503, false],
  ] as const) {
    test(`upstream answers ${status}: ${released ? 'given back' : 'kept'}`, async () => {
      const scene = await setUp()
      scene.upstream.add('a')
      scene.upstream.answerWrite = ({ request }) => {
        reply(request, status, JSON.stringify(statusOf(status, 'Whatever')))
        return true
      }
      const body = '{"preconditions":{"resourceVersion":"1"}}'
      assert.equal((await scene.send('DELETE', `${PODS}/a`, body)).status, status)
      const expected = released ? [['uid-a', 'start of a']] : []
      assert.deepEqual(
        scene.gate.released.map(({ uid, holds }) => [uid, holds[0]?.startTime]),
        expected,
      )
    })
  }

  test('a broken connection: kept, for it may have happened', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.upstream.answerWrite = () => {
      scene.upstream.stub.breakConnections()
      return true
    }
    assert.equal((await scene.send('DELETE', `${PODS}/a`)).status, 502)
    assert.deepEqual(scene.gate.released, [])
  })

  test('a client that disconnects before the verdict: nothing is sent, and the reservation is released', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    let decide: (() => void) | undefined
    scene.gate.judge = async (request) => {
      await new Promise<void>((resolve) => {
        decide = resolve
      })
      return admitted(request)
    }
    const stream = h2Open(scene.session, [':method', 'DELETE', ':path', `${PODS}/a`])
    await waitFor('the question', () => decide !== undefined)
    stream.close(8)
    await new Promise((resolve) => scene.session.ping(resolve))
    decide?.()
    await waitFor('the end', () => scene.access.length === 1)
    assert.deepEqual([scene.gate.released.length, scene.upstream.writes.length], [1, 0])
  })

  test('no endpoint: given back', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.gate.judge = async (request) => {
      await scene.upstream.stub.stop()
      return admitted(request)
    }
    assert.ok((await scene.send('DELETE', `${PODS}/a`)).status >= 502)
    assert.equal(scene.gate.released.length, 1)
  })

  test('a free pass holds for the pod as it was read; if changed, it is evaluated again', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.gate.judge = (request) => {
      const free = { ...admitted(request), freePass: true, status: 'AlreadyUnready', reservation: undefined } as const
      return request.pod.resourceVersion === '100' ? free : refused(request)
    }
    scene.upstream.answerWrite = ({ request }) => {
      scene.upstream.add('a', { resourceVersion: '101' })
      reply(request, 409, JSON.stringify(statusOf(409, 'Conflict')))
      return true
    }
    const answer = await scene.send('DELETE', `${PODS}/a`, '{"preconditions":{"uid":"uid-a"}}')
    assert.equal(answer.status, 429)
    const expected = { preconditions: { uid: 'uid-a', resourceVersion: '100' } }
    assert.deepEqual(
      scene.upstream.writes.map(({ body }) => json(body)),
      [expected],
    )
    assert.equal(scene.gate.asked.length, 2)
  })

  test('a pod that was replaced is evaluated again, under its new uid, a few times', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    let round = 0
    scene.upstream.answerWrite = ({ request }) => {
      scene.upstream.add('a', { uid: `uid-${++round}` })
      reply(request, 409, JSON.stringify(statusOf(409, 'Conflict')))
      return true
    }
    assert.equal((await scene.send('DELETE', `${PODS}/a?gracePeriodSeconds=3`)).status, 409)
    const uids = scene.upstream.writes.map(({ body }) => json(body)['preconditions'])
    assert.deepEqual(uids, [{ uid: 'uid-a' }, { uid: 'uid-1' }, { uid: 'uid-2' }])
    assert.deepEqual(
      scene.upstream.writes.map(({ request }) => request.values('audit-id').length),
      [1, 1, 1],
    )
    assert.deepEqual(scene.gate.released, [])
  })
})

describe('collections', () => {
  const SELECTED = `${PODS}?labelSelector=app%3Da&fieldSelector=spec.nodeName%3Dn1`

  test('one by one as the caller, by name and uid, in the order of the list', async () => {
    const scene = await setUp()
    for (let i = 0; i < 300; i++) scene.upstream.add(`p${i}`)
    scene.upstream.add('going', { deletionTimestamp: '2026-01-01T00:00:00Z' })
    const answer = await scene.send('DELETE', `${SELECTED}&gracePeriodSeconds=9`)
    assert.equal(answer.status, 200)
    assert.equal((json(answer.body)['items'] as unknown[]).length, 301)
    // Not all at once: what is judged long before it is sent may count no more.
    assert.deepEqual(
      scene.gate.asked.map(({ length }) => length),
      [100, 100, 100],
    )
    assert.deepEqual(
      scene.upstream.reads.map(({ path }) => new URL(path, 'https://x').searchParams.get('limit')),
      ['200', '200'],
    )
    const first = scene.upstream.writes[0]
    assert.equal(
      new URL(first?.path ?? '', 'https://x').searchParams.get('fieldSelector'),
      'spec.nodeName=n1,metadata.name=p0',
    )
    assert.equal(new URL(first?.path ?? '', 'https://x').searchParams.get('labelSelector'), 'app=a')
    assert.equal(first?.user, 'alice')
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 9 }
    assert.deepEqual(json(first?.body), { ...options, preconditions: { uid: 'uid-p0' } })
    assert.equal(scene.upstream.writes.length, 301)
    assert.deepEqual(scene.gate.released, [])
  })

  test('what must stay is named; the rest is deleted', async () => {
    const scene = await setUp()
    for (const name of ['a', 'b', 'c']) scene.upstream.add(name)
    scene.gate.judge = (request) => (request.pod.name === 'b' ? refused(request) : admitted(request))
    const answer = await scene.send('DELETE', PODS)
    const status = json(answer.body)
    assert.equal(answer.status, 429)
    assert.match(
      String(status['message']),
      /^2 of 3 pods were deleted, 1 must stay: pod "b": PodProtector default\/ppr/,
    )
    const { kind, causes } = status['details'] as { kind: string; causes: { message: string }[] }
    assert.deepEqual([kind, causes.length, causes[0]?.message.slice(0, 7)], ['pods', 1, 'pod "b"'])
    assert.deepEqual([...scene.upstream.pods.keys()], ['b'])
  })

  test('an empty collection: pods created in the meantime are not deleted', async () => {
    const scene = await setUp()
    scene.upstream.answerWrite = ({ request }) => {
      reply(request, 200, '{"items":[]}')
      return true
    }
    assert.equal((await scene.send('DELETE', `${PODS}?gracePeriodSeconds=1`)).status, 200)
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 1 }
    assert.deepEqual(json(scene.upstream.writes[0]?.body), { ...options, preconditions: { uid: NO_POD_UID } })
  })

  test('a pod that was evaluated long ago is evaluated again before its deletion is sent', async () => {
    const scene = await setUp()
    for (let i = 0; i < 20; i++) scene.upstream.add(`p${i}`)
    const now = systemClock.monotonic.bind(systemClock)
    let laterMs = 0
    const clock = mock.method(systemClock, 'monotonic', () => now() + laterMs)
    cleanups.push(() => clock.mock.restore())
    scene.upstream.answerWrite = () => {
      if (scene.upstream.writes.length === 8) laterMs = 20_000
      return false
    }
    scene.gate.judge = (request) => (laterMs > 0 && request.pod.name === 'p19' ? refused(request) : admitted(request))
    const answer = await scene.send('DELETE', PODS)
    assert.match(String(json(answer.body)['message']), /^19 of 20 pods were deleted, 1 must stay: pod "p19"/)
    assert.deepEqual([...scene.upstream.pods.keys()], ['p19'])
    // What the first judgement had reserved is free, where nothing was sent by it.
    assert.ok(scene.gate.asked.length > 8, `${scene.gate.asked.length}`)
    assert.ok(scene.gate.released.some(({ uid }) => uid === 'uid-p19'))
    assert.equal(scene.gate.released.length, scene.gate.asked.length - 1)
  })

  test('upstream refuses one: its answer, and nothing more is sent', async () => {
    const scene = await setUp()
    for (let i = 0; i < 40; i++) scene.upstream.add(`p${i}`)
    scene.upstream.answerWrite = ({ request }) => {
      reply(request, 403, JSON.stringify(statusOf(403, 'Forbidden')))
      return true
    }
    const answer = await scene.send('DELETE', PODS)
    assert.deepEqual([answer.status, json(answer.body)['message']], [403, 'upstream says Forbidden'])
    assert.ok(scene.upstream.writes.length <= 8)
    // All 40, each once.
    assert.equal(new Set(scene.gate.released.map(({ uid }) => uid)).size, 40)
    assert.equal(scene.gate.released.length, 40)
  })

  test('a client that disconnects: unsent deletions are dropped and their reservations released', async () => {
    const scene = await setUp()
    for (let i = 0; i < 40; i++) scene.upstream.add(`p${i}`)
    const held: (() => void)[] = []
    scene.upstream.answerWrite = ({ request }) => {
      held.push(() => reply(request, 200, '{"items":[]}'))
      return true
    }
    const stream = h2Open(scene.session, [':method', 'DELETE', ':path', PODS])
    await waitFor('the first', () => held.length === 8)
    stream.close(8)
    await new Promise((resolve) => scene.session.ping(resolve))
    for (const go of held.splice(0)) go()
    await waitFor('the end', () => scene.access.length === 1)
    assert.deepEqual([scene.upstream.writes.length, scene.gate.released.length], [8, 32])
  })

  test('a pod of it that has changed since its free pass is evaluated again', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.gate.judge = (request) => ({
      ...admitted(request),
      freePass: request.pod.resourceVersion === '100',
      reservation: undefined,
    })
    let conflicts = 0
    scene.upstream.answerWrite = ({ request }) => {
      if (conflicts++ > 0) return false
      scene.upstream.add('a', { resourceVersion: '101' })
      reply(request, 409, JSON.stringify(statusOf(409, 'Conflict')))
      return true
    }
    assert.equal((await scene.send('DELETE', PODS)).status, 200)
    const conditions = scene.upstream.writes.map(({ body }) => json(body)['preconditions'])
    assert.deepEqual(conditions, [{ uid: 'uid-a', resourceVersion: '100' }, { uid: 'uid-a' }])
  })

  test('limit holds, dry run stays one, and a selector that upstream does not know is its to refuse', async () => {
    const scene = await setUp()
    for (const name of ['a', 'b', 'c']) scene.upstream.add(name)
    const answer = await scene.send('DELETE', `${PODS}?limit=2&dryRun=All`)
    const { items, metadata } = json(answer.body) as { items: unknown[]; metadata: object }
    assert.deepEqual([items.length, metadata], [2, { resourceVersion: '500', continue: '2' }])
    assert.deepEqual(
      scene.upstream.writes.map(({ body }) => json(body)['dryRun']),
      [['All'], ['All']],
    )
    assert.equal(scene.gate.asked[0]?.[0]?.dryRun, true)
    scene.upstream.answerRead = ({ stream }) => {
      stream.respond([':status', '400', 'content-type', 'application/json'])
      stream.end(JSON.stringify(statusOf(400, 'BadRequest')))
      return true
    }
    const refusedBy = await scene.send('DELETE', `${PODS}?fieldSelector=nonsense%3D1`)
    assert.deepEqual([refusedBy.status, json(refusedBy.body)['message']], [400, 'upstream says BadRequest'])
  })

  test('users who may not delete collections', async () => {
    const scene = await setUp()
    scene.upstream.add('a')
    scene.upstream.allows = ({ verb }) => verb !== 'deletecollection'
    const answer = await scene.send('DELETE', PODS)
    assert.match(
      String(json(answer.body)['message']),
      /^pods is forbidden: User "alice" cannot deletecollection resource/,
    )
    assert.deepEqual([answer.status, scene.upstream.reads.length], [403, 0])
  })
})
