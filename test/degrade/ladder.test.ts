// The ladder of degrade modes: each mode lets pass what the stricter one does, and more, also where only the body of a request says what
// it does. And what the gateway cannot find out is forwarded as it came, and counted.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, describe, test } from 'node:test'
import { DEGRADE_MODES, type DegradeMode } from '../../src/gateway/api/upstream-cluster/degrade-modes.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request, type Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import {
  reply,
  replyReview,
  type SeenRequest,
  type StubUpstream,
  startStub,
} from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
const JSON_TYPE = 'application/json'
const YAML = 'application/yaml'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const MERGE = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const APPLY = 'application/apply-patch+yaml'
const APPS = '/apis/apps/v1/namespaces/shop'
const BATCH = '/apis/batch/v1/namespaces/shop'
const PODS = '/api/v1/namespaces/shop/pods'
const NODE = '/api/v1/nodes/n1'
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1'
/** What upstream has. */
const REPLICAS = 4
const OLD_TAINT = { key: 'old', effect: 'NoExecute' }

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Row {
  readonly name: string
  readonly method: string
  readonly path: string
  /** '' = none is sent. */
  readonly contentType: string
  readonly body: Buffer
  /** What upstream answers to a dry run of it. */
  readonly after: object
  /** The strictest mode that lets it pass. */
  readonly strictest: DegradeMode
}

type Format = readonly [name: string, method: string, contentType: string, body: string | Buffer]

function field(number: number, content: string | Buffer): Buffer {
  const bytes = Buffer.from(content)
  assert.ok(bytes.length < 128)
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
}

function protobuf(apiVersion: string, kind: string, ...fields: Buffer[]): Buffer {
  const type = Buffer.concat([field(1, apiVersion), field(2, kind)])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, Buffer.concat(fields))])
}

