// The check of writes of replicas on a real kube-apiserver and kube-controller-manager: every way in which clients write them is seen, read
// right and arrives, a number that PodProtectors do not allow is refused, one that a generated protector follows is not, and the pods that
// the answer names are those that go.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import type { UpstreamClusterSpec } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { openEnvelope, sealEnvelope } from '../../../src/gateway/core/request/write-envelope.ts'
import { ProtobufWriter } from '../../../src/kit/core/text/protobuf-writer.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { grant } from '../../harness/clusters/protection-rights.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { gatewayCA } from '../../harness/pki.ts'
import { waitFor } from '../../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

const NAMESPACE = 'default'
const WEB = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/web`
const PROTECTORS = `/apis/podseidon.kubewharf.io/v1alpha1/namespaces/${NAMESPACE}/podprotectors`
const MERGE = 'application/merge-patch+json'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const REPLICAS = 24

let cluster: TestCluster
let gateway: TestGateway
let kubeconfig = ''
let dir = ''

before(async () => {
  cluster = await startCluster({ name: 'prod', controllerManager: true, scheduler: true, kwok: true, nodes: 2 })
  dir = mkdtempSync(join(tmpdir(), 'portcullis-scale-'))
  const generator = join(dir, 'generator.yaml')
  writeFileSync(generator, stringify({ kinds: [{ kind: 'Deployment' }] }))
  gateway = await startGateway({
    clusters: [],
    source: [
      '--source=kubernetes',
      '--control-listen=127.0.0.1:CONTROL',
      `--kubeconfig=${cluster.adminKubeconfig}`,
      `--protection-generator-config=${generator}`,
    ],
  })
  for (const file of ['protection-worker.yaml', 'scale-worker.yaml']) await grant(cluster, file)
  const spec: Partial<UpstreamClusterSpec> = { podProtection: {}, scaleProtection: {} }
  await cluster.apply(JSON.stringify(upstreamClusterFor(cluster, { spec })))
  kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin, { path: true })
  await cluster.apply(manifest(REPLICAS))
  await waitForProtector('deployment-web', ({ spec, status }) => {
    return spec.minAvailable === 18 && status?.summary?.aggregatedAvailableReplicas === REPLICAS
  })
  await waitFor('the gateway to lead to the cluster', async () => (await send('GET', WEB)).status === 200)
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  if (dir !== '') rmSync(dir, { recursive: true, force: true })
})

function manifest(replicas: number): string {
  const labels = { app: 'web' }
  const containers = [{ name: 'main', image: 'none' }]
  return stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers, terminationGracePeriodSeconds: 0 } },
    },
  })
}

interface Answer {
  readonly status: number
  readonly warning: string
  readonly body: Buffer
}

/** As the administrator of the cluster, through the gateway. @param type '' = no Content-Type */
function send(method: string, path: string, body: string | Buffer = '', type = '', accept = ''): Promise<Answer> {
  const { cert } = cluster.admin
  const bytes = Buffer.from(body)
  const headers = {
    ...(type !== '' && { 'content-type': type }),
    ...(accept !== '' && { accept }),
    ...(bytes.length > 0 && { 'content-length': bytes.length }),
  }
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(
      {
        host: '127.0.0.1',
        port: gateway.port,
        path: `/clusters/prod${path}`,
        method,
        headers,
        ca: gatewayCA().certPem,
        cert: cert.certPem,
        key: cert.keyPem,
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const warning = String(response.headers['warning'] ?? '')
          resolve({ status: response.statusCode ?? 0, warning, body: Buffer.concat(chunks) })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(bytes)
  })
}

/** From upstream itself. */
async function read(path: string): Promise<Json> {
  const answer = await cluster.request(path)
  return answer.status === 200 ? answer.json() : undefined
}

async function replicas(): Promise<number> {
  return (await read(WEB)).spec.replicas
}

function waitForProtector(name: string, is: (protector: Json) => boolean): Promise<Json> {
  return waitFor(`PodProtector ${name}`, async () => {
    const protector = await read(`${PROTECTORS}/${name}`)
    if (protector !== undefined && is(protector)) return protector
    throw new Error(JSON.stringify({ spec: protector?.spec, summary: protector?.status?.summary }))
  })
}

async function kubectl(args: readonly string[], stdin = ''): Promise<{ status: number; warning: string }> {
  const { code, stderr } = await cluster.kubectl(args, { kubeconfig, ...(stdin !== '' && { stdin }) })
  return { status: code === 0 ? 200 : 403, warning: stderr }
}

/** Writes the number in one way. */
type Way = (to: number) => Promise<{ readonly status: number; readonly warning: string }>

async function objectWith(to: number, path = WEB): Promise<Json> {
  const object = await read(path)
  return { ...object, spec: { ...object.spec, replicas: to } }
}

function scaleObject(to: number): Json {
  const metadata = { name: 'web', namespace: NAMESPACE }
  return { kind: 'Scale', apiVersion: 'autoscaling/v1', metadata, spec: { replicas: to } }
}

/** What upstream has, in protocol buffers, with another number: a field that comes again is merged. */
async function protobufWith(to: number, path: string): Promise<Buffer> {
  const { status, body } = await send('GET', path, '', '', PROTOBUF)
  assert.equal(status, 200)
  const spec = new ProtobufWriter()
  spec.int64(1, to)
  const more = new ProtobufWriter()
  more.bytes(2, spec.finish())
  return sealEnvelope(openEnvelope(body), more.finish())
}

const SCALE = `${WEB}/scale`
const patchOf = (to: number): string => JSON.stringify({ spec: { replicas: to } })
const replace = (to: number): object => ({ op: 'replace', path: '/spec/replicas', value: to })

const WAYS: Readonly<Record<string, Way>> = {
  'kubectl scale': (to) => kubectl(['scale', '-n', NAMESPACE, 'deployment/web', `--replicas=${to}`]),
  'kubectl apply': (to) => kubectl(['apply', '-f', '-'], manifest(to)),
  'server-side apply': (to) => kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], manifest(to)),
  'kubectl patch, strategic': (to) => kubectl(['patch', '-n', NAMESPACE, 'deployment/web', '-p', patchOf(to)]),
  'HPA: PUT of /scale without Content-Type': async (to) => send('PUT', SCALE, JSON.stringify(scaleObject(to))),
  'PUT of /scale, JSON': async (to) => send('PUT', SCALE, JSON.stringify(scaleObject(to)), 'application/json'),
  'PUT of /scale, Protobuf': async (to) => send('PUT', SCALE, await protobufWith(to, SCALE), PROTOBUF),
  'PUT of the object, JSON': async (to) => send('PUT', WEB, JSON.stringify(await objectWith(to)), 'application/json'),
  'PUT of the object, YAML': async (to) => send('PUT', WEB, stringify(await objectWith(to)), 'application/yaml'),
  'PUT of the object, Protobuf': async (to) => send('PUT', WEB, await protobufWith(to, WEB), PROTOBUF),
  'merge patch of /scale': (to) => send('PATCH', SCALE, patchOf(to), MERGE),
  'JSON patch': (to) => send('PATCH', WEB, JSON.stringify([replace(to)]), 'application/json-patch+json'),
  'JSON patch with a test': async (to) => {
    const test = { op: 'test', path: '/spec/replicas', value: await replicas() }
    return send('PATCH', SCALE, JSON.stringify([test, replace(to)]), 'application/json-patch+json')
  },
  'merge patch that gives the field twice': (to) =>
    send('PATCH', WEB, `{"spec":{"replicas":1},"spec":{"replicas":${to}}}`, MERGE),
}

test('every way to write replicas is seen, read right, and arrives', async () => {
  let from = REPLICAS
  for (const [name, way] of Object.entries(WAYS)) {
    const to = from - 1
    // 409: the Deployment controller has written its status since the object was read.
    const { warning } = await waitFor(`${name} to be taken`, async () => {
      const answer = await way(to)
      if (answer.status === 409) return undefined
      assert.ok(answer.status < 300, `${name}: ${answer.status} ${answer.warning}`)
      return answer
    })
    assert.match(warning, new RegExp(`deployments/web: ${from} -> ${to} replicas deletes \\d+ pods?`), name)
    assert.equal(await replicas(), to, name)
    from = to
  }
  const metrics = await gateway.metrics()
  const rows = [...metrics.matchAll(/^portcullis_scale_writes_total\{(.*)\} (\d+)$/gm)].map(([row]) => row)
  assert.deepEqual(
    rows.filter((row) => !/outcome="(warned|allowed)"/.test(row)),
    [],
  )
})

test('the pods that are named are those that go', async () => {
  const from = await replicas()
  const minAvailable = from - Math.ceil(from / 4)
  await waitForProtector('deployment-web', ({ spec, status }) => {
    return spec.minAvailable === minAvailable && status?.summary?.aggregatedAvailableReplicas === from
  })
  const list = (await read(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app=web`)).items
  const chosen: string[] = list.slice(0, 4).map(({ metadata }: Json) => metadata.name)
  const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-100' }
  for (const name of chosen) {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}`
    await cluster.request(path, {
      method: 'PATCH',
      headers: { 'content-type': MERGE },
      body: { metadata: { annotations } },
    })
  }
  // Fewer than the protector requires now, and not fewer than it will require then.
  assert.ok(from - 4 < minAvailable)
  const { status, warning } = await send('PATCH', SCALE, patchOf(from - 4), MERGE)
  assert.equal(status, 200)
  for (const name of chosen) assert.ok(warning.includes(name), `${name} is not in ${warning}`)
  await waitFor('the pods to go', async () => {
    const left = (await read(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app=web`)).items
    return left.length === from - 4 && left.every(({ metadata }: Json) => !chosen.includes(metadata.name))
  })
})

