// The audit log under a policy is that of a real kube-apiserver under the same one: each request is sent direct and through the gateway, and
// both tell the same of it, stage by stage. What cannot be the same stands with its row, and in docs/limitations.md.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeRequest } from '../harness/clusters/kube-request.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

/** One for both: kube-apiserver does not read its policy again. */
const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [Panic]
rules:
- { level: None, users: [portcullis] }
- { level: None, nonResourceURLs: ['/healthz*', '/livez'] }
- { level: Metadata, nonResourceURLs: ['/version', '/api*'], omitStages: [RequestReceived] }
- { level: None, userGroups: [unseen] }
- { level: Request, users: [rita] }
- { level: RequestResponse, users: [wanda], verbs: [watch, get], omitStages: [ResponseStarted] }
- { level: None, verbs: [get], resources: [{ group: '', resources: [configmaps], resourceNames: [quiet] }] }
- { level: Metadata, resources: [{ group: '', resources: [configmaps], resourceNames: [meta] }] }
- { level: RequestResponse, resources: [{ group: '', resources: ['pods/*'] }], omitManagedFields: true }
- { level: Metadata, resources: [{ group: '*', resources: ['*/scale'] }] }
- { level: Request, resources: [{ group: apps, resources: [deployments/status] }] }
- { level: RequestResponse, namespaces: [''], resources: [{ group: rbac.authorization.k8s.io }], omitManagedFields: true }
- { level: RequestResponse, resources: [{ group: '', resources: [configmaps, secrets] }], omitManagedFields: true }
- { level: RequestResponse, resources: [{ group: apps, resources: ['*'] }, { group: authorization.k8s.io }, { group: policy }] }
- { level: Request, resources: [{ group: '', resources: [services, namespaces] }], omitStages: [RequestReceived, ResponseComplete] }
- { level: Metadata }
`

const TOKENS = [
  { token: 'tina-token', user: 'tina', uid: '7', groups: ['system:masters'] },
  { token: 'rita-token', user: 'rita', uid: '8', groups: ['system:masters', 'readers'] },
  { token: 'wanda-token', user: 'wanda', uid: '9', groups: ['system:masters'] },
  { token: 'nora-token', user: 'nora', uid: '10' },
  { token: 'uma-token', user: 'uma', uid: '11', groups: ['system:masters', 'unseen'] },
]

interface Row {
  readonly path: string
  /** Default GET. */
  readonly method?: string
  /** Default tina, who may do everything. */
  readonly user?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly raw?: Buffer | string
  /** The answer's code; of both. */
  readonly code: number
  /** What differs: fields by their stage, or the stages themselves. As docs/limitations.md has it. */
  readonly differs?: readonly string[]
}

// biome-ignore lint/suspicious/noExplicitAny: events hold objects of every kind
type Event = Record<string, any>

/** SIDE in paths and bodies is the side's own namespace, or a part of a name. */
const SIDES = { direct: 'side-d', through: 'side-t' } as const
type Side = keyof typeof SIDES

const CORE = '/api/v1/namespaces/SIDE'
const MAPS = `${CORE}/configmaps`
const APPS = '/apis/apps/v1/namespaces/SIDE'
const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const MERGE = { 'content-type': 'application/merge-patch+json' }
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' }
const APPLY = { 'content-type': 'application/apply-patch+yaml' }
const LARGE = 'x'.repeat(200_000)

function map(name: string, data: object = { a: 'b' }, metadata: object = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data }
}

function workload(name: string): object {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const spec = { replicas: 1, selector: { matchLabels: labels }, template }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec }
}

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
}

/** A ConfigMap with a name, in runtime.Unknown. */
const PROTOBUF_MAP = Buffer.concat([
  Buffer.from('k8s\0'),
  field(1, Buffer.concat([field(1, 'v1'), field(2, 'ConfigMap')])),
  field(2, field(1, field(1, 'protobuf'))),
])

/** Shorter than 128 bytes. */
function field(number: number, content: Buffer | string): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), Buffer.from(content)])
}

const ROWS: readonly Row[] = [
  // Not resources.
  { path: '/healthz', code: 200 },
  { path: '/healthz/ping', code: 200 },
  { path: '/livez', code: 200 },
  { path: '/readyz', code: 200 },
  { path: '/version', code: 200 },
  { path: '/api', code: 200 },
  { path: '/apis/apps/v1', code: 200 },
  { path: '/nothing?a=b%20c', code: 404 },
  { path: '/metrics', user: 'nora', code: 403 },
  { path: '/api/v1/nothings', code: 404 },
  // Who.
  { path: `${MAPS}`, user: 'uma', code: 200 },
  { path: `${MAPS}`, user: 'nora', code: 403 },
  { path: `${MAPS}`, user: 'nobody', code: 401 },
  { path: `${MAPS}`, user: '', code: 403 },
  {
    path: `${MAPS}`,
    headers: { 'impersonate-user': 'nora', 'impersonate-group': 'friends' },
    code: 403,
    differs: ['ResponseComplete.authenticationMetadata'],
  },
  { path: `${MAPS}`, headers: { 'impersonate-user': 'rita', 'impersonate-group': 'system:masters' }, code: 200 },
  {
    path: `${MAPS}`,
    user: 'nora',
    headers: { 'impersonate-user': 'tina' },
    code: 403,
    differs: ['ResponseComplete.responseStatus', 'ResponseComplete.responseObject'],
  },
  { path: '/api/v1/nodes', headers: { 'impersonate-user': 'system:serviceaccount:SIDE:default' }, code: 403 },
  { path: `${MAPS}`, headers: { 'user-agent': 'u'.repeat(1500) }, code: 200 },
  // Config maps: RequestResponse.
  { path: MAPS, method: 'POST', body: map('one'), code: 201 },
  { path: MAPS, method: 'POST', body: map('one'), code: 409 },
  { path: MAPS, method: 'POST', body: map('A B'), code: 422 },
  { path: MAPS, method: 'POST', raw: '{"metadata":', code: 400 },
  {
    path: MAPS,
    method: 'POST',
    user: 'nora',
    body: map('hers'),
    code: 403,
    differs: ['ResponseComplete.objectRef', 'ResponseComplete.requestObject'],
  },
  {
    path: MAPS,
    method: 'POST',
    raw: PROTOBUF_MAP,
    headers: { 'content-type': PROTOBUF },
    code: 201,
    differs: ['ResponseComplete.objectRef', 'ResponseComplete.requestObject'],
  },
  { path: MAPS, method: 'POST', raw: '{}', headers: { 'content-type': 'text/plain' }, code: 415 },
  { path: `${MAPS}?dryRun=All`, method: 'POST', body: map('dry'), code: 201 },
  { path: MAPS, method: 'POST', body: { metadata: { generateName: 'made-' } }, code: 201 },
  {
    path: MAPS,
    method: 'POST',
    raw: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\n',
    headers: { 'content-type': 'application/yaml' },
    code: 201,
    differs: ['ResponseComplete.objectRef', 'ResponseComplete.requestObject'],
  },
  { path: `${MAPS}/one`, code: 200 },
  { path: `${MAPS}/missing`, code: 404 },
  { path: `${MAPS}/one`, headers: { accept: PROTOBUF }, code: 200, differs: ['ResponseComplete.responseObject'] },
  { path: `${MAPS}/one`, headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }, code: 200 },
  {
    path: `${MAPS}/one`,
    headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
    code: 200,
  },
  {
    path: `${MAPS}/one`,
    headers: { accept: 'text/html' },
    code: 406,
    differs: ['ResponseComplete.responseStatus', 'ResponseComplete.responseObject'],
  },
  { path: `${MAPS}?fieldSelector=metadata.name%3Done`, code: 200 },
  {
    path: `${MAPS}?fieldSelector=metadata.name%3Done`,
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    code: 200,
  },
  { path: `${MAPS}?resourceVersion=abc`, code: 400 },
  { path: `${MAPS}/one`, method: 'PUT', body: map('one', { a: 'c' }), code: 200 },
  { path: `${MAPS}/one`, method: 'PUT', body: map('one', { a: 'c' }, { resourceVersion: '1' }), code: 409 },
  { path: `${MAPS}/one`, method: 'PUT', body: map('two'), code: 400 },
  { path: `${MAPS}/one`, method: 'PATCH', headers: MERGE, raw: '{"data":{"b":"1"}}', code: 200 },
  {
    path: `${MAPS}/one`,
    method: 'PATCH',
    headers: JSON_PATCH,
    raw: '[{"op":"add","path":"/data/c","value":"2"}]',
    code: 200,
  },
  {
    path: `${MAPS}/one`,
    method: 'PATCH',
    headers: JSON_PATCH,
    raw: '[{"op":"remove","path":"/data/none"}]',
    code: 422,
  },
  { path: `${MAPS}/one`, method: 'PATCH', headers: STRATEGIC, raw: '{"data":{"d":"3"}}', code: 200 },
  {
    path: `${MAPS}/one?fieldManager=f&force=true`,
    method: 'PATCH',
    headers: APPLY,
    body: map('one', { e: '4' }),
    code: 200,
  },
  {
    path: `${MAPS}/large?fieldManager=f`,
    method: 'PATCH',
    headers: APPLY,
    raw: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\n',
    code: 201,
    differs: ['stages'],
  },
  { path: `${MAPS}/meta`, method: 'PATCH', headers: MERGE, raw: '{"data":{"b":"1"}}', code: 404 },
  { path: MAPS, method: 'POST', body: map('meta'), code: 201 },
  { path: `${MAPS}/meta`, method: 'PUT', body: map('meta'), code: 200 },
  { path: `${MAPS}/meta`, code: 200 },
  { path: `${MAPS}/quiet`, code: 404 },
  { path: MAPS, method: 'POST', body: map('large', { x: LARGE }), code: 409 },
  { path: `${MAPS}/large`, method: 'PUT', body: map('large', { x: LARGE }), code: 200 },
  { path: `${MAPS}/large`, headers: { 'accept-encoding': 'gzip' }, code: 200 },
  // Watches, and those whose stage is omitted.
  { path: `${MAPS}?watch=1&timeoutSeconds=1`, code: 200 },
  { path: `${MAPS}?watch=1&timeoutSeconds=1`, user: 'wanda', code: 200 },
  { path: `${MAPS}?watch=1&resourceVersion=abc`, code: 500 },
  { path: `/api/v1/watch/namespaces/SIDE/configmaps/one?timeoutSeconds=1`, user: 'rita', code: 200 },
  // Level Request.
  { path: MAPS, method: 'POST', user: 'rita', body: map('by-rita'), code: 201 },
  { path: `${MAPS}/by-rita`, method: 'DELETE', user: 'rita', code: 200 },
  {
    path: `${MAPS}/one`,
    method: 'DELETE',
    user: 'rita',
    body: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 },
    code: 200,
    differs: ['ResponseComplete.requestObject'],
  },
  { path: `${MAPS}/one`, method: 'DELETE', code: 404 },
  // Secrets are redacted here.
  {
    path: `${CORE}/secrets`,
    method: 'POST',
    body: { metadata: { name: 's' }, data: { k: 'cGxhbnRlZA==' } },
    code: 201,
    differs: ['ResponseComplete.requestObject', 'ResponseComplete.responseObject'],
  },
  // Subresources.
  { path: `${CORE}/pods`, method: 'POST', body: POD, code: 201, differs: ['ResponseComplete.annotations'] },
  { path: `${CORE}/pods/p`, code: 200 },
  { path: `${CORE}/pods/p/log`, code: 204 },
  { path: `${CORE}/pods/none/log`, code: 404 },
  { path: `${CORE}/pods/p/status`, method: 'PATCH', headers: MERGE, raw: '{"status":{"message":"m"}}', code: 200 },
  {
    path: `${CORE}/pods/p/binding`,
    method: 'POST',
    body: { kind: 'Binding', apiVersion: 'v1', metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } },
    code: 201,
  },
  {
    path: `${CORE}/pods/p/eviction`,
    method: 'POST',
    body: {
      kind: 'Eviction',
      apiVersion: 'policy/v1',
      metadata: { name: 'p' },
      deleteOptions: { gracePeriodSeconds: 0 },
    },
    code: 201,
  },
  { path: `${CORE}/pods/none/proxy/`, code: 404 },
  { path: `${APPS}/deployments`, method: 'POST', body: workload('d'), code: 201 },
  { path: `${APPS}/deployments/d/scale`, code: 200 },
  {
    path: `${APPS}/deployments/d/scale`,
    method: 'PUT',
    body: {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'd', namespace: 'SIDE' },
      spec: { replicas: 2 },
    },
    code: 200,
  },
  { path: `${APPS}/deployments/d/scale`, method: 'PATCH', headers: MERGE, raw: '{"spec":{"replicas":0}}', code: 200 },
  { path: `${APPS}/deployments/d/status`, code: 200 },
  {
    path: `${APPS}/deployments/d`,
    method: 'DELETE',
    body: { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' },
    code: 200,
    differs: ['ResponseComplete.requestObject'],
  },
  {
    path: `${CORE}/serviceaccounts/default/token`,
    method: 'POST',
    body: { spec: { audiences: ['a'] } },
    code: 201,
    differs: ['ResponseComplete.annotations'],
  },
  // An object without a namespace, and stages that are omitted.
  { path: ROLES, method: 'POST', body: { metadata: { name: 'role-SIDE' }, rules: [] }, code: 201 },
  { path: `${ROLES}/role-SIDE`, code: 200 },
  { path: `${ROLES}/role-SIDE`, method: 'DELETE', code: 200 },
  {
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    method: 'POST',
    body: { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } },
    code: 201,
  },
  { path: '/api/v1/namespaces/SIDE', code: 200 },
  {
    path: `${CORE}/services`,
    method: 'POST',
    body: { metadata: { name: 's' }, spec: { ports: [{ port: 1 }] } },
    code: 201,
  },
  { path: `${CORE}/services/s`, code: 200 },
  { path: `${CORE}/services/s`, method: 'DELETE', code: 200 },
  { path: `${CORE}/endpoints?limit=1`, code: 200, differs: ['ResponseComplete.annotations'] },
  { path: `${MAPS}?labelSelector=none%3Dnone`, method: 'DELETE', code: 200 },
  {
    path: MAPS,
    method: 'DELETE',
    body: { kind: 'DeleteOptions', apiVersion: 'v1' },
    code: 200,
    differs: ['ResponseComplete.requestObject'],
  },
  { path: MAPS, method: 'OPTIONS', code: 405 },
]

const folder = mkdtempSync(join(tmpdir(), 'audit-parity-'))
const policyFile = join(folder, 'policy.yaml')
const logs: Readonly<Record<Side, string>> = {
  direct: join(folder, 'direct.log'),
  through: join(folder, 'through.log'),
}
let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  writeFileSync(policyFile, POLICY)
  const extraApiserverFlags = [`--audit-policy-file=${policyFile}`, `--audit-log-path=${logs.direct}`]
  cluster = await startCluster({ tokens: TOKENS, extraApiserverFlags })
  const args = [
    `--audit-policy-file=${policyFile}`,
    `--audit-log-path=${logs.through}`,
    '--audit-max-body-bytes=1048576',
  ]
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)], args })
  for (const name of Object.values(SIDES)) {
    const body = { metadata: { name } }
    assert.equal((await cluster.request('/api/v1/namespaces', { method: 'POST', body })).status, 201)
    const account = `/api/v1/namespaces/${name}/serviceaccounts`
    const created = await cluster.request(account, { method: 'POST', body: { metadata: { name: 'default' } } })
    assert.ok(created.status === 201 || created.status === 409)
  }
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  rmSync(folder, { recursive: true })
})

async function send(row: Row, index: number, side: Side): Promise<number> {
  const own = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll('SIDE', SIDES[side]))
  const { user = 'tina', raw } = row
  const credentials: Credentials | undefined = user === '' ? undefined : { token: `${user}-token` }
  const where =
    side === 'direct'
      ? { server: cluster.apiservers[0]?.url ?? '', ca: cluster.ca.certPem }
      : { server: `https://127.0.0.1:${gateway.port}`, ca: gatewayCA().certPem, serverName: hostOf(cluster.name) }
  const answer = await kubeRequest({
    ...where,
    ...(credentials !== undefined && { user: credentials }),
    method: row.method ?? 'GET',
    path: own(row.path),
    headers: { 'user-agent': 'parity', ...own(row.headers ?? {}), 'audit-id': auditId(index, side) },
    ...(row.body !== undefined && { body: own(row.body) }),
    ...(raw !== undefined && { raw }),
  })
  return answer.status
}

