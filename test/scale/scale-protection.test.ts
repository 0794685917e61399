// The check of writes that lower replicas: what is asked upstream, what PodProtectors are asked, what the caller is told, and that the
// write goes upstream as it came.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { ProtectorAnswer } from '../../src/protection/api/protection.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { READY, statusOf } from '../harness/upstreams/pod-upstream.ts'
import {
  reply,
  replyReview,
  type SeenRequest,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects as a server has them
type Json = any

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const WEB = '/apis/apps/v1/namespaces/shop/deployments/web'
const MERGE = 'application/merge-patch+json'
const SYSTEM_CONTROLLER = 'system:serviceaccount:kube-system:deployment-controller'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Write {
  readonly path: string
  readonly bytes: Buffer
  readonly user: string
  readonly contentType: string
  readonly body: string
}

interface Scene extends GuardedGateway {
  readonly stub: StubUpstream
  readonly session: ClientHttp2Session
  readonly deployment: Json
  readonly pods: Json[]
  /** All but dry runs. */
  readonly writes: Write[]
  readonly dryRuns: Write[]
  /** Paths of reads by the gateway. */
  readonly reads: string[]
  /** spec.replicas in the answer to a dry run; a code = it is refused. */
  dryRun: { replicas?: number; code?: number }
  /** Whether a SubjectAccessReview is allowed. */
  allows: (attributes: Json) => boolean
  /** Instead of the usual answer to a read; false = as usual. */
  answerRead: (request: SeenRequest) => boolean
  send(method: string, path: string, body: string | Buffer, contentType?: string, fields?: string[]): Promise<Response>
  scale(replicas: number): Promise<Response>
}

type Options = Pick<UpstreamClusterSpec, 'scaleProtection' | 'podProtection' | 'degrade'>

async function setUp(spec: Options = { scaleProtection: {}, podProtection: {} }, pods = 4): Promise<Scene> {
  const stub = await startStub()
  const gateway = await startGuardedGateway(
    clusterObject([stub], { clientCA, spec: { ...spec, logging: { mode: 'on' } } }),
  )
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(stub.stop, gateway.stop, () => session.destroy())
  const selector = { matchLabels: { app: 'web' } }
  const labels = { app: 'web' }
  const metadata = { name: 'web', namespace: 'shop', uid: 'uid-web', labels }
  const deployment: Json = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { replicas: pods, selector } }
  const replicaSet = {
    metadata: { name: 'web-1', uid: 'uid-rs', labels, ownerReferences: [{ controller: true, uid: 'uid-web' }] },
    spec: { replicas: pods, selector },
    status: { replicas: pods, availableReplicas: pods },
  }
  const podOf = (at: number): Json => ({
    metadata: {
      name: `web-${String.fromCharCode(97 + at)}`,
      namespace: 'shop',
      uid: `uid-${at}`,
      labels,
      ownerReferences: [{ controller: true, uid: 'uid-rs' }],
      annotations: { 'controller.kubernetes.io/pod-deletion-cost': String(at) },
    },
    spec: { nodeName: 'n1' },
    status: READY,
  })
  const scene: Scene = {
    ...gateway,
    stub,
    session,
    deployment,
    pods: Array.from({ length: pods }, (_, at) => podOf(at)),
    writes: [],
    dryRuns: [],
    reads: [],
    dryRun: {},
    allows: () => true,
    answerRead: () => false,
    send: (method, path, body, contentType = '', fields = []) => {
      const bytes = Buffer.from(body)
      const type = contentType === '' ? [] : ['content-type', contentType]
      const head = [':method', method, ':path', path, 'content-length', String(bytes.length), ...type, ...fields]
      return h2Request(session, head, bytes)
    },
    scale: (replicas) => scene.send('PATCH', `${WEB}/scale`, JSON.stringify({ spec: { replicas } }), MERGE),
  }
  stub.answerAccess = (seen) => {
    replyReview(seen, { allowed: scene.allows(seen.spec['resourceAttributes']), reason: 'because' })
  }
  stub.answer = (request) => {
    if (request.method !== 'GET') return write(scene, request)
    scene.reads.push(request.path)
    if (scene.answerRead(request)) return
    const url = new URL(request.path, 'https://stub')
    const list = (items: Json[]): string => JSON.stringify({ kind: 'List', metadata: {}, items })
    if (url.pathname.endsWith('/pods')) {
      const limit = Number(url.searchParams.get('limit'))
      const from = Number(url.searchParams.get('continue') ?? '0')
      const more = from + limit < scene.pods.length ? { continue: String(from + limit) } : {}
      reply(request, 200, JSON.stringify({ metadata: more, items: scene.pods.slice(from, from + limit) }))
    } else if (url.pathname.endsWith('/replicasets')) reply(request, 200, list([replicaSet]))
    else if (url.pathname === WEB) reply(request, 200, JSON.stringify(deployment))
    else reply(request, 404, JSON.stringify(statusOf(404, 'NotFound')))
  }
  return scene
}

