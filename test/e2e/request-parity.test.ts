// Single requests through the gateway get what they get direct: code, body and every header field, over HTTP/1.1 and HTTP/2.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { normalise } from '../harness/kubectl/parity.ts'

const NAMESPACE = '/api/v1/namespaces/default'
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const TABLE_PROTOBUF = `${PROTOBUF};as=Table;v=v1;g=meta.k8s.io`
const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const DISCOVERY = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
/** Large enough that kube-apiserver compresses a list of all of them (more than 128 KiB). */
const CONFIG_MAPS = 200
/** Differ from one request to the next wherever it goes, or speak of the connection. */
const OWN_FIELDS = new Set(['date', 'audit-id', 'connection', 'keep-alive', 'transfer-encoding'])

let cluster: TestCluster
let gateway: TestGateway
/** List version after the last write: with it, a list is the same whenever it is asked for. */
let version = ''

before(async () => {
  const tina = { token: 'tina-token', user: 'tina', uid: '7', groups: ['system:masters'] }
  cluster = await startCluster({ tokens: [tina] })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)] })
  const items = Array.from({ length: CONFIG_MAPS }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `map-${i}`, labels: { half: i % 2 ? 'odd' : 'even' } },
    data: { text: `jürgen ☃ ${i} `.repeat(50) },
  }))
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['--server-side'])
  version = (await cluster.request(`${NAMESPACE}/configmaps?limit=1`)).json().metadata.resourceVersion
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

interface Row {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly status: number
}

interface Answer {
  readonly status: number
  /** `name: value`, sorted. */
  readonly fields: readonly string[]
  readonly hasAuditId: boolean
  /** Unpacked, and without what is new for every request. */
  readonly text: string
}