test('what a PodProtector does not allow is refused in every way, until the workload says otherwise', async () => {
  const from = await replicas()
  const body = {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name: 'guard', namespace: NAMESPACE },
    spec: { minAvailable: from - 1, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } } },
  }
  assert.equal((await cluster.request(PROTECTORS, { method: 'POST', body })).status, 201)
  await waitForProtector('guard', ({ status }) => status?.summary?.aggregatedAvailableReplicas === from)
  for (const [name, way] of Object.entries(WAYS)) {
    const { status } = await waitFor(`${name} to be refused`, async () => {
      const answer = await way(from - 3)
      return answer.status === 409 ? undefined : answer
    })
    assert.equal(status, 403, name)
    assert.equal(await replicas(), from, name)
  }
  const refused = await send('PATCH', SCALE, patchOf(from - 3), MERGE)
  const { reason, message, details } = JSON.parse(refused.body.toString())
  assert.equal(reason, 'Forbidden')
  assert.match(message, new RegExp(`PodProtector default/guard requires ${from - 1}, counts ${from}, and 3 would go`))
  assert.equal(details.causes.length, 1)
  const { warning } = await kubectl(['scale', '-n', NAMESPACE, 'deployment/web', `--replicas=${from - 3}`])
  assert.match(warning, /^Error from server \(Forbidden\): deployments\/web/m)
  // One is spared.
  assert.equal((await send('PATCH', SCALE, patchOf(from - 1), MERGE)).status, 200)
  const annotations = { 'scale.portcullis.io/allow-until': new Date(Date.now() + 600_000).toISOString() }
  const annotated = await send('PATCH', WEB, JSON.stringify({ metadata: { annotations } }), MERGE)
  assert.deepEqual([annotated.status, annotated.warning], [200, ''])
  assert.equal((await send('PATCH', SCALE, patchOf(from - 4), MERGE)).status, 200)
  assert.equal(await replicas(), from - 4)
})