function auditId(index: number, side: Side): string {
  return `parity-${side}-${index}`
}

function eventsOf(side: Side): Map<string, Event[]> {
  const found = new Map<string, Event[]>()
  for (const line of readFileSync(logs[side], 'utf8').split('\n').slice(0, -1)) {
    const event: Event = JSON.parse(line)
    found.set(event['auditID'], [...(found.get(event['auditID']) ?? []), event])
  }
  return found
}

/** Without what is new for every request or every object. */
function comparable(event: Event, side: Side): Event {
  const {
    auditID: _id,
    requestReceivedTimestamp: _received,
    stageTimestamp: _stage,
    annotations = {},
    ...rest
  } = JSON.parse(
    JSON.stringify(event).replaceAll(SIDES[side], 'SIDE').replace(GENERATED, '$1RANDOM'),
    (key, value) => OWN.get(key)?.(value) ?? value,
  )
  const own = Object.entries(annotations).filter(
    ([name]) => !/^(authorization\.k8s|portcullis|apiserver\.latency\.k8s)\.io\//.test(name),
  )
  return { ...rest, annotations: Object.fromEntries(own) }
}

/** Names that the API server has made up. */
const GENERATED = /(made-|kube-api-access-)[a-z0-9]{5}/g

const OWN = new Map<string, (value: unknown) => unknown>(
  [
    'uid',
    'resourceVersion',
    'creationTimestamp',
    'time',
    'lastTransitionTime',
    'clusterIP',
    'clusterIPs',
    'token',
    'expirationTimestamp',
    'age',
  ].map((name) => [name, (value: unknown) => (value === null ? value : `a ${name}`)]),
)

