// Traces of a running gateway, as a collector gets them: which spans there are, what they say, what upstream is told, and what becomes of them
// when the collector is slow, refuses them, or asks to wait.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { h2Connect, h2Open, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../harness/servers/otlp-receiver.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const SAMPLED = `00-${TRACE}-${PARENT}-01`
/** One at a time, as most tests look at one. */
const WAITS = { batchMs: 10, retryMs: 100, lookMs: 100 }
const ALL = { tracingSamplingRatePerMillion: 1_000_000 }

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stubs: readonly StubUpstream[]
  readonly stub: StubUpstream
  readonly receiver: OtlpReceiver
  readonly gateway: InProcessGateway
  send(fields: readonly string[], method?: string): ReturnType<typeof h2Request>
}

async function setUp(
  overrides: Partial<Config> = ALL,
  spec: Partial<UpstreamClusterSpec> = {},
  receiver?: OtlpReceiver,
  upstreams = 1,
): Promise<Scene> {
  const collector = receiver ?? (await startOtlpReceiver())
  cleanups.push(collector.stop)
  const stubs = await Promise.all(Array.from({ length: upstreams }, () => startStub()))
  cleanups.push(...stubs.map(({ stop }) => stop))
  const [stub] = stubs
  assert.ok(stub)
  const config = { tracingOtlpEndpoint: collector.url, ...overrides }
  const objects = [clusterObject(stubs, { clientCA, spec })]
  const gateway = await startInProcess(objects, config, Promise.resolve(), { forwardingWaits: WAITS })
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(gateway.stop, () => session.destroy())
  return { stubs, stub, receiver: collector, gateway, send: (fields) => h2Request(session, [...fields]) }
}

async function spansOf({ receiver }: Scene, count: number): Promise<ReceivedSpan[]> {
  await waitFor(`${count} spans`, () => receiver.spans.length >= count)
  assert.equal(receiver.spans.length, count)
  return receiver.spans
}

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const [found, ...others] = spans.filter((span) => span.name === name)
  assert.ok(found && others.length === 0, `one span ${name} among: ${spans.map((span) => span.name).join(', ')}`)
  return found
}

test('a request has a server span, and one for each step; upstream is told the span of its sending', async () => {
  const scene = await setUp()
  const answer = await scene.send([':path', '/api/v1/namespaces/default/pods/secret-name?x=token'])
  assert.equal(answer.status, 200)
  const spans = await spansOf(scene, 5)
  const server = named(spans, 'GET /api/v1/namespaces/{namespace}/pods/{name}'.replace('v1', '{version}'))
  const upstream = named(spans, 'GET')
  assert.deepEqual([server.kind, upstream.kind], [2, 3])
  assert.equal(server.parentSpanId, undefined)
  for (const name of ['authenticate', 'admit', 'pick']) assert.equal(named(spans, name).kind, 1)
  for (const span of spans) {
    assert.equal(span.traceId, server.traceId)
    if (span !== server) assert.equal(span.parentSpanId, server.spanId)
    assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), span.name)
    assert.ok(BigInt(span.startTimeUnixNano) >= BigInt(server.startTimeUnixNano), span.name)
    assert.ok(BigInt(span.endTimeUnixNano) <= BigInt(server.endTimeUnixNano), span.name)
  }
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, 5)
  assert.equal(server.tags['audit-id'], valuesOf(answer.head, 'audit-id')[0])
  const { tags } = server
  assert.equal(tags['http.request.method'], 'GET')
  assert.equal(tags['http.response.status_code'], '200')
  assert.equal(tags['url.path'], '/api/v1/namespaces/default/pods/secret-name')
  assert.equal(tags['k8s.cluster.name'], 'prod.example.com')
  assert.equal(tags['k8s.verb'], 'get')
  assert.equal(tags['k8s.resource'], 'pods')
  assert.equal(tags['k8s.namespace.name'], 'default')
  assert.equal(tags['user.name'], undefined)
  assert.equal(tags['client.address'], undefined)
  // A query may hold secrets.
  assert.doesNotMatch(JSON.stringify(spans), /token/)
  const [seen] = scene.stub.seen
  assert.deepEqual(seen?.values('traceparent'), [`00-${server.traceId}-${upstream.spanId}-01`])
  const [resource] = scene.receiver.resources
  assert.equal(resource?.['service.name'], 'portcullis')
  assert.notEqual(resource?.['service.instance.id'], '')
  assert.equal(scene.receiver.heads[0]?.[':path'], '/v1/traces')
})

test('a caller that samples is the parent; its tracestate goes upstream and into the span', async () => {
  const scene = await setUp({ tracingSamplingRatePerMillion: 0, tracingUserAttributes: true })
  await scene.send([':path', '/api/v1/pods', 'traceparent', SAMPLED, 'tracestate', 'vendor=x', 'tracestate', 'b=2'])
  const spans = await spansOf(scene, 5)
  const server = named(spans, 'GET /api/{version}/pods')
  assert.equal(server.traceId, TRACE)
  assert.equal(server.parentSpanId, PARENT)
  assert.equal(server.traceState, 'vendor=x,b=2')
  assert.equal(server.tags['user.name'], 'alice')
  assert.equal(server.tags['client.address'], '127.0.0.1')
  const [seen] = scene.stub.seen
  assert.deepEqual(seen?.values('traceparent'), [`00-${TRACE}-${named(spans, 'GET').spanId}-01`])
  assert.equal(seen?.values('tracestate').join(','), 'vendor=x,b=2')
})