function write(scene: Scene, request: SeenRequest): void {
  const chunks: Buffer[] = []
  request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.stream.on('end', () => {
    const value = (name: string): string => request.values(name).join('; ')
    const bytes = Buffer.concat(chunks)
    const body = bytes.toString()
    const seen = {
      path: request.path,
      bytes,
      user: value('impersonate-user'),
      contentType: value('content-type'),
      body,
    }
    if (!request.path.includes('dryRun=All')) {
      scene.writes.push(seen)
      reply(request, 200, '{}')
      return
    }
    scene.dryRuns.push(seen)
    const { code = 200, replicas } = scene.dryRun
    reply(request, code, JSON.stringify(code === 200 ? { spec: { replicas } } : statusOf(code, 'BadRequest')))
  })
}

function against(answer: Partial<ProtectorAnswer> = {}): ProtectorAnswer {
  return {
    protector: 'shop/web',
    required: 3,
    requiredAfter: 3,
    counted: 4,
    beingDeleted: 0,
    deletions: 2,
    refused: { least: 1, most: 1 },
    delayed: 0,
    stale: false,
    ...answer,
  }
}

const warnings = (answer: Response): string[] => valuesOf(answer.head, 'warning')
const statusBody = (answer: Response): Json => JSON.parse(answer.body.toString())

describe('what PodProtectors let pass', () => {
  test('the answer names the pods that go, and the write is as it came', async () => {
    const scene = await setUp()
    const body = '{ "spec":{"replicas":\t2} }'
    const answer = await scene.send('PATCH', `${WEB}/scale`, body, MERGE)
    assert.equal(answer.status, 200)
    assert.deepEqual(warnings(answer), ['299 - "deployments/web: 4 -> 2 replicas deletes 2 pods: web-a, web-b"'])
    assert.deepEqual(scene.writes, [
      { path: `${WEB}/scale`, bytes: Buffer.from(body), user: 'alice', contentType: MERGE, body },
    ])
    const [asked, ...more] = scene.gate.scaleDowns
    assert.deepEqual(more, [])
    assert.deepEqual(
      [asked?.cell, asked?.kind, asked?.replicas, asked?.sets.length],
      ['prod.example.com', 'Deployment', 2, 1],
    )
    assert.deepEqual(
      asked?.sets[0]?.certain.map(({ name }) => name),
      ['web-a', 'web-b'],
    )
  })

  test('where it is open which pods go, the answer says how many of which', async () => {
    const scene = await setUp()
    for (const pod of scene.pods) pod.metadata.annotations = {}
    assert.match(
      warnings(await scene.scale(3)).join(),
      /deletes 1 pod", *299 - ".*: 1 of these 4 go: web-a, web-b, web-c, web-d/,
    )
  })

  test('who may not list pods is told how many go, and no names', async () => {
    const scene = await setUp()
    scene.allows = ({ verb }) => verb !== 'list'
    assert.deepEqual(warnings(await scene.scale(2)), ['299 - "deployments/web: 4 -> 2 replicas deletes 2 pods"'])
  })

  test('many pods: warnings as kube-apiserver would let them through', async () => {
    const scene = await setUp(undefined, 300)
    for (const [at, pod] of scene.pods.entries()) pod.metadata.name = `web-${at}-${'x'.repeat(40)}`
    const texts = warnings(await scene.scale(1))
    assert.ok(texts.every((text) => text.length <= 256 + '299 - ""'.length))
    assert.ok(texts.join('').length < 4096)
    assert.match(texts.at(-1) ?? '', /more pods go than are named here/)
  })

  test('a raised or equal number, and what does not touch it, are not reviewed', async () => {
    const scene = await setUp()
    for (const replicas of [4, 9]) assert.deepEqual(warnings(await scene.scale(replicas)), [])
    await scene.send('PATCH', WEB, '{"spec":{"paused":true}}', MERGE)
    await scene.send('PATCH', `${WEB}/status`, '{"spec":{"replicas":1}}', MERGE)
    assert.equal(scene.writes.length, 4)
    assert.deepEqual([scene.reads, scene.gate.scaleDowns.length], [[WEB, WEB], 0])
  })

  test('a dry run changes nothing, and is not reviewed', async () => {
    const scene = await setUp()
    scene.gate.answerScaleDown = () => ({ protectors: [against()], unknown: '' })
    await scene.send('PATCH', `${WEB}/scale?dryRun=All`, '{"spec":{"replicas":1}}', MERGE)
    assert.deepEqual([scene.dryRuns.length, scene.reads.length, scene.gate.scaleDowns.length], [1, 0, 0])
  })

  test('without spec.scaleProtection nothing is read', async () => {
    const scene = await setUp({ podProtection: {} })
    await scene.scale(1)
    assert.deepEqual([scene.writes.length, scene.reads.length, scene.stub.reviews.length], [1, 0, 0])
  })
})