/** `EXACT` stands for the parameters that make a list the same whenever it is asked for. */
const ROWS: readonly Row[] = [
  { path: '/version', status: 200 },
  { path: '/version/', status: 200 },
  { path: '/readyz', status: 200 },
  { path: '/healthz/ping', status: 200 },
  { path: '/healthz/ping', method: 'HEAD', status: 200 },
  { path: '/', status: 200 },
  { path: '/api', status: 200 },
  { path: '/api', headers: { accept: DISCOVERY }, status: 200 },
  { path: '/apis', headers: { accept: DISCOVERY }, status: 200 },
  { path: '/apis', headers: { accept: 'application/yaml' }, status: 200 },
  { path: '/apis/apps/v1', status: 200 },
  { path: '/openapi/v3', status: 200 },
  { path: '/openapi/v3/apis/apps/v1', headers: { 'accept-encoding': 'gzip' }, status: 200 },
  { path: '/.well-known/openid-configuration', status: 200 },
  { path: '/nothing', status: 404 },
  { path: '/api/v1/nothings', status: 404 },
  { path: '/api/v2/pods', status: 404 },
  { path: '/apis/apps/v1/namespaces/default/deployments/missing', status: 404 },
  { path: '/apis/nobody.example.com/v1/things', status: 404 },
  { path: `${NAMESPACE}/configmaps/map-1`, status: 200 },
  { path: `${NAMESPACE}/configmaps/map%2D1`, status: 200 },
  { path: `${NAMESPACE}/configmaps/map-1?pretty=true`, status: 200 },
  { path: `${NAMESPACE}/configmaps/map-1`, headers: { accept: PROTOBUF }, status: 200 },
  { path: `${NAMESPACE}/configmaps/map-1`, headers: { accept: TABLE }, status: 200 },
  { path: `${NAMESPACE}/configmaps/map-1`, headers: { accept: METADATA }, status: 200 },
  { path: `${NAMESPACE}/configmaps/map-1`, headers: { accept: 'text/html' }, status: 406 },
  { path: `${NAMESPACE}/configmaps/missing`, status: 404 },
  { path: `${NAMESPACE}/configmaps/missing`, headers: { accept: PROTOBUF }, status: 404 },
  { path: `${NAMESPACE}/configmaps?EXACT`, status: 200 },
  { path: `${NAMESPACE}/configmaps?EXACT`, headers: { 'accept-encoding': 'gzip' }, status: 200 },
  { path: `${NAMESPACE}/configmaps?EXACT`, headers: { accept: PROTOBUF, 'accept-encoding': 'gzip' }, status: 200 },
  { path: `${NAMESPACE}/configmaps?EXACT&limit=7`, status: 200 },
  { path: `${NAMESPACE}/configmaps?EXACT&labelSelector=half%3Dodd`, status: 200 },
  { path: `${NAMESPACE}/configmaps?EXACT&fieldSelector=metadata.name%3Dmap-3`, status: 200 },
  { path: `${NAMESPACE}/configmaps?EXACT`, headers: { accept: TABLE_PROTOBUF }, status: 406 },
  { path: `${NAMESPACE}/configmaps?EXACT`, headers: { accept: METADATA_LIST }, status: 200 },
  { path: `${NAMESPACE}/configmaps?labelSelector=!!`, status: 400 },
  { path: `${NAMESPACE}/configmaps?limit=2&continue=broken`, status: 400 },
  { path: `${NAMESPACE}/configmaps?resourceVersion=abc`, status: 400 },
  { path: `${NAMESPACE}/configmaps?resourceVersion=99999999&resourceVersionMatch=Exact`, status: 504 },
  { path: `${NAMESPACE}/configmaps?watch=1&resourceVersion=VERSION&timeoutSeconds=1`, status: 200 },
  { path: `${NAMESPACE}/configmaps?watch=1&resourceVersion=1&timeoutSeconds=1`, status: 200 },
  { path: `${NAMESPACE}/configmaps?watch=1&resourceVersion=0&timeoutSeconds=1&limit=1`, status: 200 },
  {
    path: `${NAMESPACE}/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1`,
    status: 200,
  },
  { path: `${NAMESPACE}/endpoints?EXACT`, status: 200 },
  { path: '/api/v1/componentstatuses/etcd-0', status: 200 },
  { path: '/api/v1/namespaces/default/pods/missing/log', status: 404 },
  { path: '/api/v1/namespaces/default/services/missing/proxy/', status: 404 },
  { path: `${NAMESPACE}/configmaps/map-1`, method: 'HEAD', status: 405 },
  { path: '/version', method: 'HEAD', status: 405 },
  { path: `${NAMESPACE}/configmaps`, method: 'OPTIONS', status: 405 },
  { path: '/version', method: 'OPTIONS', status: 405 },
  { path: `${NAMESPACE}/configmaps/map-1`, method: 'POST', body: '{}', status: 405 },
  { path: `${NAMESPACE}/configmaps`, method: 'POST', body: '{"metadata":{"name":"map-1"}}', status: 409 },
  { path: `${NAMESPACE}/configmaps`, method: 'POST', body: '{"metadata":{"name":"A B"}}', status: 422 },
  { path: `${NAMESPACE}/configmaps`, method: 'POST', body: '{"metadata":', status: 400 },
  { path: `${NAMESPACE}/configmaps`, method: 'POST', body: '{"kind":"Pod","apiVersion":"v1"}', status: 400 },
  {
    path: `${NAMESPACE}/configmaps?dryRun=All&fieldValidation=Warn`,
    method: 'POST',
    body: '{"metadata":{"name":"dry"},"colour":"red","taste":"sweet"}',
    status: 201,
  },
  {
    path: `${NAMESPACE}/configmaps`,
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: '{}',
    status: 415,
  },
  {
    path: `${NAMESPACE}/configmaps/map-2?dryRun=All`,
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: '{"data":{"text":"patched"}}',
    status: 200,
  },
  {
    path: `${NAMESPACE}/configmaps/map-2?fieldManager=a&dryRun=All`,
    method: 'PATCH',
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body: 'apiVersion: v1\nkind: ConfigMap\ndata: {text: other}\n',
    status: 409,
  },
  {
    path: `${NAMESPACE}/configmaps/map-2`,
    method: 'PUT',
    body: '{"metadata":{"name":"map-2","resourceVersion":"1"}}',
    status: 409,
  },
  { path: `${NAMESPACE}/configmaps/missing`, method: 'DELETE', status: 404 },
  { path: `${NAMESPACE}/configmaps?labelSelector=half%3Dnone`, method: 'DELETE', status: 200 },
  { path: DEPLOYMENTS, method: 'POST', body: '{"metadata":{"name":"x"},"spec":{}}', status: 422 },
  { path: '/apis/policy/v1beta1/podsecuritypolicies', status: 404 },
]

/** A way to the cluster: direct, or through the gateway. */
interface Way {
  readonly port: number
  readonly authority: string
  readonly serverName?: string
}

function ways(): [Way, Way] {
  const [apiserver] = cluster.apiservers
  const host = hostOf(cluster.name)
  return [
    { port: apiserver?.port ?? 0, authority: `127.0.0.1:${apiserver?.port}` },
    { port: gateway.port, authority: `${host}:${gateway.port}`, serverName: host },
  ]
}

function pathOf(row: Row): string {
  const exact = `resourceVersion=${version}&resourceVersionMatch=Exact`
  return row.path.replace('EXACT', exact).replace('VERSION', version)
}

