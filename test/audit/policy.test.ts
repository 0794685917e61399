// The audit log as a policy wants it, of a whole gateway in front of a stub: stages, levels, bodies, refusals, and a policy that changes.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { recordOf } from '../../src/kit/api/json/object-shape.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { h2Connect, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const folder = mkdtempSync(join(tmpdir(), 'audit-'))
const policyFile = join(folder, 'policy.yaml')
const logFile = join(folder, 'audit.log')
const BODY_LIMIT = 4096
const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: [/healthz*]
- level: RequestResponse
  resources: [{ group: "", resources: [configmaps, secrets] }]
  omitStages: [RequestReceived]
- level: Request
  resources: [{ group: apps }]
  omitStages: [RequestReceived]
- level: Metadata
`

interface Event {
  readonly level: string
  readonly stage: string
  readonly [field: string]: unknown
}

let stub: StubUpstream
let gateway: InProcessGateway
let session: ClientHttp2Session
let seen = 0

before(async () => {
  writeFileSync(policyFile, POLICY)
  stub = await startStub()
  const flags = { source: 'files', configDir: 'given', auditPolicyFile: policyFile, auditLogPath: logFile }
  const { auditPolicyFile, auditLogPath } = loadConfig({ flags, env: {}, readFile: () => '' })
  gateway = await startInProcess([clusterObject([stub], { clientCA })], {
    auditPolicyFile,
    auditLogPath,
    auditMaxBodyBytes: BODY_LIMIT,
  })
  session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
})
after(async () => {
  session.destroy()
  await gateway.stop()
  await stub.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
})

function all(): Event[] {
  const lines = readFileSync(logFile, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line))
}

/** The events since the last call, once there are so many. */
async function events(count: number): Promise<Event[]> {
  await waitFor(`${count} events`, () => all().length >= seen + count)
  const fresh = all().slice(seen)
  seen += fresh.length
  assert.equal(fresh.length, count, JSON.stringify(fresh))
  return fresh
}

function ask(method: string, path: string, body?: string, fields: readonly string[] = []): Promise<Response> {
  const head = [':method', method, ':path', path, ...(body === undefined ? [] : ['content-type', 'application/json'])]
  return h2Request(session, [...head, ...fields], body === undefined ? undefined : Buffer.from(body))
}

/** Answers after the whole body has come, with the same. */
function echo(request: SeenRequest): void {
  const chunks: Buffer[] = []
  request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.stream.on('end', () => reply(request, 201, Buffer.concat(chunks).toString()))
}

const MAPS = '/api/v1/namespaces/default/configmaps'
const SECRETS = '/api/v1/namespaces/default/secrets'

test('level None records nothing, Metadata two stages', async () => {
  assert.equal((await ask('GET', '/healthz')).status, 200)
  await ask('GET', '/api/v1/nodes/a')
  const [received, complete] = await events(2)
  assert.deepEqual(
    [received?.stage, received?.level, received?.['responseStatus']],
    ['RequestReceived', 'Metadata', undefined],
  )
  assert.equal(received?.['stageTimestamp'], received?.['requestReceivedTimestamp'])
  assert.deepEqual([complete?.stage, complete?.['responseStatus']], ['ResponseComplete', { metadata: {}, code: 200 }])
  assert.deepEqual(complete?.['objectRef'], { resource: 'nodes', name: 'a', apiVersion: 'v1' })
  assert.equal(complete?.['auditID'], received?.['auditID'])
})

test('level RequestResponse records both bodies, which arrive as they were sent', async () => {
  stub.answer = echo
  const body =
    '{ "kind":"ConfigMap",\n "apiVersion":"v1", "metadata":{"name":"m","managedFields":[{}]}, "data":{"a":"b"} }'
  assert.equal((await ask('POST', MAPS, body)).body.toString(), body)
  const [event] = await events(1)
  const expected = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'm' }, data: { a: 'b' } }
  assert.deepEqual(event?.['requestObject'], expected)
  assert.deepEqual(event?.['responseObject'], expected)
  assert.deepEqual(event?.['objectRef'], { resource: 'configmaps', namespace: 'default', name: 'm', apiVersion: 'v1' })
})

test('level Request records the body of the request alone', async () => {
  stub.answer = echo
  await ask('POST', '/apis/apps/v1/namespaces/default/deployments', '{"metadata":{"name":"d"}}')
  const [event] = await events(1)
  assert.deepEqual(event?.['requestObject'], { metadata: { name: 'd' } })
  assert.equal(event?.['responseObject'], undefined)
})

test('a body above the limit, or not in JSON, is left out and said so; it passes unchanged', async () => {
  stub.answer = echo
  const large = JSON.stringify({ data: 'x'.repeat(BODY_LIMIT) })
  assert.equal((await ask('POST', MAPS, large)).body.toString(), large)
  await ask('POST', MAPS, 'k8s\0...')
  const [above, protobuf] = await events(2)
  assert.equal(above?.['requestObject'], undefined)
  assert.match(JSON.stringify(above?.['annotations']), /request-object":"not recorded: it is larger than 4096 bytes/)
  assert.match(JSON.stringify(protobuf?.['annotations']), /response-object":"not recorded: its encoding is Protobuf/)
})

test('no value of a Secret gets into the log', async () => {
  stub.answer = echo
  const secret = {
    kind: 'Secret',
    metadata: { name: 's' },
    data: { key: 'cGxhbnRlZA==' },
    stringData: { b: 'planted' },
  }
  await ask('POST', SECRETS, JSON.stringify(secret))
  const [event] = await events(1)
  assert.equal(JSON.stringify(event).includes('cGxhbnRlZA=='), false)
  assert.equal(JSON.stringify(event).includes('planted'), false)
  assert.deepEqual(event?.['requestObject'], { ...secret, data: { key: 'REDACTED' }, stringData: { b: 'REDACTED' } })
})

test('a Status of upstream is recorded whole at every level', async () => {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'nodes "b" not found',
    reason: 'NotFound',
    details: { name: 'b', kind: 'nodes' },
    code: 404,
  }
  stub.answer = (request) => reply(request, 404, JSON.stringify(status))
  await ask('GET', '/api/v1/nodes/b')
  const [, complete] = await events(2)
  const { kind: _kind, apiVersion: _version, ...rest } = status
  assert.deepEqual(complete?.['responseStatus'], rest)
})

test('a compressed body is recorded unpacked, and only up to the limit, however much it holds', async () => {
  const answer = (body: Buffer): void => {
    stub.answer = ({ stream }) => {
      stream.respond({ ':status': 200, 'content-type': 'application/json', 'content-encoding': 'gzip' })
      stream.end(body)
    }
  }
  const packed = gzipSync('{"kind":"ConfigMap","data":{"a":"b"}}')
  answer(packed)
  assert.deepEqual((await ask('GET', `${MAPS}/a`, undefined, ['accept-encoding', 'gzip'])).body, packed)
  answer(gzipSync(Buffer.alloc(BODY_LIMIT * 100, ' ')))
  await ask('GET', `${MAPS}/b`)
  answer(packed.subarray(0, -9))
  await ask('GET', `${MAPS}/c`)
  const found = await events(3)
  assert.deepEqual(found[0]?.['responseObject'], { kind: 'ConfigMap', data: { a: 'b' } })
  assert.deepEqual(
    found.slice(1).map(({ responseObject, annotations }) => [responseObject, responseNote(annotations)]),
    [
      [undefined, 'not recorded: it is larger than 4096 bytes'],
      [undefined, 'not recorded: it is not whole, or not gzip'],
    ],
  )
})

function responseNote(annotations: unknown): unknown {
  return recordOf(annotations)['portcullis.io/response-object']
}

test('an error of a long-running request has its Status at both stages', async () => {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'no', code: 500 }
  stub.answer = (request) => reply(request, 500, JSON.stringify(status))
  await ask('GET', `${MAPS}?watch=1`)
  for (const event of await events(2)) {
    assert.deepEqual(event['responseStatus'], { metadata: {}, status: 'Failure', message: 'no', code: 500 })
    assert.deepEqual(event['responseObject'], status)
  }
})

test('whose credentials are not known is one event, at ResponseStarted, with what he was told', async () => {
  const stranger = h2Connect({ port: gateway.port, serverName: 'prod.example.com' })
  stub.answerToken = (review) =>
    reply(review.request, 201, JSON.stringify({ ...review.review, status: { authenticated: false } }))
  const answer = await h2Request(stranger, [':path', `${MAPS}/a`, 'authorization', 'Bearer unknown'])
  stranger.destroy()
  stub.answerToken = undefined
  assert.equal(answer.status, 401)
  const [event] = await events(1)
  assert.equal(event?.stage, 'ResponseStarted')
  assert.deepEqual(event?.['responseObject'], JSON.parse(answer.body.toString()))
  assert.match(JSON.stringify(event?.['annotations']), /"portcullis.io\/reason":"unauthorized"/)
})

test('the user of --as is known from the second stage on', async () => {
  stub.answerAccess = (review) =>
    reply(review.request, 201, JSON.stringify({ ...review.review, status: { allowed: true } }))
  await ask('GET', '/api/v1/nodes/a', undefined, ['impersonate-user', 'operator'])
  stub.answerAccess = undefined
  const [received, complete] = await events(2)
  assert.deepEqual(received?.['user'], complete?.['user'])
  assert.equal(received?.['impersonatedUser'], undefined)
  assert.equal(recordOf(complete?.['impersonatedUser'])['username'], 'operator')
})

test('a watch has ResponseStarted, and no body', async () => {
  stub.answer = (request) => reply(request, 200, '{"type":"ADDED","object":{}}\n')
  await ask('GET', `${MAPS}?watch=1`)
  const both = await events(2)
  assert.deepEqual(
    both.map(({ stage, responseObject }) => [stage, responseObject]),
    [
      ['ResponseStarted', undefined],
      ['ResponseComplete', undefined],
    ],
  )
})

test('who is refused is named, by the name before --as', async () => {
  stub.answerAccess = (review) =>
    reply(review.request, 201, JSON.stringify({ ...review.review, status: { allowed: false } }))
  const answer = await ask('GET', '/api/v1/nodes/a', undefined, ['impersonate-user', 'root'])
  stub.answerAccess = undefined
  assert.equal(answer.status, 403)
  const [, complete] = await events(2)
  assert.deepEqual(complete?.['user'], {
    username: 'alice',
    groups: ['dev', 'system:authenticated'],
    ...extraOf(complete),
  })
  assert.equal(complete?.['impersonatedUser'], undefined)
  assert.match(JSON.stringify(complete?.['annotations']), /"portcullis.io\/reason":"impersonation-forbidden"/)
})

function extraOf(event: Event | undefined): object {
  const user = event?.['user']
  return typeof user === 'object' && user !== null && 'extra' in user ? { extra: user.extra } : {}
}

test('another policy is followed; a wrong one is not, and says why', async () => {
  writeFileSync(policyFile, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Everything\n')
  const refused = (): boolean => gateway.logged.some(({ fields }) => String(fields['error']).includes('rules[0].level'))
  await waitFor('the error of the policy', refused)
  await ask('GET', '/api/v1/nodes/a')
  await events(2)
  writeFileSync(policyFile, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n')
  // In force when a request leaves no event.
  await waitFor('the new policy', async () => {
    const before = all().length
    await ask('GET', '/api/v1/nodes/a')
    await ask('GET', '/api/v1/nodes/a')
    await new Promise((resolve) => setImmediate(resolve))
    return all().length === before
  })
})
