// Writes of a pod that end it by its activeDeadlineSeconds: evaluated as its deletion, in every format; what is reserved is kept or given
// back by upstream's answer; and no other write of a pod costs a call.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { admitted, type GuardedGateway, refused, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import {
  type PodUpstream,
  READY,
  type SeenWrite,
  startPodUpstream,
  statusOf,
} from '../harness/upstreams/pod-upstream.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const POD = '/api/v1/namespaces/default/pods/a'
const MERGE = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const APPLY = 'application/apply-patch+yaml'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const DEADLINE = '{"spec":{"activeDeadlineSeconds":1}}'
const LABEL = '{"metadata":{"labels":{"x":"y"}}}'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends GuardedGateway {
  readonly upstream: PodUpstream
  readonly dryRuns: SeenWrite[]
  /** All but dry runs of the gateway's. */
  readonly writes: SeenWrite[]
  /** spec.activeDeadlineSeconds as upstream has it, and after a write. */
  before: number | undefined
  after: number | undefined
  /** Codes of the answers to a dry run and to the write. */
  code: { dryRun: number; write: number }
  send(body: string | Buffer, contentType?: string, query?: string, method?: string): Promise<Response>
}

type Spec = Pick<UpstreamClusterSpec, 'podProtection' | 'degrade'>

async function setUp(spec: Spec = { podProtection: {} }, startedSecondsAgo = 3_600): Promise<Scene> {
  const upstream = await startPodUpstream()
  const gateway = await startGuardedGateway(
    clusterObject([upstream.stub], { clientCA, spec: { ...spec, logging: { mode: 'on' } } }),
  )
  const session: ClientHttp2Session = h2Connect({
    port: gateway.port,
    serverName: 'prod.example.com',
    certificate: alice,
  })
  cleanups.push(upstream.stub.stop, gateway.stop, () => session.destroy())
  const startTime = new Date(Date.now() - startedSecondsAgo * 1000).toISOString()
  upstream.pods.set('a', {
    metadata: { name: 'a', namespace: 'default', uid: 'uid-a', resourceVersion: '100', labels: { app: 'a' } },
    status: { ...READY, startTime },
  })
  const scene: Scene = {
    ...gateway,
    upstream,
    dryRuns: [],
    writes: [],
    before: undefined,
    after: 1,
    code: { dryRun: 200, write: 200 },
    send: (body, contentType = MERGE, query = '', method = 'PATCH') => {
      const bytes = Buffer.from(body)
      const type = contentType === '' ? [] : ['content-type', contentType]
      const head = [':method', method, ':path', `${POD}${query}`, 'content-length', String(bytes.length), ...type]
      return h2Request(session, head, bytes)
    },
  }
  const objectOf = (activeDeadlineSeconds: number | undefined): string =>
    JSON.stringify({ ...upstream.pods.get('a'), kind: 'Pod', spec: { activeDeadlineSeconds } })
  upstream.answerWrite = (write) => {
    const isTrial = /[?&]dryRun=All$/.test(write.path)
    if (isTrial) scene.dryRuns.push(write)
    else scene.writes.push(write)
    const code = isTrial ? scene.code.dryRun : scene.code.write
    reply(write.request, code, code === 200 ? objectOf(scene.after) : JSON.stringify(statusOf(code, 'Invalid')))
    return true
  }
  upstream.answerRead = (request) => {
    reply(request, 200, objectOf(scene.before))
    return true
  }
  return scene
}

function messageOf({ body }: Response): string {
  return (JSON.parse(body.toString()) as { message: string }).message
}