/** Each field that differs, with both values. */
function differences(direct: Event, through: Event): Map<string, string> {
  const found = new Map<string, string>()
  for (const name of new Set([...Object.keys(direct), ...Object.keys(through)])) {
    const same = name === 'requestObject' ? contains(direct[name], through[name]) : isSame(direct[name], through[name])
    if (!same) found.set(name, `${short(direct[name])} | ${short(through[name])}`)
  }
  return found
}

function isSame(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b)
    return true
  } catch {
    return false
  }
}

/** kube-apiserver records objects with their defaults. */
function contains(all: unknown, some: unknown): boolean {
  if (typeof all !== 'object' || all === null || typeof some !== 'object' || some === null) return isSame(all, some)
  const fields: Event = all
  return Object.entries(some).every(([name, value]) => contains(fields[name], value))
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'none'
  return text.length > 600 ? `${text.slice(0, 600)}...` : text
}

test('each request leaves the events that kube-apiserver writes of it', async () => {
  const problems: string[] = []
  for (const [i, row] of ROWS.entries()) {
    const codes = await Promise.all([send(row, i, 'direct'), send(row, i, 'through')])
    if (codes.some((code) => code !== row.code))
      problems.push(`${i} ${row.method ?? 'GET'} ${row.path}: codes ${codes}`)
  }
  const last = auditId(ROWS.length - 1, 'through')
  await waitFor(
    'the last event',
    () =>
      eventsOf('through')
        .get(last)
        ?.some(({ stage }) => stage === 'ResponseComplete') === true,
  )
  const direct = eventsOf('direct')
  const through = eventsOf('through')
  for (const [i, row] of ROWS.entries()) {
    const about = `${i} ${row.user ?? ''} ${row.method ?? 'GET'} ${row.path} ${JSON.stringify(row.headers ?? {}).slice(0, 100)}`
    const expected = (direct.get(auditId(i, 'direct')) ?? []).map((event) => comparable(event, 'direct'))
    const actual = (through.get(auditId(i, 'through')) ?? []).map((event) => comparable(event, 'through'))
    const stages = (events: readonly Event[]): string =>
      events.map(({ level, stage }) => `${level} ${stage}`).join(', ')
    const found = new Map<string, string>()
    if (stages(expected) !== stages(actual)) found.set('stages', `${stages(expected)} | ${stages(actual)}`)
    for (const event of expected) {
      const same = actual.find(({ stage }) => stage === event['stage']) ?? event
      for (const [name, values] of differences(event, same)) found.set(`${event['stage']}.${name}`, values)
    }
    const known = row.differs ?? []
    for (const [name, values] of found) if (!known.includes(name)) problems.push(`${about}: ${name}: ${values}`)
    for (const name of known) if (!found.has(name)) problems.push(`${about}: ${name} no longer differs`)
  }
  assert.equal(problems.length, 0, `\n${problems.join('\n')}`)
})