describe('what PodProtectors refuse', () => {
  test('403 with a cause for each, without Retry-After, and nothing goes upstream', async () => {
    const scene = await setUp()
    const second = against({ protector: 'shop/other', beingDeleted: 1 })
    scene.gate.answerScaleDown = () => ({ protectors: [against(), second], unknown: '' })
    const answer = await scene.scale(2)
    assert.equal(answer.status, 403)
    const { reason, message, details } = statusBody(answer)
    assert.equal(reason, 'Forbidden')
    assert.match(
      message,
      /^deployments\/web: 4 -> 2 replicas refused: PodProtector shop\/web requires 3, counts 4, and 2 would go/,
    )
    assert.ok(message.length < 400)
    assert.deepEqual(
      details.causes.map((cause: Json) => [cause.reason, cause.field]),
      [
        ['PodProtector', 'spec.replicas'],
        ['PodProtector', 'spec.replicas'],
      ],
    )
    assert.match(details.causes[1].message, /shop\/other requires 3, counts 4 \(1 being deleted\)/)
    assert.deepEqual([valuesOf(answer.head, 'retry-after'), scene.writes], [[], []])
  })

  test('in shadow mode it passes, with a warning that says so', async () => {
    const scene = await setUp({ scaleProtection: { shadow: true }, podProtection: {} })
    scene.gate.answerScaleDown = () => ({ protectors: [against()], unknown: '' })
    const answer = await scene.scale(2)
    assert.equal(answer.status, 200)
    assert.match(warnings(answer).join(), /scale-protection in shadow mode would refuse: deployments\/web: 4 -> 2/)
    assert.equal(scene.writes.length, 1)
  })

  test('in shadow mode an unknown outcome is reported like a refusal: warning and audit log', async () => {
    const scene = await setUp({ scaleProtection: { shadow: true, failurePolicy: 'Fail' }, podProtection: {} })
    scene.gate.answerScaleDown = () => ({ protectors: [], unknown: 'it is unknown' })
    const answer = await scene.scale(2)
    assert.equal(answer.status, 200)
    assert.match(warnings(answer).join(), /scale-protection in shadow mode would refuse: .* cannot be scaled now/)
    const [id] = valuesOf(answer.head, 'audit-id')
    await waitFor('the audit event', () => scene.audit.some(({ auditID }) => auditID === id))
    const event = scene.audit.find(({ auditID }) => auditID === id)
    assert.equal(event?.annotations['portcullis.io/shadow'], 'scale-protection/spec.scaleProtection')
  })

  test('an annotation of the workload lets it pass for a time, and not one that the same write brings', async () => {
    const scene = await setUp()
    scene.gate.answerScaleDown = () => ({ protectors: [against()], unknown: '' })
    const annotations = { 'scale.portcullis.io/allow-until': '2999-01-01T00:00:00Z' }
    const own = JSON.stringify({ metadata: { annotations }, spec: { replicas: 2 } })
    assert.equal((await scene.send('PATCH', WEB, own, MERGE)).status, 403)
    for (const until of ['2001-01-01T00:00:00Z', 'true', '2999', '']) {
      scene.deployment.metadata.annotations = { 'scale.portcullis.io/allow-until': until }
      assert.equal((await scene.scale(2)).status, 403, until)
    }
    scene.deployment.metadata.annotations = annotations
    const answer = await scene.scale(2)
    assert.equal(answer.status, 200)
    assert.match(warnings(answer).join(), /deletes 2 pods: web-a, web-b/)
    assert.match(warnings(answer).join(), /lets this write pass, but PodProtector \S+ still refuses deletions of pods/)
  })

  test('the ReplicaSet of a Deployment is checked, except for kube-controller-manager', async () => {
    const scene = await setUp()
    scene.gate.answerScaleDown = () => ({ protectors: [against()], unknown: '' })
    const path = '/apis/apps/v1/namespaces/shop/replicasets/web-1'
    scene.answerRead = (request) => {
      if (request.path !== path) return false
      const owner = [{ controller: true, uid: 'uid-web', kind: 'Deployment', name: 'web' }]
      const { labels } = scene.deployment.metadata
      const metadata = { name: 'web-1', namespace: 'shop', uid: 'uid-rs', labels, ownerReferences: owner }
      reply(request, 200, JSON.stringify({ metadata, spec: { replicas: 4, selector: { matchLabels: labels } } }))
      return true
    }
    const body = '{"spec":{"replicas":1}}'
    assert.equal((await scene.send('PATCH', path, body, MERGE)).status, 403)
    assert.equal((await scene.send('PATCH', `${path}/scale`, body, MERGE)).status, 403)
    for (const user of [SYSTEM_CONTROLLER, 'system:kube-controller-manager'])
      assert.equal((await scene.send('PATCH', path, body, MERGE, ['impersonate-user', user])).status, 200, user)
  })

  test('excluded namespaces and other labels are not checked, nor what the Deployment controller does', async () => {
    const selected = { matchLabels: { tier: 'gold' } }
    const scene = await setUp({ scaleProtection: { objectSelector: selected }, podProtection: {} })
    scene.gate.answerScaleDown = () => ({ protectors: [against()], unknown: '' })
    assert.equal((await scene.scale(2)).status, 200)
    scene.deployment.metadata.labels.tier = 'gold'
    assert.equal((await scene.scale(2)).status, 403)
    const asController = ['impersonate-user', SYSTEM_CONTROLLER]
    const reads = scene.reads.length
    const body = '{"spec":{"replicas":1}}'
    assert.equal((await scene.send('PATCH', WEB, body, MERGE, asController)).status, 200)
    assert.equal(scene.reads.length, reads)
    const excluded = await setUp({ scaleProtection: { excludedNamespaces: ['shop'] }, podProtection: {} })
    assert.equal((await excluded.scale(2)).status, 200)
    assert.equal(excluded.reads.length, 0)
  })
})