test('a caller that does not sample is passed on as it is; an invalid context is not passed on', async () => {
  const scene = await setUp({ tracingSamplingRatePerMillion: 0 })
  const unsampled = `00-${TRACE}-${PARENT}-00`
  await scene.send([':path', '/api/v1/pods', 'traceparent', unsampled, 'tracestate', 'a=1'])
  for (const invalid of [
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-${PARENT}-01`,
    `${SAMPLED}-more`,
    'nonsense',
  ]) {
    await scene.send([':path', '/api/v1/pods', 'traceparent', invalid, 'tracestate', 'a=1'])
  }
  await scene.send([':path', '/api/v1/pods', 'traceparent', SAMPLED, 'traceparent', SAMPLED, 'tracestate', 'a=1'])
  const seen = scene.stub.seen.map((request) => [request.values('traceparent'), request.values('tracestate')])
  assert.deepEqual(seen[0], [[unsampled], ['a=1']])
  assert.equal(seen.length, 8)
  for (const fields of seen.slice(1)) assert.deepEqual(fields, [[], []])
  assert.equal(scene.receiver.spans.length, 0)
})

test('without an endpoint nothing is changed of what the caller says', async () => {
  const scene = await setUp({ tracingOtlpEndpoint: '', ...ALL })
  await scene.send([':path', '/api/v1/pods', 'traceparent', 'nonsense', 'tracestate', 'a=1'])
  const [seen] = scene.stub.seen
  assert.deepEqual([seen?.values('traceparent'), seen?.values('tracestate')], [['nonsense'], ['a=1']])
})

test('callers cannot make the gateway trace more than the rate, and others lose the flag', async () => {
  // A rate that gives nothing back while the test runs.
  const scene = await setUp({ tracingSamplingRatePerMillion: 0, tracingCallersPerSecond: 0.000_001 })
  for (let i = 0; i < 10; i++) await scene.send([':path', '/api/v1/pods', 'traceparent', SAMPLED])
  await spansOf(scene, 5)
  const fields = scene.stub.seen.map((request) => request.values('traceparent')[0] ?? '')
  assert.match(fields[0] ?? '', /-01$/)
  for (const field of fields.slice(1)) {
    assert.match(field, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
    assert.doesNotMatch(field, new RegExp(PARENT))
  }
  const text = await scene.gateway.metrics()
  assert.match(text, /portcullis_tracing_caller_sampled_total\{outcome="traced"\} 1\n/)
  assert.match(text, /portcullis_tracing_caller_sampled_total\{outcome="limited"\} 9\n/)
})

test('a refusal is an event with reason and rule, on a span that is no error of the server', async () => {
  const limit = { maxRequestsInflight: { max: 0 } }
  const spec = {
    flowControl: { flowControlSchemas: [{ name: 'the-limit', ...limit }] },
    dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'the-limit' }],
  }
  const scene = await setUp(ALL, spec)
  assert.equal((await scene.send([':path', '/api/v1/pods'])).status, 429)
  const spans = await spansOf(scene, 3)
  const server = named(spans, 'GET /api/{version}/pods')
  assert.deepEqual(server.status, {})
  assert.equal(server.tags['error.type'], 'too-many-in-flight')
  const [event] = server.events
  assert.equal(event?.name, 'refused')
  assert.match(JSON.stringify(event?.attributes), /too-many-in-flight.*the-limit/)
  assert.deepEqual(named(spans, 'admit').status, { code: 2, message: 'too-many-in-flight' })
})

test('each sending has a span of its own, with the reason of the retry', async () => {
  const scene = await setUp(ALL, {}, undefined, 2)
  const [one, two] = scene.stubs
  let first = true
  for (const stub of [one, two]) {
    assert.ok(stub)
    const { answer } = stub
    stub.answer = (request) => {
      if (!first) return answer(request)
      first = false
      request.stream.close(2)
    }
  }
  assert.equal((await scene.send([':path', '/api/v1/pods'])).status, 200)
  const spans = await spansOf(scene, 7)
  const sendings = spans.filter(({ kind }) => kind === 3)
  assert.equal(sendings.length, 2)
  const failed = sendings.find(({ status }) => status.code === 2)
  const good = sendings.find(({ status }) => status.code === undefined)
  assert.equal(good?.tags['http.request.resend_count'], '1')
  assert.notEqual(failed?.tags['error.type'], undefined)
  assert.notEqual(failed?.tags['server.port'], good?.tags['server.port'])
  const seen = [...(one?.seen ?? []), ...(two?.seen ?? [])].flatMap((request) => request.values('traceparent'))
  const ids = seen.map((field) => field.slice(36, 52))
  assert.deepEqual(new Set(ids), new Set(sendings.map(({ spanId }) => spanId)))
  const server = spans.find(({ kind }) => kind === 2)
  assert.equal(server?.events[0]?.name, 'retry')
})

test('the span of a watch ends with the head of its answer', async () => {
  const scene = await setUp()
  scene.stub.answer = ({ stream }) => {
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    stream.write('{"type":"ADDED"}\n')
  }
  const session = h2Connect({ port: scene.gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(() => session.destroy())
  const stream = h2Open(session, [':path', '/api/v1/pods?watch=1'], { endStream: true })
  const spans = await spansOf(scene, 5)
  assert.equal(named(spans, 'GET /api/{version}/pods').tags['k8s.long_running'], true)
  stream.close()
  session.destroy()
  // What ends later adds nothing.
  await scene.gateway.stop()
  cleanups.splice(cleanups.indexOf(scene.gateway.stop), 1)
  assert.equal(scene.receiver.spans.length, 5)
})

test('a collector that is busy gets the spans again, one that refuses them does not', async () => {
  const scene = await setUp()
  const take = scene.receiver.answer
  const answers = [503, 429, 400]
  scene.receiver.answer = (response) => {
    const code = answers.shift()
    if (code === undefined) return take(response)
    response.writeHead(code, code === 429 ? { 'retry-after': '1' } : {}).end('no')
    return false
  }
  await scene.send([':path', '/version'])
  await waitFor('it to be refused for good', () => answers.length === 0)
  await waitFor('the count', async () =>
    /tracing_spans_total\{result="rejected"\} 5\n/.test(await scene.gateway.metrics()),
  )
  assert.equal(scene.receiver.heads.length, 3)
  await scene.send([':path', '/version'])
  await spansOf(scene, 5)
  assert.match(await scene.gateway.metrics(), /tracing_spans_total\{result="exported"\} 5\n/)
  assert.ok(scene.gateway.logged.some(({ message }) => message === 'the collector does not take spans'))
})

test('requests do not wait for a collector that hangs: what is too much is dropped and counted', async () => {
  const scene = await setUp()
  const take = scene.receiver.answer
  const held: ServerResponse[] = []
  scene.receiver.answer = (response) => {
    held.push(response)
    return false
  }
  const session = h2Connect({ port: scene.gateway.port, serverName: 'prod.example.com', certificate: alice })
  cleanups.push(() => session.destroy())
  for (let i = 0; i < 40; i++) {
    const answers = Array.from({ length: 100 }, () => h2Request(session, [':path', '/version']))
    assert.ok((await Promise.all(answers)).every(({ status }) => status === 200))
  }
  const dropped = async (): Promise<number> => {
    const text = await scene.gateway.metrics()
    const counts = [...text.matchAll(/tracing_requests_dropped_total\{where="[a-z]+"\} (\d+)/g)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  }
  await waitFor('drops', async () => (await dropped()) > 0)
  const waiting = /tracing_requests_waiting (\d+)/.exec(await scene.gateway.metrics())?.[1]
  assert.ok(Number(waiting) <= 2048)
  scene.receiver.answer = take
  for (const response of held) response.end()
})

test('TLS with a CA file, header fields from a file, both followed when they change', async () => {
  const [ca, other] = [createCA({ commonName: 'collector' }), createCA({ commonName: 'other' })]
  const pair = issueCertificate(ca, { commonName: 'collector', usage: 'server', ipAddresses: ['127.0.0.1'] })
  const receiver = await startOtlpReceiver({ cert: pair.certPem, key: pair.keyPem })
  const dir = mkdtempSync(join(tmpdir(), 'traces-'))
  cleanups.push(() => rmSync(dir, { recursive: true }))
  const [caFile, headersFile] = [join(dir, 'ca.pem'), join(dir, 'headers')]
  writeFileSync(caFile, other.certPem)
  writeFileSync(headersFile, 'Authorization: Bearer one\n')
  const files = { tracingOtlpCaFile: caFile, tracingOtlpHeadersFile: headersFile }
  const scene = await setUp({ ...ALL, ...files }, {}, receiver)
  await scene.send([':path', '/version'])
  await waitFor('it not to be trusted', () => receiver.handshakeErrors.length > 0)
  assert.equal(receiver.heads.length, 0)
  writeFileSync(caFile, ca.certPem)
  writeFileSync(headersFile, 'Authorization: Bearer two\nX-Tenant: prod\n')
  await spansOf(scene, 5)
  assert.equal(receiver.heads[0]?.['x-tenant'], 'prod')
  assert.equal(receiver.heads[0]?.authorization, 'Bearer two')
  assert.match(await scene.gateway.metrics(), /file_last_reload_successful\{file="tracing"\} 1\n/)
})

test('threads hand their traces over, and what is left is sent when the gateway stops', async () => {
  const scene = await setUp({ ...ALL, threads: 2 })
  for (let i = 0; i < 5; i++) await scene.send([':path', '/version'])
  await scene.gateway.stop()
  assert.equal(scene.receiver.spans.length, 25)
  cleanups.splice(cleanups.indexOf(scene.gateway.stop), 1)
})