describe('a deadline is evaluated as a deletion', () => {
  const object = JSON.stringify({ kind: 'Pod', apiVersion: 'v1', spec: { activeDeadlineSeconds: 1 } })
  const field = (number: number, content: Buffer | string): Buffer => {
    const bytes = Buffer.from(content)
    return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
  }
  const kind = Buffer.concat([field(1, 'v1'), field(2, 'Pod')])
  const raw = Buffer.concat([field(1, field(1, 'a')), field(2, Buffer.from([5 * 8, 1]))])
  const formats: readonly (readonly [string, string, string | Buffer])[] = [
    ['PATCH', MERGE, DEADLINE],
    ['PATCH', MERGE, DEADLINE.replace('active', '\\u0061ctive')],
    ['PATCH', STRATEGIC, DEADLINE],
    ['PATCH', JSON_PATCH, '[{"op":"add","path":"/spec/activeDeadlineSeconds","value":1}]'],
    ['PATCH', JSON_PATCH, '[{"op":"add","path":"/spec/active\\u0044eadlineSeconds","value":1}]'],
    ['PATCH', APPLY, 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {activeDeadlineSeconds: 1}\n'],
    ['PATCH', APPLY, 'apiVersion: v1\nkind: Pod\nspec:\n  !!binary YWN0aXZlRGVhZGxpbmVTZWNvbmRz: 1\n'],
    ['PATCH', 'application/apply-patch+cbor', 'no text'],
    ['PUT', '', object],
    ['PUT', 'application/json', object],
    ['PUT', 'application/yaml', 'spec:\n  activeDeadlineSeconds: 1\n'],
    ['PUT', PROTOBUF, Buffer.concat([Buffer.from('k8s\0'), field(1, kind), field(2, raw)])],
    ['PUT', 'application/cbor', 'no text'],
  ]
  for (const [method, type, body] of formats) {
    test(`${method} ${type} ${body.toString('latin1')}`, async () => {
      const scene = await setUp()
      scene.gate.judge = refused
      const answer = await scene.send(body, type, '', method)
      assert.equal(answer.status, 429, answer.body.toString())
      assert.match(messageOf(answer), /too few available replicas .*sets spec\.activeDeadlineSeconds of pods\/a to 1$/)
      assert.deepEqual(valuesOf(answer.head, 'retry-after'), [])
      assert.equal(scene.writes.length, 0)
      scene.gate.judge = admitted
      assert.equal((await scene.send(body, type, '', method)).status, 200)
      assert.deepEqual(
        scene.writes.map((write) => [write.method, write.path, write.body.toString('latin1'), write.user]),
        [[method, POD, body.toString('latin1'), 'alice']],
        'as it came',
      )
      assert.deepEqual([scene.gate.asked.length, scene.gate.released], [2, []])
    })
  }

  test('the ledger is asked about the pod as one that is available, whatever it is now', async () => {
    const scene = await setUp({ podProtection: { cell: 'one' } })
    const pod = scene.upstream.pods.get('a')
    assert.ok(pod !== undefined)
    scene.upstream.pods.set('a', { ...pod, status: { ...pod.status, phase: 'Pending', conditions: [] } })
    assert.equal((await scene.send(DEADLINE)).status, 200)
    const [asked] = scene.gate.asked[0] ?? []
    assert.deepEqual(
      [asked?.cell, asked?.cause, asked?.via, asked?.user, asked?.dryRun, asked?.pod.uid, asked?.pod.ready],
      ['one', 'DeletePod', 'filter', 'alice', false, 'uid-a', true],
    )
  })

  test('what upstream refuses afterwards is released, what may have happened is not', async () => {
    for (const [code, released] of [
      [422, 1],
      [403, 1],
      [200, 0],
      [500, 0],
    ] as const) {
      const scene = await setUp()
      scene.code.write = code
      assert.equal((await scene.send(DEADLINE)).status, code)
      if (released > 0) await waitFor('the release', () => scene.gate.released.length > 0)
      assert.equal(scene.gate.released.length, released, String(code))
    }
  })

  test('lowered, it ends the pod; as it is, or higher, it does not', async () => {
    const scene = await setUp()
    for (const [before, after, asked] of [
      [60, 1, 1],
      [1, 1, 0],
      [1, 60, 0],
    ] as const) {
      scene.gate.asked.length = 0
      Object.assign(scene, { before, after })
      assert.equal((await scene.send(DEADLINE)).status, 200)
      assert.equal(scene.gate.asked.length, asked, `${before} ${after}`)
    }
  })

  test('a dry run is evaluated, and reserves nothing', async () => {
    const scene = await setUp()
    assert.equal((await scene.send(DEADLINE, MERGE, '?dryRun=All')).status, 200)
    assert.equal(scene.gate.asked[0]?.[0]?.dryRun, true)
    scene.gate.judge = refused
    assert.equal((await scene.send(DEADLINE, MERGE, '?dryRun=All')).status, 429)
  })

  test('in shadow mode it passes with a warning', async () => {
    const scene = await setUp({ podProtection: { shadow: true } })
    scene.gate.judge = refused
    const answer = await scene.send(DEADLINE)
    assert.equal(answer.status, 200)
    assert.match(valuesOf(answer.head, 'warning').join(), /protection in shadow mode would refuse to delete pod/)
  })
})

describe('a deadline that is further ahead than a reservation holds', () => {
  test('is refused where a protector selects the pod, and nothing is reserved', async () => {
    const scene = await setUp()
    scene.after = 3_600 + 600
    const answer = await scene.send('{"spec":{"activeDeadlineSeconds":4200}}')
    assert.equal(answer.status, 429)
    assert.match(messageOf(answer), /^it would end in (600|59\d) s, .*within 30 s, or delete or evict the pod/)
    assert.deepEqual([scene.gate.asked[0]?.[0]?.dryRun, scene.writes], [true, []])
    scene.gate.judge = (request) => ({ ...admitted(request), status: 'Unmatched', reservation: undefined })
    assert.equal((await scene.send('{"spec":{"activeDeadlineSeconds":4200}}')).status, 200)
  })

  test('so is one that copies what it will be, and one of a pod that has not started', async () => {
    const copy = '[{"op":"copy","from":"/metadata/generation","path":"/spec/activeDeadlineSeconds"}]'
    const scene = await setUp()
    const answer = await scene.send(copy, JSON_PATCH)
    assert.equal(answer.status, 429)
    assert.match(messageOf(answer), /^it is unknown when the pod would end; .*by a copy or a move$/)
    const pod = scene.upstream.pods.get('a')
    assert.ok(pod !== undefined)
    scene.upstream.pods.set('a', { ...pod, status: READY })
    assert.equal((await scene.send(DEADLINE)).status, 429)
    assert.deepEqual(scene.writes, [])
  })

  test('passes in shadow mode', async () => {
    const scene = await setUp({ podProtection: { shadow: true } })
    scene.after = 4_200
    const answer = await scene.send('{"spec":{"activeDeadlineSeconds":4200}}')
    assert.equal(answer.status, 200)
    assert.match(valuesOf(answer.head, 'warning').join(), /would refuse to delete pod/)
  })
})

describe('other writes of pods', () => {
  test('cost nothing: no right, no pod, no dry run is asked about', async () => {
    const scene = await setUp()
    let reviews = 0
    scene.upstream.allows = () => {
      reviews++
      return true
    }
    await scene.send(LABEL)
    await scene.send('{"metadata":{"name":"a"},"spec":{"containers":[]}}', 'application/json', '', 'PUT')
    await scene.send('[{"op":"remove","path":"/metadata/finalizers"}]', JSON_PATCH)
    assert.equal(scene.writes.length, 3)
    assert.deepEqual(
      [reviews, scene.upstream.reads.length, scene.dryRuns.length, scene.gate.asked.length],
      [0, 0, 0, 0],
    )
  })

  test('neither do those of a namespace without protector', async () => {
    const scene = await setUp()
    scene.cover(new Set(['elsewhere']))
    assert.equal((await scene.send(DEADLINE)).status, 200)
    assert.deepEqual([scene.writes.length, scene.gate.asked.length], [1, 0])
  })
})

describe('what cannot be evaluated', () => {
  test('who may not write the pod learns nothing, and takes no quota', async () => {
    const scene = await setUp()
    scene.upstream.allows = () => false
    assert.equal((await scene.send(DEADLINE)).status, 403)
    assert.deepEqual([scene.upstream.reads.length, scene.dryRuns.length, scene.gate.asked.length], [0, 0, 0])
  })

  test('a dry run that upstream refuses is the answer, and reserves nothing', async () => {
    const scene = await setUp()
    scene.code.dryRun = 422
    const answer = await scene.send(DEADLINE)
    assert.deepEqual([answer.status, messageOf(answer)], [422, 'upstream says Invalid'])
    assert.deepEqual([scene.writes, scene.gate.asked], [[], []])
  })

  for (const [failurePolicy, status] of [
    ['Fail', 503],
    ['Ignore', 200],
  ] as const) {
    test(`without an answer to the dry run, failurePolicy ${failurePolicy} decides`, async () => {
      const scene = await setUp({ podProtection: { failurePolicy } })
      scene.code.dryRun = 500
      assert.equal((await scene.send(DEADLINE)).status, status)
      assert.deepEqual([scene.writes.length, scene.gate.asked.length], [status === 200 ? 1 : 0, 0])
    })
  }
})

test('degrade mode and protection ask upstream once, and the mode refuses first', async () => {
  const scene = await setUp({ podProtection: {}, degrade: { mode: 'NoDisruption' } })
  assert.equal((await scene.send(DEADLINE)).status, 403)
  assert.deepEqual([scene.dryRuns.length, scene.gate.asked.length], [1, 0])
  const limited = await setUp({
    podProtection: {},
    degrade: { mode: 'Limited', limited: { startQPS: 100, endQPS: 100 } },
  })
  assert.equal((await limited.send(DEADLINE)).status, 200)
  assert.deepEqual([limited.dryRuns.length, limited.gate.asked.length], [1, 1])
})