describe('rights come first', () => {
  test('who may not scale is refused before the body is read or anything is', async () => {
    const scene = await setUp()
    scene.allows = ({ verb }) => verb !== 'patch'
    const answer = await scene.scale(2)
    assert.equal(answer.status, 403)
    assert.match(statusBody(answer).message, /cannot patch resource "deployments\/scale" in API group "apps"/)
    assert.deepEqual([scene.reads, scene.writes], [[], []])
  })

  test('a body that is larger than kube-apiserver takes', async () => {
    const scene = await setUp()
    const answer = await scene.send('PUT', WEB, Buffer.alloc(3 * 1024 * 1024 + 1, 32), 'application/json')
    assert.deepEqual([answer.status, scene.writes.length], [413, 0])
  })
})

describe('every format', () => {
  // spec = 2 { replicas = 1: 2 }, behind runtime.Unknown.
  const protobuf = Buffer.from([0x6b, 0x38, 0x73, 0x00, 0x12, 0x04, 0x12, 0x02, 0x08, 0x02])
  const scale = '{"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":2}}'
  const formats: readonly (readonly [method: string, path: string, type: string, body: string | Buffer])[] = [
    ['PUT', `${WEB}/scale`, '', scale],
    ['PUT', `${WEB}/scale`, 'application/json', scale],
    ['PUT', WEB, 'application/json; charset=utf-8', ' {"spec":\n{"replicas":2}}'],
    ['PUT', WEB, 'application/yaml', 'spec:\n    replicas:  2 # two\n'],
    ['PUT', WEB, 'application/vnd.kubernetes.protobuf', protobuf],
    ['PUT', `${WEB}/scale`, 'application/vnd.kubernetes.protobuf', protobuf],
    ['PATCH', WEB, MERGE, '{"spec":{"replicas":2}}'],
    ['PATCH', WEB, 'application/strategic-merge-patch+json', '{"spec":{"replicas":2,"template":{}}}'],
    ['PATCH', WEB, 'application/json-patch+json', '[{"op":"replace","path":"/spec/replicas","value":2}]'],
    ['PATCH', `${WEB}?fieldManager=a&force=true`, 'application/apply-patch+yaml', 'spec: {replicas: 2}'],
    ['PATCH', `${WEB}/scale?fieldManager=a`, 'application/apply-patch+yaml', '{"spec":{"replicas":2}}'],
    // Asked by a dry run.
    ['PUT', WEB, 'application/json', '{"spec":{"replicas":9},"spec":{"replicas":2}}'],
    ['PUT', WEB, 'application/cbor', Buffer.from([0xd9, 0xd9, 0xf7, 0xa0, 0xff, 0x00])],
    ['PATCH', WEB, 'application/apply-patch+yaml', Buffer.from([0x73, 0x3a, 0xff, 0xfe, 0x0a])],
    ['PATCH', WEB, MERGE, `{"a":${'['.repeat(2000)}${']'.repeat(2000)},"spec":{"replicas":2}}`],
    ['PUT', WEB, 'application/json', `{"pad":"${'x'.repeat(2_900_000)}","spec":{"replicas":2,"replicas":2}}`],
  ]
  test('is seen, and goes upstream byte for byte', async () => {
    const scene = await setUp()
    scene.dryRun = { replicas: 2 }
    for (const [at, [method, path, type, body]] of formats.entries()) {
      // It is not decompressed: kube-apiserver does not, either.
      const answer = await scene.send(method, path, body, type, at % 2 === 0 ? [] : ['content-encoding', 'gzip'])
      assert.equal(answer.status, 200)
      assert.match(warnings(answer).join(), /4 -> 2 replicas deletes 2 pods: web-a, web-b/, `${method} ${path} ${type}`)
      const last = scene.writes.at(-1)
      assert.deepEqual([last?.path, last?.contentType], [path, type])
      assert.ok(last?.bytes.equals(Buffer.from(body)), `${method} ${path} ${type}`)
    }
    assert.deepEqual([scene.writes.length, scene.dryRuns.length], [formats.length, 5])
  })

  test('what is really compressed is unreadable upstream, too: it passes as it came', async () => {
    const scene = await setUp()
    scene.dryRun = { code: 400 }
    const body = gzipSync(Buffer.from('{"spec":{"replicas":1}}'))
    const answer = await scene.send('PATCH', WEB, body, MERGE, ['content-encoding', 'gzip'])
    assert.equal(answer.status, 200)
    assert.ok(scene.writes[0]?.bytes.equals(body))
  })

  test('several filters that ask cost one read of the body and of the workload', async () => {
    const shadow = { mode: 'NoDisruption', shadow: true } as const
    const scene = await setUp({ scaleProtection: {}, podProtection: {}, degrade: shadow })
    const answer = await scene.scale(2)
    assert.match(warnings(answer).join(), /in shadow mode would refuse.*deletes 2 pods/, 'two filters have asked')
    assert.equal(scene.reads.filter((path) => path === WEB).length, 1)
    assert.equal(scene.reads.length, 3, 'the workload, its ReplicaSets, its pods')
  })
})

