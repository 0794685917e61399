// ScaleDownPolicies on the request path: what is read and written before a scale-down is forwarded, what is left alone, and what is taken back.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import type { ProtectorAnswer } from '../../src/protection/api/protection.ts'
import type { ScaleDownReport } from '../../src/scaling/api/scale-down.ts'
import type { CompiledScaleDownPolicy } from '../../src/scaling/core/victim-choice/policy.ts'
import { h2Connect, h2Open, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { READY, statusOf } from '../harness/upstreams/pod-upstream.ts'
import { reply, replyReview, type SeenRequest, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects as a server has them
type Json = any

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const WEB = '/apis/apps/v1/namespaces/shop/deployments/web'
const REPLICA_SET = '/apis/apps/v1/namespaces/shop/replicasets/web-1'
const STATEFUL_SET = '/apis/apps/v1/namespaces/shop/statefulsets/web'
const PODS = '/api/v1/namespaces/shop/pods'
const COST = 'controller.kubernetes.io/pod-deletion-cost'
const OURS = 'scale.portcullis.io/deletion-cost'
const POLICY: CompiledScaleDownPolicy = {
  namespace: 'shop',
  name: 'web',
  clusters: ['prod.example.com'],
  selector: { matchLabels: { app: 'web' } },
  prefer: [{ by: 'Annotation', annotation: 'sessions' }],
  onUnavailable: 'Forward',
  settleMs: 0,
  maxDelayMs: 10_000,
  shadow: false,
}

const REFUSING: ProtectorAnswer = {
  protector: 'shop/guard',
  required: 3,
  requiredAfter: 3,
  counted: 3,
  beingDeleted: 0,
  deletions: 1,
  refused: { least: 1, most: 1 },
  delayed: 0,
  stale: false,
}

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends GuardedGateway {
  readonly session: ClientHttp2Session
  readonly deployment: Json
  readonly pods: Map<string, Json>
  /** Answer to a read of a node. */
  nodeCode: number
  /** Whether the ReplicaSet belongs to the Deployment. Default true. */
  owned: boolean
  /** The template of the ReplicaSet; default that of the Deployment. */
  template: Json
  /** `METHOD path`, of all that comes, without reviews. */
  readonly seen: string[]
  /** Patches of pods, as they came. */
  readonly patches: Json[]
  /** Called before a pod is patched; a code = the answer. */
  beforePatch: (pod: Json) => number | undefined
  /** The answer to the scale-down; undefined = none at all. */
  scaled: number | undefined
  allows: (attributes: Json) => boolean
  scale(replicas: number): Promise<Response>
}

function podOf(name: string, annotations: Record<string, string>): Json {
  const ownerReferences = [{ controller: true, uid: 'uid-rs' }]
  const metadata = {
    name,
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: { app: 'web' },
    annotations,
    ownerReferences,
  }
  return { metadata, spec: { nodeName: `node-${name}` }, status: READY }
}

async function setUp(
  policy: Partial<CompiledScaleDownPolicy> = {},
  spec: Partial<UpstreamClusterSpec> = {},
): Promise<Scene> {
  const stub = await startStub()
  const object = clusterObject([stub], { clientCA, spec: { logging: { mode: 'on' }, ...spec } })
  const gateway = await startGuardedGateway(object)
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(stub.stop, gateway.stop, () => session.destroy())
  const template = { metadata: { labels: { app: 'web' } } }
  const selector = { matchLabels: { app: 'web' } }
  const scene: Scene = {
    ...gateway,
    session,
    deployment: {
      kind: 'Deployment',
      metadata: { name: 'web', uid: 'uid-web' },
      spec: { replicas: 3, selector, template },
    },
    pods: new Map(['7', '1', '3'].map((sessions, at) => [`p${at}`, podOf(`p${at}`, { sessions })])),
    nodeCode: 404,
    owned: true,
    template,
    seen: [],
    patches: [],
    beforePatch: () => undefined,
    scaled: 200,
    allows: () => true,
    scale: (replicas) => {
      const body = Buffer.from(JSON.stringify({ spec: { replicas } }))
      const type = ['content-type', 'application/merge-patch+json', 'content-length', String(body.length)]
      return h2Request(session, [':method', 'PATCH', ':path', `${WEB}/scale`, ...type], body)
    },
  }
  stub.answerAccess = (seen) => {
    replyReview(seen, { allowed: scene.allows(seen.spec['resourceAttributes']), reason: 'because' })
  }
  stub.answer = (request) => answer(scene, request)
  gateway.scaleDownPolicies([{ ...POLICY, ...policy }])
  return scene
}

function answer(scene: Scene, request: SeenRequest): void {
  const { pathname, searchParams } = new URL(request.path, 'https://stub')
  scene.seen.push(`${request.method} ${pathname}`)
  const pod = scene.pods.get(pathname.slice(PODS.length + 1))
  if (request.method === 'PATCH') patch(scene, request, pod)
  else if (pathname === PODS) reply(request, 200, JSON.stringify(pageOf([...scene.pods.values()], searchParams)))
  else if (pathname.endsWith('/replicasets')) reply(request, 200, JSON.stringify({ items: [replicaSetOf(scene)] }))
  else if (pathname.startsWith('/api/v1/nodes/')) reply(request, scene.nodeCode, '{}')
  else if ([WEB, STATEFUL_SET, REPLICA_SET].includes(pathname)) reply(request, 200, JSON.stringify(scene.deployment))
  else if (pathname.endsWith('/replicasets/web-2')) reply(request, 200, JSON.stringify(replicaSetOf(scene)))
  else reply(request, pod === undefined ? 404 : 200, JSON.stringify(pod ?? statusOf(404, 'NotFound')))
}

function pageOf(pods: readonly Json[], asked: URLSearchParams): Json {
  const from = Number(asked.get('continue') ?? 0)
  const end = from + Number(asked.get('limit') ?? pods.length)
  return { metadata: { ...(end < pods.length && { continue: String(end) }) }, items: pods.slice(from, end) }
}

function replicaSetOf({ deployment, template, owned }: Scene): Json {
  const ownerReferences = [{ controller: true, kind: 'Deployment', name: 'web', uid: 'uid-web' }]
  return {
    metadata: { name: 'web-1', uid: 'uid-rs', ...(owned && { ownerReferences }) },
    spec: { ...deployment.spec, template },
    status: { replicas: 3 },
  }
}

function patch(scene: Scene, request: SeenRequest, pod: Json): void {
  const chunks: Buffer[] = []
  request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.stream.on('end', () => {
    if (pod === undefined) {
      if (scene.scaled !== undefined) reply(request, scene.scaled, '{}')
      return
    }
    const body: Json = JSON.parse(Buffer.concat(chunks).toString())
    scene.patches.push(body)
    const code = scene.beforePatch(pod)
    const { uid, resourceVersion, annotations } = body.metadata
    const { metadata } = pod
    if (code !== undefined) reply(request, code, JSON.stringify(statusOf(code, 'Refused')))
    else if (uid !== metadata.uid || resourceVersion !== metadata.resourceVersion) {
      reply(request, 409, JSON.stringify(statusOf(409, 'Conflict')))
    } else {
      metadata.resourceVersion = String(Number(resourceVersion) + 1)
      for (const [key, value] of Object.entries(annotations)) {
        if (value === null) delete metadata.annotations[key]
        else metadata.annotations[key] = value
      }
      reply(request, 200, JSON.stringify(pod))
    }
  })
}

/** Names of pods that have a cost. */
function costs({ pods }: Scene): Record<string, string> {
  const with_ = [...pods].filter(([, { metadata }]) => metadata.annotations[COST] !== undefined)
  return Object.fromEntries(with_.map(([name, { metadata }]) => [name, metadata.annotations[COST]]))
}

function reported({ scaledDown }: Scene, outcome: ScaleDownReport['outcome']): Promise<ScaleDownReport> {
  return waitFor(outcome, () => scaledDown.find((report) => report.outcome === outcome))
}

function warnings(response: Response): string {
  return valuesOf(response.head, 'warning').join('\n')
}

describe('before it is forwarded', () => {
  test('the victims have their cost, for their uid and as they were read; others have none', async () => {
    const scene = await setUp()
    const response = await scene.scale(2)
    assert.deepEqual([response.status, warnings(response)], [200, ''])
    assert.deepEqual(costs(scene), { p1: '-1' })
    assert.deepEqual([scene.patches[0].metadata.uid, scene.patches[0].metadata.resourceVersion], ['uid-p1', '1'])
    assert.deepEqual(scene.seen.at(-1), `PATCH ${WEB}/scale`)
    const { victims, from, to, workload } = await reported(scene, 'Steered')
    assert.deepEqual([victims, from, to, workload], [['p1'], 3, 2, 'deployments/web'])
    const own = JSON.parse(scene.pods.get('p1').metadata.annotations[OURS])
    assert.deepEqual([own.workload, own.to], ['deployments/web', 2])
  })

  test('what kube-controller-manager writes into a ReplicaSet is reported as that of its Deployment', async () => {
    const scene = await setUp()
    const ownerReferences = [{ controller: true, kind: 'Deployment', name: 'web', uid: 'uid-web' }]
    const metadata = { name: 'web-1', uid: 'uid-rs', ownerReferences }
    Object.assign(scene.deployment, { kind: 'ReplicaSet', metadata })
    const body = Buffer.from(JSON.stringify({ spec: { replicas: 2 } }))
    const head = ['content-type', 'application/merge-patch+json', 'content-length', String(body.length)]
    await h2Request(scene.session, [':method', 'PATCH', ':path', `${REPLICA_SET}/scale`, ...head], body)
    const { workload, from, to } = await reported(scene, 'Steered')
    assert.deepEqual([workload, from, to], ['deployments/web', 3, 2])
  })

  test('nothing is read or written for more pods, another namespace, cluster or workload, or what scales nothing', async () => {
    const scene = await setUp()
    await scene.scale(5)
    for (const other of [
      { clusters: ['staging'] },
      { namespace: 'other' },
      { selector: { matchLabels: { app: 'x' } } },
    ]) {
      scene.scaleDownPolicies([{ ...POLICY, ...other }])
      await scene.scale(1)
    }
    scene.scaleDownPolicies([])
    scene.seen.length = 0
    await scene.scale(1)
    assert.deepEqual(scene.seen, [`PATCH ${WEB}/scale`])
    assert.deepEqual([scene.patches, scene.scaledDown], [[], []])
  })

  test('who may not scale causes no reads, and learns nothing', async () => {
    const scene = await setUp()
    scene.allows = () => false
    assert.equal((await scene.scale(1)).status, 403)
    assert.deepEqual(scene.seen, [])
  })

  test('the first of several policies by name; in shadow mode it only says what it would choose', async () => {
    const scene = await setUp()
    scene.scaleDownPolicies([POLICY, { ...POLICY, name: 'all', selector: {}, shadow: true }])
    const response = await scene.scale(1)
    assert.match(warnings(response), /ScaleDownPolicy shop\/all: in shadow mode it would choose p1, p2/)
    assert.deepEqual([scene.patches, costs(scene)], [[], {}])
    assert.deepEqual((await reported(scene, 'Shadow')).victims, ['p1', 'p2'])
    const other = await setUp({ shadow: true })
    other.allows = ({ verb }) => verb !== 'list'
    assert.match(warnings(await other.scale(1)), /in shadow mode it would choose 2 pods"$/)
  })

  test('costs set by other clients stay, even one that is set at this very moment', async () => {
    const scene = await setUp()
    scene.pods.get('p2').metadata.annotations[COST] = '8'
    scene.beforePatch = (pod) => {
      if (pod.metadata.resourceVersion !== '1') return undefined
      pod.metadata.resourceVersion = '2'
      pod.metadata.annotations[COST] = '5'
      return undefined
    }
    const response = await scene.scale(2)
    assert.equal(response.status, 200)
    assert.deepEqual(costs(scene), { p1: '5', p2: '8' })
    assert.match(warnings(response), /deletion costs that other clients set are left unchanged: p2, p1/)
    assert.deepEqual((await reported(scene, 'Nothing')).conflicts, ['p2', 'p1'])
  })

  test('a pod that changes meanwhile gets its cost all the same', async () => {
    const scene = await setUp()
    let changed = false
    scene.beforePatch = (pod) => {
      if (!changed) pod.metadata.resourceVersion = '9'
      changed = true
      return undefined
    }
    assert.equal((await scene.scale(2)).status, 200)
    assert.deepEqual(costs(scene), { p1: '-1' })
  })

  test('costs of ours from before are taken from those that stay', async () => {
    const scene = await setUp()
    const own = JSON.stringify({ id: 'before', workload: 'deployments/web', to: 2, at: '' })
    Object.assign(scene.pods.get('p0').metadata.annotations, { [COST]: '-1', [OURS]: own })
    await scene.scale(2)
    assert.deepEqual(costs(scene), { p1: '-1' })
    assert.equal(scene.pods.get('p0').metadata.annotations[OURS], undefined)
  })
})

describe('when it cannot be', () => {
  test('a patch is refused: forwarded with a warning, and what has a cost already loses it', async () => {
    const scene = await setUp()
    scene.beforePatch = ({ metadata }) => (metadata.name === 'p2' ? 403 : undefined)
    const response = await scene.scale(1)
    assert.equal(response.status, 200)
    assert.match(warnings(response), /its victims cannot be chosen: a pod cannot be patched: the gateway may not/)
    await reported(scene, 'Unavailable')
    await waitFor('the other cost to be taken back', () => Object.keys(costs(scene)).length === 0)
    scene.beforePatch = () => undefined
    await scene.scale(1)
    await reported(scene, 'Steered')
    const outcomes = scene.scaledDown.map(({ outcome }) => outcome)
    assert.deepEqual(outcomes, ['Unavailable', 'Steered'], 'the scale-down itself was not refused')
  })

  test('who may not list pods or nodes learns no name from what cannot be read', async () => {
    for (const onUnavailable of ['Forward', 'Reject'] as const) {
      const scene = await setUp({ prefer: [{ by: 'UnschedulableNode' }], onUnavailable })
      scene.allows = ({ verb }) => verb !== 'list'
      scene.nodeCode = 403
      const response = await scene.scale(1)
      assert.equal(response.status, onUnavailable === 'Forward' ? 200 : 503)
      const said = warnings(response) + response.body.toString()
      assert.match(
        said,
        /its victims cannot be chosen: an object at \/api\/v1\/nodes cannot be read: the gateway may not/,
      )
      assert.doesNotMatch(said, /node-p/)
    }
  })

  test('onUnavailable: Reject answers 503 without Retry-After, and upstream sees nothing of it', async () => {
    const scene = await setUp({ onUnavailable: 'Reject' })
    scene.pods.clear()
    for (let i = 0; i <= 5000; i++) scene.pods.set(`p${i}`, podOf(`p${i}`, {}))
    const response = await scene.scale(1)
    assert.deepEqual([response.status, valuesOf(response.head, 'retry-after')], [503, []])
    assert.match(JSON.parse(String(response.body)).message, /^ScaleDownPolicy shop\/web: .*more than 5000/)
    assert.ok(!scene.seen.includes(`PATCH ${WEB}/scale`))
    const shadowed = await setUp({ onUnavailable: 'Reject', shadow: true })
    shadowed.pods.clear()
    for (let i = 0; i <= 5000; i++) shadowed.pods.set(`p${i}`, podOf(`p${i}`, {}))
    const passed = await shadowed.scale(1)
    assert.equal(passed.status, 200)
    assert.match(warnings(passed), /scale-down-policy in shadow mode would refuse: .*more than 5000/)
    const [id] = valuesOf(passed.head, 'audit-id')
    await waitFor('the audit event', () => shadowed.audit.some(({ auditID }) => auditID === id))
    const event = shadowed.audit.find(({ auditID }) => auditID === id)
    assert.equal(event?.annotations['portcullis.io/shadow'], 'scale-down-policy/shop/web')
  })

  test('a rollout, in which the Deployment controller deletes: forwarded, and said', async () => {
    const scene = await setUp()
    scene.template = { metadata: { labels: { app: 'web' } }, spec: { changed: true } }
    const response = await scene.scale(2)
    assert.equal(response.status, 200)
    assert.match(warnings(response), /its victims are not chosen: a rollout is in progress/)
    assert.deepEqual([(await reported(scene, 'Unsteerable')).victims, costs(scene)], [[], {}])
  })
})

describe('a StatefulSet, which deletes the highest ordinals', () => {
  for (const subresource of ['', '/scale']) {
    test(`scaled by its ${subresource === '' ? 'spec' : 'scale'}: forwarded, said, and no pod is read or written`, async () => {
      const scene = await setUp()
      scene.deployment.kind = 'StatefulSet'
      const target = `${STATEFUL_SET}${subresource}`
      const body = Buffer.from(JSON.stringify({ spec: { replicas: 1 } }))
      const type = ['content-type', 'application/merge-patch+json', 'content-length', String(body.length)]
      const head = [':method', 'PATCH', ':path', target, ...type]
      const response = await h2Request(scene.session, head, body)
      assert.equal(response.status, 200)
      assert.match(warnings(response), /its victims are not chosen: a StatefulSet deletes the highest ordinals/)
      const { victims, workload, from, to } = await reported(scene, 'Unsteerable')
      assert.deepEqual([victims, workload, from, to], [[], 'statefulsets/web', 3, 1])
      assert.deepEqual([scene.seen, costs(scene)], [[`GET ${STATEFUL_SET}`, `PATCH ${target}`], {}])
    })
  }
})

describe('afterwards', () => {
  for (const code of [404, 409, 422]) {
    test(`upstream refuses it with ${code}: the costs are taken back`, async () => {
      const scene = await setUp()
      scene.scaled = code
      assert.equal((await scene.scale(1)).status, code)
      await reported(scene, 'Reverted')
      assert.deepEqual(costs(scene), {})
    })
  }

  test('upstream may have done it: the costs are left to the leader', async () => {
    const scene = await setUp()
    scene.scaled = 500
    assert.equal((await scene.scale(1)).status, 500)
    assert.deepEqual(costs(scene), { p1: '-1', p2: '-1' })
    assert.ok(!scene.scaledDown.some(({ outcome }) => outcome === 'Reverted'))
  })

  test('the client goes away before it is forwarded: the costs are taken back', async () => {
    const scene = await setUp()
    let patched = false
    scene.beforePatch = () => {
      if (!patched) stream.close(8)
      patched = true
      return undefined
    }
    const body = JSON.stringify({ spec: { replicas: 2 } })
    const type = ['content-type', 'application/merge-patch+json', 'content-length', String(body.length)]
    const stream = h2Open(scene.session, [':method', 'PATCH', ':path', `${WEB}/scale`, ...type], { endStream: false })
    stream.on('error', () => undefined)
    stream.end(body)
    await reported(scene, 'Reverted')
    assert.deepEqual(costs(scene), {})
    assert.ok(!scene.seen.includes(`PATCH ${WEB}/scale`))
  })
})

describe('beside spec.scaleProtection', () => {
  const CHECKED = { scaleProtection: {}, podProtection: {} }

  test('the pods that are named, and about which PodProtectors are asked, are those that the policy chooses', async () => {
    const scene = await setUp({}, CHECKED)
    const response = await scene.scale(2)
    assert.equal(response.status, 200)
    assert.deepEqual(costs(scene), { p1: '-1' })
    assert.match(warnings(response), /deployments\/web: 3 -> 2 replicas deletes 1 pod: p1"$/)
    const [question] = scene.gate.scaleDowns
    assert.deepEqual(
      question?.sets.map(({ certain, possible }) => [certain.map(({ name }) => name), possible.count]),
      [[['p1'], 0]],
    )
  })

  test('what PodProtectors refuse gets no cost', async () => {
    const scene = await setUp({}, CHECKED)
    scene.gate.answerScaleDown = () => ({ protectors: [REFUSING], unknown: '' })
    assert.equal((await scene.scale(2)).status, 403)
    assert.deepEqual([scene.patches, scene.scaledDown], [[], []])
  })

  test('in shadow mode the pods of the controller are named', async () => {
    const scene = await setUp({ shadow: true }, CHECKED)
    scene.pods.get('p2').status = { ...READY, containerStatuses: [{ restartCount: 7 }] }
    assert.match(warnings(await scene.scale(2)), /deployments\/web: 3 -> 2 replicas deletes 1 pod: p2"/)
    assert.deepEqual(scene.patches, [])
  })

  test('a victim that has gone meanwhile is one fewer to go', async () => {
    const scene = await setUp({}, CHECKED)
    scene.beforePatch = ({ metadata }) => (metadata.name === 'p1' ? 404 : undefined)
    assert.match(warnings(await scene.scale(1)), /3 -> 1 replicas deletes 1 pod: p2"$/)
  })

  test('which pods go is uncertain when another client sets a cost in between, or not all can be set', async () => {
    const between = await setUp({}, CHECKED)
    between.beforePatch = ({ metadata }) => {
      metadata.resourceVersion = '7'
      metadata.annotations[COST] = '5'
      return undefined
    }
    assert.match(warnings(await between.scale(2)), /1 of these 3 go: p0, p1, p2/)
    const half = await setUp({}, CHECKED)
    half.beforePatch = ({ metadata }) => (metadata.name === 'p2' ? 403 : undefined)
    assert.match(warnings(await half.scale(1)), /2 of these 3 go: p0, p1, p2/)
  })
})

describe('the Deployment controller passes the number on to its ReplicaSet', () => {
  const SET = '/apis/apps/v1/namespaces/shop/replicasets/web-2'

  async function scaleSet(scene: Scene, replicas: number): Promise<Response> {
    const body = Buffer.from(JSON.stringify({ spec: { replicas } }))
    const type = ['content-type', 'application/merge-patch+json', 'content-length', String(body.length)]
    return await h2Request(scene.session, [':method', 'PATCH', ':path', SET, ...type], body)
  }

  test('once is enough: what the write of the Deployment has chosen stays', async () => {
    const scene = await setUp()
    await scene.scale(2)
    const patches = scene.patches.length
    assert.equal((await scaleSet(scene, 2)).status, 200)
    assert.equal(scene.patches.length, patches)
    assert.deepEqual(costs(scene), { p1: '-1' })
    await reported(scene, 'Steered')
    assert.deepEqual(
      scene.scaledDown.map(({ workload }) => workload),
      ['deployments/web'],
    )
  })

  test('in a rollout nothing is chosen: the Deployment controller moves replicas from one ReplicaSet to another', async () => {
    const scene = await setUp({}, { scaleProtection: {} })
    scene.template = { metadata: { labels: { app: 'web' } }, spec: { changed: true } }
    const response = await scaleSet(scene, 2)
    assert.equal(response.status, 200)
    assert.deepEqual([costs(scene), scene.patches, scene.scaledDown], [{}, [], []])
    assert.match(warnings(response), /replicasets\/web-2: 1 of these 3 go: p0, p1, p2"$/)
  })

  test('what the write of the Deployment could not choose, that of its ReplicaSet may: until then it is open', async () => {
    const scene = await setUp({ prefer: [{ by: 'UnschedulableNode' }] }, { scaleProtection: {} })
    scene.nodeCode = 500
    scene.pods.get('p2').status = { ...READY, containerStatuses: [{ restartCount: 7 }] }
    assert.match(warnings(await scene.scale(2)), /1 of these 3 go: p0, p1, p2/)
    // A ReplicaSet of its own is written once only.
    const plain = await setUp({ prefer: [{ by: 'UnschedulableNode' }] }, { scaleProtection: {} })
    plain.nodeCode = 500
    plain.pods.get('p2').status = { ...READY, containerStatuses: [{ restartCount: 7 }] }
    plain.owned = false
    assert.match(warnings(await scaleSet(plain, 2)), /replicasets\/web-2: 3 -> 2 replicas deletes 1 pod: p2"/)
  })

  test('a write of the Deployment that has not come this way is made up for, and called by its name', async () => {
    const scene = await setUp()
    assert.equal((await scaleSet(scene, 2)).status, 200)
    assert.deepEqual(costs(scene), { p1: '-1' })
    assert.equal((await reported(scene, 'Steered')).workload, 'deployments/web')
  })
})

test('without the feature gate PodDeletionCost nothing is chosen, and that is said', async () => {
  const scene = await setUp({}, { controllerManager: { podDeletionCost: false } })
  const response = await scene.scale(2)
  assert.match(warnings(response), /its victims are not chosen: kube-controller-manager ignores deletion costs/)
  assert.deepEqual([response.status, scene.patches], [200, []])
  await reported(scene, 'Unsteerable')
})