function replicaFormats(isScale: boolean, replicas: number): Format[] {
  const [apiVersion, kind] = isScale ? ['autoscaling/v1', 'Scale'] : ['apps/v1', 'Deployment']
  const spec = { replicas }
  const object = JSON.stringify({ apiVersion, kind, metadata: { name: 'web' }, spec })
  const yaml = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: web\nspec:\n  replicas: ${replicas}\n`
  const merge = JSON.stringify({ spec })
  const patch = [{ op: 'replace', path: '/spec/replicas', value: replicas }]
  const copy = [{ op: 'copy', from: '/metadata/generation', path: '/spec/replicas' }]
  const raw = protobuf(apiVersion, kind, field(1, field(1, 'web')), field(2, Buffer.from([8, replicas])))
  return [
    ['PUT of JSON', 'PUT', JSON_TYPE, object],
    ['PUT without Content-Type', 'PUT', '', object],
    ['PUT of YAML', 'PUT', YAML, yaml],
    ['PUT of Protobuf', 'PUT', PROTOBUF, raw],
    ['merge patch', 'PATCH', MERGE, merge],
    ['strategic merge patch', 'PATCH', STRATEGIC, merge],
    ['JSON patch', 'PATCH', JSON_PATCH, JSON.stringify(patch)],
    ['JSON patch that copies', 'PATCH', JSON_PATCH, JSON.stringify(copy)],
    ['apply', 'PATCH', APPLY, yaml],
  ]
}

function* replicaRows(): Generator<Row> {
  const targets = [
    `${APPS}/deployments/web`,
    `${APPS}/deployments/web/scale`,
    `${APPS}/statefulsets/web/scale`,
    '/api/v1/namespaces/shop/replicationcontrollers/web/scale',
    '/apis/cluster.x-k8s.io/v1beta1/namespaces/shop/machinedeployments/web/scale',
    '/apis/example.com/v1/namespaces/shop/rollouts/web/scale',
  ]
  for (const path of targets)
    for (const replicas of [0, REPLICAS - 1, REPLICAS, REPLICAS + 5])
      for (const [name, method, contentType, body] of replicaFormats(path.endsWith('/scale'), replicas)) {
        // What a copy makes of them depends on the moment.
        const strictest = replicas < REPLICAS || name.endsWith('copies') ? 'Limited' : 'NoDisruption'
        const after = { spec: { replicas } }
        yield { name: `${name}: ${replicas}`, method, path, contentType, body: Buffer.from(body), after, strictest }
      }
}

function taintFormats(taints: readonly object[], effect: string): Format[] {
  const object = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec: { taints } })
  const yaml = `apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\nspec:\n  taints:\n  - key: new\n    effect: ${effect}\n`
  const spec = JSON.stringify({ spec: { taints } })
  const patch = JSON.stringify([{ op: 'add', path: '/spec/taints/-', value: taints.at(-1) }])
  const taint = Buffer.concat([field(1, 'new'), field(3, effect)])
  return [
    ['PUT of JSON', 'PUT', JSON_TYPE, object],
    ['PUT without Content-Type', 'PUT', '', object],
    ['PUT of YAML', 'PUT', YAML, yaml],
    ['PUT of Protobuf', 'PUT', PROTOBUF, protobuf('v1', 'Node', field(1, field(1, 'n1')), field(2, field(5, taint)))],
    ['merge patch', 'PATCH', MERGE, spec],
    ['merge patch with an escape', 'PATCH', MERGE, spec.replace('"No', '"\\u004eo')],
    ['strategic merge patch', 'PATCH', STRATEGIC, spec],
    ['JSON patch', 'PATCH', JSON_PATCH, patch],
    ['apply', 'PATCH', APPLY, yaml],
  ]
}

function* taintRows(): Generator<Row> {
  const cases: readonly (readonly [string, readonly { effect: string }[], DegradeMode])[] = [
    ['a new NoExecute taint', [OLD_TAINT, { key: 'new', effect: 'NoExecute' } as { effect: string }], 'Limited'],
    ['a NoSchedule taint', [OLD_TAINT, { key: 'new', effect: 'NoSchedule' } as { effect: string }], 'NoDisruption'],
    ['the taint it has', [OLD_TAINT], 'NoDisruption'],
  ]
  for (const [what, taints, strictest] of cases)
    for (const [name, method, contentType, body] of taintFormats(taints, taints.at(-1)?.effect ?? '')) {
      const after = { spec: { taints } }
      yield { name: `${name}: ${what}`, method, path: NODE, contentType, body: Buffer.from(body), after, strictest }
    }
}

/** Formats for objects that upstream has as CURRENT says. */
function endingFormats(path: string, kind: string, spec: object): Format[] {
  const [, , group = ''] = path.split('/')
  const apiVersion = path.startsWith('/apis') ? `${group}/v1` : 'v1'
  const object = JSON.stringify({ apiVersion, kind, metadata: { name: 'x' }, spec })
  const merge = JSON.stringify({ spec })
  const patch = Object.entries(spec).map(([field, value]) => ({
    op: 'add',
    path: `/spec/${field}`,
    value: value as unknown,
  }))
  return [
    ['PUT of JSON', 'PUT', JSON_TYPE, object],
    ['PUT without Content-Type', 'PUT', '', object],
    ['PUT of YAML', 'PUT', YAML, object],
    ['merge patch', 'PATCH', MERGE, merge],
    ['merge patch with escapes', 'PATCH', MERGE, merge.replaceAll('a', '\\u0061')],
    ['strategic merge patch', 'PATCH', STRATEGIC, merge],
    ['JSON patch', 'PATCH', JSON_PATCH, JSON.stringify(patch)],
    ['apply', 'PATCH', APPLY, object],
    ['CBOR', 'PATCH', 'application/apply-patch+cbor', merge],
  ]
}

/** What upstream has of each. */
const CURRENT: Readonly<Record<string, object>> = {
  [`${PODS}/web`]: { activeDeadlineSeconds: 60 },
  [`${BATCH}/jobs/x`]: { parallelism: 3, suspend: false },
  [`${APPS}/daemonsets/x`]: { template: { spec: { nodeSelector: { a: 'b' } } } },
  [`${APPS}/statefulsets/x`]: { replicas: REPLICAS, ordinals: { start: 2 } },
}

function* endingRows(): Generator<Row> {
  const template = (nodeSelector: object): object => ({ template: { spec: { nodeSelector } } })
  const cases: readonly (readonly [path: string, kind: string, spec: object, DegradeMode])[] = [
    [`${PODS}/web`, 'Pod', { activeDeadlineSeconds: 1 }, 'Limited'],
    [`${PODS}/web`, 'Pod', { activeDeadlineSeconds: 60 }, 'NoDisruption'],
    [`${BATCH}/jobs/x`, 'Job', { parallelism: 3, suspend: true }, 'Limited'],
    [`${BATCH}/jobs/x`, 'Job', { parallelism: 0, suspend: false }, 'Limited'],
    [`${BATCH}/jobs/x`, 'Job', { parallelism: 4, suspend: false }, 'NoDisruption'],
    [`${APPS}/daemonsets/x`, 'DaemonSet', template({ a: 'c' }), 'Limited'],
    [`${APPS}/daemonsets/x`, 'DaemonSet', template({}), 'NoDisruption'],
    [`${APPS}/statefulsets/x`, 'StatefulSet', { replicas: REPLICAS, ordinals: { start: 5 } }, 'Limited'],
    [`${APPS}/statefulsets/x`, 'StatefulSet', { replicas: REPLICAS, ordinals: { start: 2 } }, 'NoDisruption'],
  ]
  for (const [path, kind, spec, strictest] of cases) {
    const after = { spec }
    for (const [name, method, contentType, body] of endingFormats(path, kind, spec))
      yield {
        name: `${name}: ${JSON.stringify(spec)}`,
        method,
        path,
        contentType,
        body: Buffer.from(body),
        after,
        strictest,
      }
  }
  const copied = (field: string): string => JSON.stringify([{ op: 'copy', from: '/metadata/generation', path: field }])
  yield { ...row('Limited', 'PATCH', `${PODS}/web`, copied('/spec/activeDeadlineSeconds'), JSON_PATCH), after: {} }
  yield { ...row('Limited', 'PATCH', NODE, copied('/spec/taints/0/effect'), JSON_PATCH), after: {} }
  const deadline = protobuf('v1', 'Pod', field(1, field(1, 'web')), field(2, Buffer.from([5 * 8, 1])))
  const lowered = { spec: { activeDeadlineSeconds: 1 } }
  yield { ...row('Limited', 'PUT', `${PODS}/web`, deadline, PROTOBUF), after: lowered }
  yield row('NoDisruption', 'PATCH', `${PODS}/web?dryRun=All`, '{"spec":{"activeDeadlineSeconds":1}}', MERGE)
  yield row('NoDisruption', 'PATCH', `${BATCH}/cronjobs/x`, '{"spec":{"suspend":true}}', MERGE)
  yield row(
    'NoDisruption',
    'PATCH',
    `${APPS}/deployments/web`,
    '{"spec":{"template":{"spec":{"nodeName":"x"}}}}',
    MERGE,
  )
}

function row(strictest: DegradeMode, method: string, path: string, body: string | Buffer = '', type = JSON_TYPE): Row {
  const contentType = body.length === 0 ? '' : type
  return { name: body.toString(), method, path, contentType, body: Buffer.from(body), after: {}, strictest }
}

function* otherRows(): Generator<Row> {
  const pod = `${PODS}/web`
  const eviction = (more: object = {}): string =>
    JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web' }, ...more })
  const dryRun = { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] }
  yield row('Limited', 'DELETE', pod)
  yield row('Limited', 'DELETE', pod, '{"gracePeriodSeconds":0}')
  yield row('Limited', 'DELETE', pod, 'gracePeriodSeconds: 0\n', YAML)
  yield row('Limited', 'DELETE', PODS, '{"propagationPolicy":"Foreground"}')
  // The query of a deletion counts only where there is no body.
  yield row('Limited', 'DELETE', `${pod}?dryRun=All`, '{"gracePeriodSeconds":0}')
  yield row('NoDisruption', 'DELETE', `${pod}?dryRun=All`)
  yield row('NoDisruption', 'DELETE', pod, JSON.stringify(dryRun))
  yield row('NoDisruption', 'DELETE', PODS, JSON.stringify(dryRun))
  yield row('NoDisruption', 'DELETE', pod, 'apiVersion: v1\nkind: DeleteOptions\ndryRun: [All]\n', YAML)
  yield row('NoDisruption', 'DELETE', pod, protobuf('v1', 'DeleteOptions', field(5, 'All')), PROTOBUF)
  yield row('Limited', 'POST', `${pod}/eviction`, eviction())
  yield row('NoDisruption', 'POST', `${pod}/eviction`, eviction({ deleteOptions: { dryRun: ['All'] } }))
  yield row('NoDisruption', 'POST', PODS, '{"metadata":{"name":"new"}}')
  yield row('NoDisruption', 'PATCH', pod, '{"metadata":{"labels":{"a":"b"}}}', MERGE)
  yield row('NoDisruption', 'PATCH', `${APPS}/deployments/web/scale?dryRun=All`, '{"spec":{"replicas":0}}', MERGE)
  yield row('NoDisruption', 'PATCH', `${NODE}?dryRun=All`, '{"spec":{"taints":[{"effect":"NoExecute"}]}}', MERGE)
  yield row('NoDisruption', 'PUT', '/apis/coordination.k8s.io/v1/namespaces/shop/leases/l', '{}')
  yield row('ReadOnly', 'GET', PODS)
  yield row('ReadOnly', 'GET', `${pod}/log`)
  yield row('ReadOnly', 'GET', `${APPS}/deployments/web`)
  yield row('HeartbeatsOnly', 'PUT', LEASE, '{"spec":{"renewTime":"2027-01-01T00:00:00.000000Z"}}')
  yield row('HeartbeatsOnly', 'PATCH', `${NODE}/status`, '{"status":{"conditions":[]}}', STRATEGIC)
  yield row('HeartbeatsOnly', 'PATCH', `${pod}/status`, '{"status":{"phase":"Running"}}', STRATEGIC)
  yield row('HeartbeatsOnly', 'POST', '/api/v1/namespaces/shop/events', '{"reason":"x"}')
  yield row('Freeze', 'GET', '/version')
}

const ROWS: readonly Row[] = [...replicaRows(), ...taintRows(), ...endingRows(), ...otherRows()]

interface Arrived {
  readonly method: string
  readonly path: string
  readonly body: Buffer
  readonly user: string
}

interface Scene {
  readonly gateway: InProcessGateway
  readonly stub: StubUpstream
  /** All but what the gateway asks for itself. */
  readonly arrived: Arrived[]
  /** Method and path of what the client sent. */
  readonly sent: Set<string>
  /** Reads by the gateway, and the user that it impersonates: '' = none. */
  readonly reads: string[]
  /** The object after what is sent now. */
  after: object
  /** Instead of the usual answer to what the gateway asks; false = as usual. */
  answerOwn: (request: SeenRequest) => boolean
  send(row: Row): Promise<Response>
  unchecked(): Promise<number>
}

async function setUp(degrade: UpstreamClusterSpec['degrade']): Promise<Scene> {
  const stub = await startStub()
  const gateway = await startInProcess([clusterObject([stub], { clientCA, spec: { ...(degrade && { degrade }) } })])
  const session: ClientHttp2Session = h2Connect({
    port: gateway.port,
    serverName: 'prod.example.com',
    certificate: alice,
  })
  cleanups.push(stub.stop, gateway.stop, () => session.destroy())
  stub.answerAccess = (seen) => replyReview(seen, { allowed: true })
  const scene: Scene = {
    gateway,
    stub,
    arrived: [],
    sent: new Set(),
    reads: [],
    after: {},
    answerOwn: () => false,
    send({ method, path, contentType, body, after }) {
      scene.after = after
      scene.sent.add(`${method} ${path}`)
      const type = contentType === '' ? [] : ['content-type', contentType]
      const head = [':method', method, ':path', path, ...type]
      return h2Request(session, head, body.length === 0 ? undefined : body)
    },
    async unchecked() {
      const found = /^portcullis_degrade_unchecked_total\{[^}]*\} (\d+)$/m.exec(await gateway.metrics())
      return Number(found?.[1] ?? 0)
    },
  }
  stub.answer = (request) => receive(scene, request)
  return scene
}

function receive(scene: Scene, request: SeenRequest): void {
  const chunks: Buffer[] = []
  const { method, path } = request
  const user = request.values('impersonate-user').join()
  const isTrial = /[?&]dryRun=All$/.test(path) && !scene.sent.has(`${method} ${path}`)
  const isRead = method === 'GET' && request.values('accept').join() === JSON_TYPE
  request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.stream.on('end', () => {
    if (isRead) scene.reads.push(`${user} ${path}`)
    else if (!isTrial) scene.arrived.push({ method, path, body: Buffer.concat(chunks), user })
    if ((isRead || isTrial) && scene.answerOwn(request)) return
    if (isTrial) return reply(request, 200, JSON.stringify(scene.after))
    const spec = path.startsWith(NODE) ? { taints: [OLD_TAINT] } : (CURRENT[path] ?? { replicas: REPLICAS })
    reply(request, 200, JSON.stringify({ spec }))
  })
}

/** In order of ROWS. @throws when what passes does not arrive as it came, once, or what is refused arrives */
async function passing(mode: DegradeMode): Promise<Set<Row>> {
  const scene = await setUp({ mode, limited: { startQPS: 100_000, endQPS: 100_000 } })
  const passed = new Set<Row>()
  for (const row of ROWS) {
    scene.arrived.length = 0
    scene.sent.clear()
    const answer = await scene.send(row)
    const what = `${mode}: ${row.method} ${row.path} ${row.contentType} ${row.name}: ${answer.body}`
    const { method, path, body } = row
    if (answer.status === 200) passed.add(row)
    else assert.ok([403, 429, 503].includes(answer.status), what)
    assert.deepEqual(scene.arrived, answer.status === 200 ? [{ method, path, body, user: 'alice' }] : [], what)
  }
  assert.equal(await scene.unchecked(), 0, mode)
  return passed
}

describe('each mode lets pass what the stricter one does, and more', () => {
  const sets: { mode: DegradeMode; passed: Set<Row> }[] = []
  const text = (rows: readonly Row[]): string[] => rows.map((row) => `${row.method} ${row.path} ${row.name}`)

  for (const mode of DEGRADE_MODES) {
    test(mode, async () => {
      const passed = await passing(mode)
      const allowed = ROWS.filter((row) => DEGRADE_MODES.indexOf(row.strictest) >= DEGRADE_MODES.indexOf(mode))
      assert.deepEqual(text([...passed]), text(allowed))
      const looser = sets.at(-1)
      sets.push({ mode, passed })
      if (looser === undefined) return
      const more = [...passed].filter((row) => !looser.passed.has(row))
      assert.deepEqual(text(more), [], `${mode} lets pass what ${looser.mode} does not`)
      // What Limited refuses is above its rate.
      if (mode !== 'Limited') assert.ok(passed.size < looser.passed.size, `${mode} lets pass as much as ${looser.mode}`)
    })
  }

  test('Limited refuses what disrupts above its rate, in every format, and nothing else', async () => {
    const scene = await setUp({ mode: 'Limited', limited: { startQPS: 0.001, endQPS: 0.001 } })
    let refused = 0
    for (const row of ROWS) {
      const answer = await scene.send(row)
      if (answer.status === 200) continue
      assert.deepEqual([answer.status, row.strictest], [429, 'Limited'], `${row.method} ${row.path} ${row.name}`)
      assert.equal(valuesOf(answer.head, 'retry-after').length, 1)
      refused++
    }
    const disruptive = ROWS.filter(({ strictest }) => strictest === 'Limited').length
    assert.ok(refused > 0 && refused >= disruptive - 1, `${refused} of ${disruptive}`)
  })
})

const LOWERED = row('Limited', 'PATCH', `${APPS}/deployments/web/scale`, '{"spec":{"replicas":1}}', MERGE)
/** It may give the field up. */
const TRIED = row('Limited', 'PATCH', `${APPS}/deployments/web`, '{"metadata":{"name":"web"}}', APPLY)
const TAINTED = row('Limited', 'PATCH', NODE, '{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}', MERGE)
const SUSPENDED = row('Limited', 'PATCH', `${BATCH}/jobs/x`, '{"spec":{"suspend":true}}', MERGE)
const UNKNOWABLE = [LOWERED, TRIED, TAINTED, SUSPENDED]

const NO_DRY_RUN = JSON.stringify({
  kind: 'Status',
  message: 'admission webhook "a.example.com" does not support dry run',
})

describe('what an upstream does not say is forwarded unchecked, and counted', () => {
  /** With those that are not sent. */
  const answers: readonly (readonly [string, (request: SeenRequest) => void, ...Row[]])[] = [
    ['answers what is not JSON', (request) => reply(request, 200, '<html>')],
    ['answers nothing', (request) => reply(request, 200, '')],
    // A node of this shape has no taints, and a Job is not suspended.
    ['answers another shape', (request) => reply(request, 200, '{"spec":{"replicas":"4"}}'), TAINTED, SUSPENDED],
    ['forbids reads to gateway and caller', (request) => reply(request, 403, '{}'), TRIED, TAINTED, SUSPENDED],
    ['knows no dry run because of a webhook', (request) => reply(request, 400, NO_DRY_RUN), LOWERED],
    ['fails', (request) => reply(request, 500, '{}')],
    ['breaks off', (request) => request.stream.close(2)],
    // The others of a user's reads would be waiting for its turn all that time.
    ['does not answer in time', () => undefined, TRIED, SUSPENDED],
  ]
  for (const [what, answer, ...known] of answers) {
    test(`an upstream that ${what}`, async () => {
      const scene = await setUp({ mode: 'NoDisruption' })
      scene.answerOwn = (request) => {
        answer(request)
        return true
      }
      const rows = UNKNOWABLE.filter((row) => !known.includes(row))
      const statuses = await Promise.all(rows.map(async (row) => (await scene.send(row)).status))
      assert.deepEqual(
        statuses,
        rows.map(() => 200),
      )
      const textOf = ({ body }: { body: Buffer }): string => body.toString()
      assert.equal(scene.arrived.length, rows.length)
      assert.deepEqual(new Set(scene.arrived.map(textOf)), new Set(rows.map(textOf)), 'as they came')
      await waitFor('all to be counted', async () => (await scene.unchecked()) === rows.length)
    })
  }

  test('a slow answer is waited for', async () => {
    const scene = await setUp({ mode: 'NoDisruption' })
    const held: SeenRequest[] = []
    scene.answerOwn = (request) => held.push(request) > 0
    const answer = scene.send(LOWERED)
    const [request] = await waitFor('the read', () => held.length > 0 && held)
    assert.deepEqual(scene.arrived, [])
    assert.ok(request !== undefined)
    reply(request, 200, JSON.stringify({ spec: { replicas: REPLICAS } }))
    assert.equal((await answer).status, 403)
    assert.deepEqual([scene.arrived, await scene.unchecked()], [[], 0])
  })
})

test('replicas that the gateway may not read are read as the caller', async () => {
  const scene = await setUp({ mode: 'NoDisruption' })
  scene.answerOwn = (request) => {
    if (request.values('impersonate-user').length > 0) return false
    reply(request, 403, '{}')
    return true
  }
  const path = `${APPS}/deployments/web`
  for (const [replicas, status] of [
    [1, 403],
    [REPLICAS, 200],
    [REPLICAS + 1, 200],
  ] as const) {
    scene.reads.length = 0
    const body = JSON.stringify({ spec: { replicas } })
    assert.equal((await scene.send(row('Limited', 'PATCH', `${path}/scale`, body, MERGE))).status, status)
    assert.deepEqual(scene.reads, [` ${path}`, `alice ${path}`])
  }
  assert.equal(await scene.unchecked(), 0)
})

describe('what upstream refuses as a dry run', () => {
  const TESTED = JSON.stringify([
    { op: 'test', path: '/metadata/annotations/a', value: 'b' },
    { op: 'add', path: '/spec/taints', value: [{ key: 'x', effect: 'NoExecute' }] },
  ])
  const rows: readonly Row[] = [
    TRIED,
    TAINTED,
    SUSPENDED,
    row('Limited', 'PATCH', NODE, TESTED, JSON_PATCH),
    row('Limited', 'PATCH', `${PODS}/web`, '{"spec":{"activeDeadlineSeconds":1}}', MERGE),
  ]
  for (const code of [400, 403, 404, 409, 422]) {
    test(`${code} is the answer to the client, who may change what it depends on, and the write does not go on`, async () => {
      const scene = await setUp({ mode: 'NoDisruption' })
      const body = JSON.stringify({
        kind: 'Status',
        code,
        message: `a webhook that "does not support dry run" says ${code}`,
      })
      scene.answerOwn = (request) => {
        if (request.method === 'GET') return false
        reply(request, code, body)
        return true
      }
      for (const each of rows) {
        const answer = await scene.send(each)
        assert.deepEqual([answer.status, answer.body.toString()], [code, body], `${each.path} ${each.name}`)
      }
      assert.deepEqual([scene.arrived, await scene.unchecked()], [[], 0])
    })
  }

  test('in shadow mode it goes on, and is counted', async () => {
    const scene = await setUp({ mode: 'NoDisruption', shadow: true })
    scene.answerOwn = (request) => {
      if (request.method === 'GET') return false
      reply(request, 422, '{}')
      return true
    }
    for (const each of rows) assert.equal((await scene.send(each)).status, 200)
    assert.deepEqual([scene.arrived.length, await scene.unchecked()], [rows.length, rows.length])
  })

  test('a timeout of the client is not the dry run', async () => {
    const scene = await setUp({ mode: 'NoDisruption' })
    const asked: string[] = []
    scene.answerOwn = ({ method, path }) => {
      if (method !== 'GET') asked.push(path)
      return false
    }
    const taints = [{ key: 'x', effect: 'NoExecute' }]
    const body = JSON.stringify({ spec: { taints } })
    for (const query of ['timeout=1ms', 'a=b&t%69meout=1ms&fieldManager=c']) {
      const write = { ...row('Limited', 'PATCH', `${NODE}?${query}`, body, MERGE), after: { spec: { taints } } }
      assert.equal((await scene.send(write)).status, 403)
    }
    assert.deepEqual(asked, [`${NODE}?dryRun=All`, `${NODE}?a=b&fieldManager=c&dryRun=All`])
  })
})
