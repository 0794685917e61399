// The audit webhook of a whole gateway, with a real receiver over HTTPS: busy, away, hanging, too slow; client certificate, token, a kubeconfig
// that changes, and what is lost.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ClientHttp2Session } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { h2Connect, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { clientCertificate } from '../harness/pki.ts'
import { type AuditReceiver, startAuditReceiver } from '../harness/servers/audit-receiver.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: [/healthz*]
- level: Request
  resources: [{ group: "", resources: [configmaps] }]
- level: Metadata
`
const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const receiverClients: KeyPair = createCA({ commonName: 'clients of the receiver' })
const own = clientCertificate(receiverClients, { commonName: 'portcullis' })
const alice = clientPair(clientCA, 'alice', ['dev'])
const folder = mkdtempSync(join(tmpdir(), 'audit-webhook-'))
const policyFile = join(folder, 'policy.yaml')
const kubeconfig = join(folder, 'webhook.yaml')
const HOUR_MS = 3_600_000

let receiver: AuditReceiver
let stub: StubUpstream
const gateways: InProcessGateway[] = []

/** YAML is a superset of JSON. */
function writeKubeconfig(user: object, ca: KeyPair = receiver.ca, path = '/audit'): void {
  const base64 = (pem: string): string => Buffer.from(pem).toString('base64')
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'receiver',
        cluster: { server: `${receiver.url}${path}`, 'certificate-authority-data': base64(ca.certPem) },
      },
    ],
    users: [
      {
        name: 'gateway',
        user: { 'client-certificate-data': base64(own.certPem), 'client-key-data': base64(own.keyPem), ...user },
      },
    ],
    contexts: [{ name: 'audit', context: { cluster: 'receiver', user: 'gateway' } }],
    'current-context': 'audit',
  })
  writeFileSync(kubeconfig, text)
}

async function start(given: Partial<Config> = {}): Promise<InProcessGateway> {
  const flags = {
    source: 'files',
    configDir: 'given',
    auditPolicyFile: policyFile,
    auditWebhookConfigFile: kubeconfig,
    auditWebhookInitialBackoff: '1ms',
    auditWebhookBatchMaxWait: '1ms',
  }
  const { auditPolicyFile, ...config } = loadConfig({ flags, env: {}, readFile: () => '' })
  const webhook = Object.fromEntries(Object.entries(config).filter(([name]) => name.startsWith('auditWebhook')))
  const gateway = await startInProcess([clusterObject([stub], { clientCA })], { auditPolicyFile, ...webhook, ...given })
  gateways.push(gateway)
  return gateway
}

function connect(gateway: InProcessGateway): ClientHttp2Session {
  return h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
}

function ask(session: ClientHttp2Session, path: string, body?: string): Promise<Response> {
  const method = body === undefined ? 'GET' : 'POST'
  const head = [':method', method, ':path', path, ...(body === undefined ? [] : ['content-type', 'application/json'])]
  return h2Request(session, head, body === undefined ? undefined : Buffer.from(body))
}

async function count(gateway: InProcessGateway, result: string): Promise<number> {
  const line = new RegExp(`^portcullis_audit_webhook_events_total\\{result="${result}"\\} (\\d+)$`, 'm')
  return Number(line.exec(await gateway.metrics())?.[1])
}

before(async () => {
  writeFileSync(policyFile, POLICY)
  stub = await startStub()
})
after(async () => {
  await stub.stop()
  rmSync(folder, { recursive: true })
})
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop()
  await receiver.stop()
})
beforeEach(async () => {
  receiver = await startAuditReceiver(receiverClients)
  writeKubeconfig({})
  stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
})

test('events arrive as an EventList at the URL of the kubeconfig, with its client certificate, as the policy says', async () => {
  const gateway = await start()
  const session = connect(gateway)
  await ask(session, '/healthz')
  await ask(session, '/api/v1/namespaces/default/configmaps', '{"kind":"ConfigMap","metadata":{"name":"m"}}')
  await ask(session, '/api/v1/nodes/a')
  await waitFor('two events', () => receiver.events.length >= 2)
  session.destroy()
  const [batch] = receiver.batches
  assert.deepEqual(
    [batch?.method, batch?.path, batch?.contentType, batch?.client],
    ['POST', '/audit', 'application/json', 'portcullis'],
  )
  const { items: _, ...list } = JSON.parse(batch?.body ?? '')
  assert.deepEqual(list, { kind: 'EventList', apiVersion: 'audit.k8s.io/v1', metadata: {} })
  const [map, node] = receiver.events
  assert.deepEqual([map?.level, map?.stage], ['Request', 'ResponseComplete'])
  assert.deepEqual(map?.['requestObject'], { kind: 'ConfigMap', metadata: { name: 'm' } })
  assert.equal(node?.level, 'Metadata')
  assert.equal(await count(gateway, 'sent'), 2)
  assert.equal(await count(gateway, 'failed'), 0)
})

test('a receiver that is busy or broken is sent the same events again, and has each once', async () => {
  const gateway = await start()
  const session = connect(gateway)
  const codes = [503, 429, 500]
  receiver.answer = (response) => {
    const code = codes.shift() ?? 200
    response.writeHead(code).end()
    return code === 200
  }
  await ask(session, '/api/v1/nodes/a')
  await waitFor('the event', () => receiver.events.length >= 1)
  session.destroy()
  assert.equal(receiver.events.length, 1)
  assert.equal(receiver.batches.length, 4)
  assert.equal(new Set(receiver.batches.map(({ body }) => body)).size, 1)
  assert.equal(gateway.logged.filter(({ message }) => message.includes('audit webhook')).length, 1)
})

test('after five attempts a batch is lost, counted and logged, and the next one is sent', async () => {
  const gateway = await start()
  const session = connect(gateway)
  receiver.answer = (response) => {
    response.writeHead(400, { 'content-type': 'text/plain' }).end('no such index')
    return false
  }
  await ask(session, '/api/v1/nodes/a')
  await waitFor('the loss', async () => (await count(gateway, 'failed')) === 1)
  assert.equal(receiver.batches.length, 5)
  const [line] = gateway.logged.filter(({ message }) => message.includes('audit webhook'))
  assert.match(String(line?.fields['error']), /400.*no such index/)
  receiver.answer = (response) => {
    response.end()
    return true
  }
  await ask(session, '/api/v1/nodes/b')
  await waitFor('the next event', () => receiver.events.length === 1)
  session.destroy()
})

test('a receiver that hangs costs no request: what does not fit is dropped and counted, and the stop does not wait for it', async () => {
  const gateway = await start({
    auditWebhookBatchBufferSize: 20,
    auditWebhookBatchMaxSize: 2,
    auditWebhookBatchThrottleEnable: false,
  })
  const session = connect(gateway)
  receiver.answer = () => false
  const requests = 200
  for (let sent = 0; sent < requests; sent += 20) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(session, '/api/v1/nodes/a')))
    assert.ok(answers.every(({ status }) => status === 200))
  }
  // 16 requests of two events at most are on their way, and 20 wait.
  await waitFor('the drops', async () => (await count(gateway, 'buffer-full')) >= requests - 20 - 16 * 2)
  assert.ok(receiver.batches.length <= 16, `${receiver.batches.length} requests`)
  assert.equal(await count(gateway, 'sent'), 0)
  session.destroy()
  await gateway.stop()
  const lost = gateway.logged.filter(({ message }) => message === 'events for the audit webhook are lost')
  assert.equal(lost.length, 1)
})

test('what waits is sent when the gateway stops', async () => {
  const gateway = await start({ auditWebhookBatchMaxWaitMs: HOUR_MS })
  const session = connect(gateway)
  await ask(session, '/api/v1/nodes/a')
  assert.equal(receiver.batches.length, 0)
  session.destroy()
  await gateway.stop()
  assert.equal(receiver.events.length, 1)
})

test('a changed kubeconfig is used, one that is wrong is not', async () => {
  const gateway = await start()
  const session = connect(gateway)
  const reload = async (): Promise<string | undefined> =>
    /^portcullis_file_last_reload_successful\{file="audit-webhook-config-file"\} (\d)$/m.exec(
      await gateway.metrics(),
    )?.[1]
  await ask(session, '/api/v1/nodes/a')
  await waitFor('the first event', () => receiver.events.length === 1)
  writeFileSync(kubeconfig, 'users: []')
  await waitFor('the refusal', async () => (await reload()) === '0')
  await ask(session, '/api/v1/nodes/a')
  await waitFor('the second event', () => receiver.events.length === 2)
  writeFileSync(join(folder, 'token'), 'secret\n')
  writeKubeconfig({ tokenFile: 'token' }, receiver.ca, '/other')
  await waitFor('the new one', async () => (await reload()) === '1')
  await ask(session, '/api/v1/nodes/a')
  await waitFor('the third event', () => receiver.events.length === 3)
  session.destroy()
  const last = receiver.batches.at(-1)
  assert.deepEqual([last?.path, last?.authorization], ['/other', 'Bearer secret'])
})

test('a receiver with a certificate of another CA gets nothing', async () => {
  writeKubeconfig({}, createCA({ commonName: 'another' }))
  const gateway = await start()
  const session = connect(gateway)
  await ask(session, '/api/v1/nodes/a')
  await waitFor('the loss', async () => (await count(gateway, 'failed')) === 1)
  session.destroy()
  assert.equal(receiver.batches.length, 0)
  assert.ok(gateway.logged.some(({ fields }) => /CA that is not trusted/.test(String(fields['error']))))
})

test('truncation: bodies go first, for the webhook and for the file, each by its own limit', async () => {
  const logFile = join(folder, 'audit.log')
  const gateway = await start({
    auditLogPath: logFile,
    auditWebhookTruncateMaxEventSize: 2048,
  })
  const session = connect(gateway)
  await ask(session, '/api/v1/namespaces/default/configmaps', JSON.stringify({ data: { a: 'x'.repeat(3000) } }))
  await ask(session, `/api/v1/nodes/a?${'x'.repeat(3000)}`)
  await waitFor('the events', async () => receiver.events.length === 1 && (await count(gateway, 'too-large')) === 1)
  session.destroy()
  const [event] = receiver.events
  assert.equal(event?.['requestObject'], undefined)
  assert.equal(event?.annotations['audit.k8s.io/truncated'], 'true')
  assert.equal(event?.annotations['portcullis.io/decision'], 'forward')
  await gateway.stop()
  const [whole] = readFileSync(logFile, 'utf8').split('\n')
  assert.equal(JSON.parse(whole ?? '').requestObject.data.a.length, 3000)
})

test('a kubeconfig that cannot be used does not start the gateway', async () => {
  const listed = (text: string): void => writeFileSync(kubeconfig, text)
  listed('clusters: []')
  await assert.rejects(start(), /has no current context/)
  writeKubeconfig({ 'client-key-data': Buffer.from('no key').toString('base64') })
  await assert.rejects(start(), /its client key is not a PEM private key/)
  writeKubeconfig({ tokenFile: 'absent' })
  await assert.rejects(start(), /absent/)
})

test('a policy needs one of the two backends', () => {
  const load = (flags: Record<string, string>): Config =>
    loadConfig({
      flags: { source: 'files', configDir: 'x', auditPolicyFile: 'p', ...flags },
      env: {},
      readFile: () => '',
    })
  assert.throws(() => load({}), /without --audit-log-path and --audit-webhook-config-file/)
  for (const name of ['auditLogPath', 'auditWebhookConfigFile'])
    assert.equal(load({ [name]: 'x' }).auditPolicyFile, 'p')
  // An event has to fit into a request.
  assert.throws(() => load({ auditLogPath: 'x', auditWebhookTruncateMaxEventSize: '20Mi' }), /is not from 1024 to/)
})