function fieldsOf(row: Row): [string, string][] {
  const type = row.body === undefined ? {} : { 'content-type': 'application/json' }
  return Object.entries({ 'user-agent': 'parity', ...type, ...row.headers })
}

async function byHttp2(way: Way, user: Credentials, row: Row): Promise<Answer> {
  const session = h2Connect({ ...way, ...(user.cert !== undefined && { certificate: user.cert }) })
  const head = [
    ':method',
    row.method ?? 'GET',
    ':path',
    pathOf(row),
    ':authority',
    way.authority,
    ...fieldsOf(row).flat(),
  ]
  if (user.token !== undefined) head.push('authorization', `Bearer ${user.token}`)
  const body = row.body === undefined ? undefined : Buffer.from(row.body)
  const answer = await h2Request(session, head, body)
  session.destroy()
  assert.equal(answer.resetCode, 0)
  return answerOf(answer.status, answer.head, answer.body)
}

async function byHttp1(way: Way, user: Credentials, row: Row): Promise<Answer> {
  const body = row.body ?? ''
  const fields = fieldsOf(row).map(([name, value]) => `${name}: ${value}`)
  if (row.body !== undefined) fields.push(`content-length: ${Buffer.byteLength(body)}`)
  if (user.token !== undefined) fields.push(`authorization: Bearer ${user.token}`)
  const head = requestHead(`${row.method ?? 'GET'} ${pathOf(row)}`, fields, way.authority)
  const answer = await http1Request({ ...way, ...(user.cert !== undefined && { cert: user.cert }) }, head + body)
  assert.equal(answer.complete, true)
  // Chunked or not is each hop's own business: Go announces lengths up to other sizes over HTTP/2 than over HTTP/1.1.
  const fieldList = answer.head.filter(
    (_, i) => (i % 2 === 0 ? answer.head[i] : answer.head[i - 1]) !== 'content-length',
  )
  return answerOf(answer.status, fieldList, answer.body)
}

/** A kube-apiserver sends one shortly before a watch is over, if it comes to that in time. The one that ends a state has an annotation. */
const BOOKMARK =
  /^\{"type":"BOOKMARK","object":\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"resourceVersion":"VERSION"\}\}\}\n/gm

function answerOf(status: number, head: readonly string[], body: Buffer): Answer {
  const fields: string[] = []
  const names: string[] = []
  for (let i = 0; i + 1 < head.length; i += 2) {
    const name = head[i] ?? ''
    names.push(name)
    // An age in a table gets a digit longer between two requests: the length has to fit its own body.
    const fits = name === 'content-length' && body.length > 0 && Number(head[i + 1]) === body.length
    const value = fits ? 'of the body' : head[i + 1]
    if (!OWN_FIELDS.has(name) && !name.startsWith(':')) fields.push(`${name}: ${value}`)
  }
  const packed = fields.includes('content-encoding: gzip')
  const text = (packed ? gunzipSync(body) : body).toString('latin1')
  const events = normalise(text).replaceAll(BOOKMARK, '')
  return { status, fields: fields.sort(compare), hasAuditId: names.includes('audit-id'), text: events }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

describe('one request through the gateway', () => {
  const protocols = { 'HTTP/2': byHttp2, 'HTTP/1.1': byHttp1 }
  for (const [protocol, ask] of Object.entries(protocols)) {
    describe(protocol, () => {
      for (const row of ROWS) {
        const more = row.headers === undefined ? '' : ` ${JSON.stringify(row.headers)}`
        test(`${row.method ?? 'GET'} ${row.path}${more}: ${row.status}`, async () => {
          const users: Credentials[] = [cluster.admin, { token: 'tina-token' }, {}]
          const pair = (user: Credentials): Promise<Answer[]> => Promise.all(ways().map((way) => ask(way, user, row)))
          const [admin, tina, anonymous] = await Promise.all(users.map(pair))
          for (const [direct, through] of [admin ?? [], tina ?? []]) {
            assert.deepEqual(through, direct)
            assert.equal(direct?.status, row.status)
          }
          assert.deepEqual(anonymous?.[1], anonymous?.[0])
        })
      }
    })
  }

  test('a large list comes compressed, as upstream sent it', async () => {
    const row = { path: `${NAMESPACE}/configmaps`, headers: { 'accept-encoding': 'gzip' }, status: 200 }
    const { fields } = await byHttp2(ways()[1], cluster.admin, row)
    assert.ok(fields.includes('content-encoding: gzip'), fields.join('\n'))
  })
})
