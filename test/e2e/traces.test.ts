// The spans of a real kube-apiserver become children of the gateway's, where it believes the gateway's own user; for any other user it does not.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { h2Connect, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { base64 } from '../harness/clusters/kubeconfig.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { type OtlpGrpcReceiver, startOtlpGrpcReceiver } from '../harness/servers/otlp-grpc-receiver.ts'
import { type OtlpReceiver, startOtlpReceiver } from '../harness/servers/otlp-receiver.ts'
import { waitFor } from '../harness/wait.ts'

const PATH = '/api/v1/namespaces/default/configmaps'
const CLIENT_SPAN = '00f067aa0ba902b7'
const GATEWAY_USER = 'portcullis'
const CLIENT = 3

const dir = mkdtempSync(join(tmpdir(), 'portcullis-tracing-'))
let cluster: TestCluster
let gateway: InProcessGateway
/** Receives the gateway's spans. */
let receiver: OtlpReceiver
/** Receives kube-apiserver's spans. */
let grpcReceiver: OtlpGrpcReceiver

before(async () => {
  receiver = await startOtlpReceiver()
  grpcReceiver = await startOtlpGrpcReceiver()
  const config = {
    apiVersion: 'apiserver.config.k8s.io/v1beta1',
    kind: 'TracingConfiguration',
    endpoint: grpcReceiver.endpoint,
    samplingRatePerMillion: 0,
  }
  const file = join(dir, 'tracing.json')
  writeFileSync(file, JSON.stringify(config))
  cluster = await startCluster({ name: 'traced', extraApiserverFlags: [`--tracing-config-file=${file}`] })
  const objects = [
    asUser('plain', GATEWAY_USER),
    asUser('monitoring', GATEWAY_USER, 'system:monitoring'),
    asUser('masters', 'root', 'system:masters'),
  ]
  gateway = await startInProcess(objects, { tracingOtlpEndpoint: receiver.url })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  await grpcReceiver?.stop()
  await receiver?.stop()
  rmSync(dir, { recursive: true, force: true })
})

/** The same kube-apiserver; the gateway is this user there. */
function asUser(name: string, user: string, ...groups: readonly string[]): UpstreamCluster {
  const { certPem, keyPem } = cluster.clientCertificate(user, groups)
  const clientConfig = { certData: base64(certPem), keyData: base64(keyPem), caData: base64(cluster.ca.certPem) }
  return upstreamClusterFor(cluster, { name, spec: { clientConfig } })
}

/** One request that its client samples. Returns its Audit-ID. */
async function sendSampled(name: string, traceId: string): Promise<string> {
  const serverName = hostOf(name)
  const session = h2Connect({ port: gateway.port, serverName, certificate: cluster.admin.cert })
  try {
    const traceparent = `00-${traceId}-${CLIENT_SPAN}-01`
    const authority = `${serverName}:${gateway.port}`
    const answer = await h2Request(session, [':path', PATH, ':authority', authority, 'traceparent', traceparent])
    assert.equal(answer.status, 200)
    return valuesOf(answer.head, 'audit-id')[0] ?? ''
  } finally {
    session.destroy()
  }
}

/** The span of the gateway's request to kube-apiserver. */
async function upstreamSpanOf(traceId: string): Promise<string> {
  const find = (): string | undefined =>
    receiver.spans.find((span) => span.traceId === traceId && span.kind === CLIENT)?.spanId
  await waitFor(`the gateway's spans of ${traceId}`, () => find() !== undefined)
  return find() ?? ''
}

test("kube-apiserver's spans are children of the gateway's only for system:monitoring and system:masters", async () => {
  const [plain, monitoring, masters] = ['1'.repeat(32), '2'.repeat(32), '3'.repeat(32)] as const
  // First: kube-apiserver sends spans in the order in which they end.
  await sendSampled('plain', plain)
  assert.notEqual(await upstreamSpanOf(plain), '')
  const joined = [
    { name: 'monitoring', traceId: monitoring, auditId: await sendSampled('monitoring', monitoring) },
    { name: 'masters', traceId: masters, auditId: await sendSampled('masters', masters) },
  ]
  for (const { name, traceId, auditId } of joined) {
    const upstreamSpan = await upstreamSpanOf(traceId)
    const ofTrace = (): typeof grpcReceiver.spans => grpcReceiver.spans.filter((span) => span.traceId === traceId)
    await waitFor(`kube-apiserver's spans as ${name}`, () => ofTrace().length > 0)
    const ids = new Set(ofTrace().map(({ spanId }) => spanId))
    const outermost = ofTrace().filter(({ parentSpanId }) => !ids.has(parentSpanId))
    assert.deepEqual(
      outermost.map(({ parentSpanId }) => parentSpanId),
      [upstreamSpan],
      JSON.stringify(ofTrace()),
    )
    assert.ok(ofTrace().some(({ tags }) => tags['audit-id'] === auditId))
  }
  assert.deepEqual(
    grpcReceiver.spans.filter(({ traceId }) => traceId === plain),
    [],
  )
})