describe('what the gateway cannot read', () => {
  const PATCH = 'application/json-patch+json'
  const COPY = '[{"op":"copy","from":"/spec/minReadySeconds","path":"/spec/replicas"}]'

  test('a test in a JSON patch, which may fail only while it is tried, is no way past a check', async () => {
    const scene = await setUp({ scaleProtection: {}, podProtection: {}, degrade: { mode: 'NoDisruption' } })
    scene.dryRun = { code: 422 }
    const replace = { op: 'replace', path: '/spec/replicas', value: 2 }
    const body = JSON.stringify([{ op: 'test', path: '/metadata/annotations/a', value: 'now' }, replace])
    const answer = await scene.send('PATCH', WEB, body, PATCH)
    assert.deepEqual([answer.status, scene.dryRuns.length, scene.writes.length], [403, 0, 0])
  })

  test('upstream is asked by a dry run, as the caller', async () => {
    const scene = await setUp()
    scene.dryRun = { replicas: 2 }
    const answer = await scene.send('PATCH', `${WEB}?fieldManager=me`, COPY, PATCH)
    assert.match(warnings(answer).join(), /4 -> 2 replicas deletes 2 pods/)
    const path = `${WEB}?fieldManager=me&dryRun=All`
    const sent = { bytes: Buffer.from(COPY), user: 'alice', contentType: PATCH, body: COPY }
    assert.deepEqual(scene.dryRuns, [{ path, ...sent }])
    assert.deepEqual(scene.writes, [{ path: `${WEB}?fieldManager=me`, ...sent }])
  })

  test('a dry run never has so many parameters that Go ignores them all, and with them dryRun', async () => {
    const scene = await setUp()
    scene.dryRun = { replicas: 2 }
    const answered = new Map<number, number>()
    for (const parameters of [9_999, 10_000]) {
      const answer = await scene.send('PATCH', `${WEB}?${'&'.repeat(parameters - 1)}`, COPY, PATCH)
      answered.set(parameters, answer.status)
    }
    assert.deepEqual([...answered.values()], [200, 400])
    assert.equal(scene.dryRuns.length, 1)
    for (const { path } of scene.dryRuns) assert.ok(path.split('&').length <= 10_000, 'urlmaxqueryparams of Go')
  })

  test('a dry run that fails leaves it unchecked: it passes, or not, by the failure policy', async () => {
    for (const failurePolicy of ['Ignore', 'Fail'] as const) {
      const scene = await setUp({ scaleProtection: { failurePolicy }, podProtection: {} })
      scene.dryRun = { code: 400 }
      const answer = await scene.send('PATCH', WEB, COPY, PATCH)
      assert.deepEqual([answer.status, scene.writes.length], failurePolicy === 'Fail' ? [503, 0] : [200, 1])
      assert.deepEqual(valuesOf(answer.head, 'retry-after'), [])
    }
  })

  const causes: readonly (readonly [name: string, cause: (scene: Scene) => void])[] = [
    ['pods that cannot be listed', (scene) => forbid(scene, '/pods')],
    ['a workload that cannot be read', (scene) => forbid(scene, WEB)],
    ['pods whose list has no items', (scene) => answerWith(scene, '/pods', 200, '{"metadata":{}}')],
    ['pods whose list is cut off', (scene) => answerWith(scene, '/pods', 200, '{"items":[')],
    ['a workload that is a list', (scene) => answerWith(scene, WEB, 200, '[]')],
    ['unknown protectors', (scene) => (scene.gate.answerScaleDown = () => ({ protectors: [], unknown: 'why' }))],
    [
      'protectors whose pods are not counted',
      (scene) => (scene.gate.answerScaleDown = () => ({ protectors: [against({ stale: true })], unknown: '' })),
    ],
    ['more pods than are compared', (scene) => scene.pods.push(...Array.from({ length: 600 }, () => scene.pods[0]))],
  ]
  for (const [name, cause] of causes) {
    test(`${name}: by the failure policy`, async () => {
      for (const failurePolicy of ['Ignore', 'Fail'] as const) {
        const scene = await setUp({ scaleProtection: { failurePolicy }, podProtection: {} })
        cause(scene)
        const answer = await scene.scale(2)
        assert.equal(answer.status, failurePolicy === 'Fail' ? 503 : 200, answer.body.toString())
      }
    })
  }

  test('the pods of other kinds are not known: they pass whatever the policy', async () => {
    const scene = await setUp({ scaleProtection: { failurePolicy: 'Fail' }, podProtection: {} })
    const path = '/apis/example.com/v1/namespaces/shop/rollouts/web/scale'
    scene.answerRead = (request) => {
      reply(request, 200, '{"spec":{"replicas":4}}')
      return true
    }
    const answer = await scene.send('PUT', path, '{"spec":{"replicas":1}}')
    assert.deepEqual([answer.status, scene.reads], [200, [path]])
  })
})

function forbid(scene: Scene, what: string): void {
  answerWith(scene, what, 403, JSON.stringify(statusOf(403, 'Forbidden')))
}

function answerWith(scene: Scene, what: string, status: number, body: string): void {
  scene.answerRead = (request) => {
    if (!new URL(request.path, 'https://stub').pathname.endsWith(what)) return false
    reply(request, status, body)
    return true
  }
}
