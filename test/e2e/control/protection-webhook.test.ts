// Pod protection as a webhook of a real kube-apiserver, with a ledger that says what the test wants: what is asked, what clients get
// to see, and what happens when the webhook is away.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import type { CompiledProtection } from '../../../src/gateway/core/cluster/compiled-cluster.ts'
import { controlPaths } from '../../../src/gateway/io/listener/control-paths.ts'
import { systemClock } from '../../../src/kit/io/world/clock.ts'
import { PODS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../../src/kube/api/kinds/foreign-kinds.ts'
import { createKubeClient, type KubeClient } from '../../../src/kube/io/client.ts'
import { readControlTokenKey } from '../../../src/pki/io/control-pki.ts'
import { createWebhookTokens } from '../../../src/pki/io/webhook-tokens.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../../../src/protection/api/protection.ts'
import { ProtectionPort } from '../../../src/protection/app/webhook.ts'
import { type ProtectInstallOptions, protectInstall, protectUninstall } from '../../../src/protection/cli/install.ts'
import { createProtectionWebhook } from '../../../src/protection/webhooks/webhook.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import type { KubeRequest, KubeResponse } from '../../harness/clusters/kube-request.ts'
import { waitFor } from '../../harness/wait.ts'

const PROTECTION: CompiledProtection = {
  cell: 'worker-1',
  shadow: false,
  failurePolicy: 'Fail',
  timeoutMs: 10_000,
  excludedNamespaces: new Set(),
  objectSelector: undefined,
  aggregation: {
    enabled: true,
    syncTime: 'ResourceVersion',
    syncTimeAnnotation: '',
    podSelector: undefined,
    updateTrigger: undefined,
  },
}
const ADMITTED: ProtectionVerdict = {
  status: 'AdmittedAll',
  admitted: true,
  overridden: '',
  protector: '',
  message: '',
  causes: [],
  retryAfterSeconds: 0,
  freePass: false,
  reservation: undefined,
}
const TOO_FEW = 'PodProtector shop/web reports too few available replicas to admit pod deletion: 5 required, 5 counted'
const REJECTED: ProtectionVerdict = {
  ...ADMITTED,
  status: 'Rejected',
  admitted: false,
  protector: 'shop/web',
  message: TOO_FEW,
}
const NAME = 'protection.portcullis.io'
const PODS_PATH = '/api/v1/namespaces/shop/pods'

const quiet = (): void => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const dir = mkdtempSync(join(tmpdir(), 'portcullis-protection-e2e-'))
let cluster: TestCluster
let worker: KubeClient
/** The first is known to the AdmissionConfiguration of the apiserver; the other one only by what is in a path. */
let known: ProtectionPort
let stranger: ProtectionPort
let verdict: (request: ProtectionRequest) => ProtectionVerdict
const asked: ProtectionRequest[] = []
const codes: number[] = []

before(async () => {
  known = await openPort()
  stranger = await openPort()
  cluster = await startCluster({
    name: 'protection',
    extraApiserverFlags: [`--admission-control-config-file=${admissionConfiguration(known.port)}`],
  })
  worker = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log })
  for (const namespace of ['shop', 'kube-system', 'default']) await prepare(namespace)
})

after(async () => {
  await worker?.close()
  await cluster?.stop()
  await known?.close()
  await stranger?.close()
  rmSync(dir, { recursive: true, force: true })
})

beforeEach(() => {
  verdict = () => ADMITTED
  asked.length = 0
  codes.length = 0
})

async function openPort(): Promise<ProtectionPort> {
  const port = new ProtectionPort({ listen: { host: '127.0.0.1', port: 0 }, hosts: [], dataDir: dir, log })
  await port.open(
    createProtectionWebhook({
      gate: {
        covers: () => true,
        review: async (requests) => {
          asked.push(...requests)
          return await Promise.resolve(requests.map((one) => verdict(one)))
        },
        release: quiet,
      },
      cell: (id) => (id.startsWith('worker-') ? { protection: { ...PROTECTION, cell: id } } : undefined),
      getPods: async (_cell, namespace, name) => [await worker.get(PODS, { namespace, name })],
      authenticate: port.authenticate,
      clock: systemClock,
      log,
      onReview: ({ code }) => codes.push(code),
    }),
  )
  return port
}

/** What `portcullis protect credentials` is for. JSON is YAML. */
function admissionConfiguration(port: number): string {
  const tokens = createWebhookTokens(readControlTokenKey(controlPaths(dir).pki))
  const kubeConfigFile = join(dir, 'webhook.kubeconfig')
  const user = { token: tokens.tokenOf('worker-1') }
  const users = [{ name: `127.0.0.1:${port}`, user }]
  writeFileSync(kubeConfigFile, JSON.stringify({ apiVersion: 'v1', kind: 'Config', users }))
  const apiVersion = 'apiserver.config.k8s.io/v1'
  const configuration = { apiVersion, kind: 'WebhookAdmissionConfiguration', kubeConfigFile }
  const plugins = [{ name: 'ValidatingAdmissionWebhook', configuration }]
  const file = join(dir, 'admission.yaml')
  writeFileSync(file, JSON.stringify({ apiVersion, kind: 'AdmissionConfiguration', plugins }))
  return file
}

/** There is no controller manager, which makes the service account that every pod needs. */
async function prepare(namespace: string): Promise<void> {
  await cluster.request('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: namespace } } })
  const body = { metadata: { name: 'default' } }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await waitFor(`the service account of ${namespace}`, async () => {
    return [201, 409].includes((await cluster.request(path, { method: 'POST', body })).status)
  })
}

async function createPods(names: readonly string[], namespace = 'shop'): Promise<void> {
  for (const name of names) {
    const body = {
      metadata: { name, labels: { app: 'web' } },
      // On a node that is not there: it ends when it is deleted with grace period 0.
      spec: { nodeName: 'node-0', containers: [{ name: 'a', image: 'a' }], terminationGracePeriodSeconds: 30 },
    }
    const created = await cluster.request(`/api/v1/namespaces/${namespace}/pods`, { method: 'POST', body })
    assert.equal(created.status, 201, created.text)
  }
}

const NOW = { gracePeriodSeconds: 0 }
/** In the body: kube-apiserver looks at the query only where there is none. */
const DRY_RUN = { gracePeriodSeconds: 0, dryRun: ['All'] }

function remove(path: string, body: object = NOW, as: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  // Node says no length of the body of a DELETE by itself.
  const headers = { 'content-length': String(JSON.stringify(body).length) }
  return cluster.request(path, { method: 'DELETE', body, headers, ...as })
}

async function exists(name: string): Promise<boolean> {
  return (await cluster.request(`${PODS_PATH}/${name}`)).status === 200
}

/** Whatever the tests before have left. */
async function removeAll(): Promise<void> {
  verdict = () => ADMITTED
  const { status, text } = await remove(PODS_PATH)
  assert.equal(status, 200, text)
  asked.length = 0
}

async function install(fields: Partial<ProtectInstallOptions> = {}): Promise<{ code: number; text: string }> {
  const texts: string[] = []
  const code = await protectInstall({
    cluster: 'worker-1',
    url: `https://127.0.0.1:${stranger.port}`,
    port: 443,
    dataDir: dir,
    token: true,
    excludeNamespace: ['kube-system'],
    name: NAME,
    shadow: false,
    print: false,
    timeout: '30s',
    now: Date.now,
    client: worker,
    out: (text) => texts.push(text),
    err: (text) => texts.push(text),
    ...fields,
  })
  return { code, text: texts.join('') }
}

/** As the API server sees it, which learns of a change in its own time. */
async function waitUntilAsked(path: string): Promise<void> {
  await waitFor('the webhook to be asked', async () => {
    await remove(path, DRY_RUN)
    return asked.length > 0 || codes.length > 0
  })
  asked.length = 0
  codes.length = 0
}

test('deploy/rbac: the gateway may read pods, and write none but the trigger', async () => {
  for (const file of ['worker', 'core', 'generator']) {
    const path = new URL(`../../../deploy/rbac/protection-${file}.yaml`, import.meta.url).pathname
    const applied = await cluster.kubectl(['apply', '-f', path])
    assert.equal(applied.code, 0, applied.stderr)
  }
  const can = async (verb: string, resource: string, namespace: string): Promise<string> => {
    const as = ['--as', 'portcullis', '-n', namespace]
    return (await cluster.kubectl(['auth', 'can-i', verb, resource, ...as])).stdout.trim()
  }
  await waitFor('the role to be known', async () => (await can('watch', 'pods', 'shop')) === 'yes')
  assert.equal(await can('create', 'events', 'shop'), 'yes')
  assert.equal(await can('patch', 'pods', 'portcullis-update-trigger'), 'yes')
  for (const verb of ['create', 'patch', 'update', 'delete']) assert.equal(await can(verb, 'pods', 'shop'), 'no', verb)
  assert.equal(await can('create', 'leases.coordination.k8s.io', 'kube-system'), 'no')
  assert.equal(await can('create', 'pods/eviction', 'shop'), 'no')
})

test('install: the webhook is probed by the API server, and asked from then on', async () => {
  await createPods(['first'])
  const { code, text } = await install()
  assert.equal(code, 0, text)
  assert.match(text, /reaches the webhook, which knows cell worker-1/)
  const { items } = await worker.list(VALIDATING_WEBHOOK_CONFIGURATIONS, '')
  assert.deepEqual(
    items.map(({ metadata }) => (metadata as { name: string }).name),
    [NAME],
  )
  await waitUntilAsked(`${PODS_PATH}/first`)
  const removed = await remove(`${PODS_PATH}/first`)
  assert.equal(removed.status, 200, removed.text)
  // kube-apiserver asks again when the pod has changed while it was being deleted.
  assert.notEqual(asked.length, 0)
  for (const { cause, cell, pod } of asked) {
    assert.deepEqual([cause, cell, pod.name], ['DeletePod', 'worker-1', 'first'])
  }
  const again = await install()
  assert.equal(again.code, 0, again.text)
  assert.match(again.text, /up to date/)
})

test('a refusal as clients see it', async () => {
  await createPods(['web'])
  verdict = () => ({ ...REJECTED, causes: [{ reason: 'PodProtector', message: 'shop/web', field: '' }] })
  const refused = await remove(`${PODS_PATH}/web`)
  const { code, reason, message, details } = refused.json()
  assert.deepEqual([refused.status, code, reason], [429, 429, 'TooManyRequests'])
  assert.equal(message, `admission webhook "podseidon.kubewharf.io" denied the request: ${TOO_FEW}`)
  assert.equal(details.causes[0].message, 'shop/web')
  assert.equal(refused.headers['retry-after'], undefined)
  const kubectl = await cluster.kubectl(['delete', 'pod', 'web', '-n', 'shop', '--now'])
  assert.equal(kubectl.code, 1)
  assert.match(kubectl.stderr, /reports too few available replicas to admit pod deletion: 5 required, 5 counted/)
  assert.ok(await exists('web'))

  verdict = () => ({ ...REJECTED, status: 'RetryAdvised', retryAfterSeconds: 1 })
  const later = await remove(`${PODS_PATH}/web`)
  assert.deepEqual([later.status, later.headers['retry-after']], [429, '1'])

  verdict = () => ({ ...REJECTED, overridden: 'shadow' })
  const passed = await remove(`${PODS_PATH}/web`)
  assert.equal(passed.status, 200)
  assert.match(String(passed.headers['warning']), /^299 - "not refused \(shadow\): PodProtector shop\/web reports/)
})

test('a collection: one review for each pod, by its own name', async () => {
  await createPods(['web-1', 'web-2', 'web-3'])
  // A deletion is reviewed again when the object has changed meanwhile.
  const admitted = new Set<string>()
  verdict = ({ pod: { uid } }) => {
    if (admitted.size < 2) admitted.add(uid)
    return admitted.has(uid) ? ADMITTED : REJECTED
  }
  const answer = await remove(`${PODS_PATH}?labelSelector=app%3Dweb`)
  assert.equal(answer.status, 429, answer.text)
  assert.match(answer.json().message, /too few available replicas/)
  assert.deepEqual(new Set(asked.map(({ pod }) => pod.name)), new Set(['web-1', 'web-2', 'web-3']))
  assert.ok(asked.every(({ pod }) => pod.uid !== ''))
  const { items } = (await cluster.request(PODS_PATH)).json()
  assert.equal(items.length, 1)
  await removeAll()
})

test('evictions', async () => {
  await createPods(['web'])
  const evict = (fields: object = {}, apiVersion = 'policy/v1'): Promise<KubeResponse> => {
    const body = { apiVersion, kind: 'Eviction', metadata: { name: 'web', namespace: 'shop' }, ...fields }
    return cluster.request(`${PODS_PATH}/web/eviction`, { method: 'POST', body })
  }
  verdict = () => ({ ...REJECTED, retryAfterSeconds: 1 })
  const refused = await evict()
  assert.equal(refused.status, 429, refused.text)
  assert.equal(refused.headers['retry-after'], '1')
  assert.match(refused.json().message, /too few available replicas/)
  assert.ok(await exists('web'))
  const uid = (await cluster.request(`${PODS_PATH}/web`)).json().metadata.uid
  assert.deepEqual([asked[0]?.cause, asked[0]?.pod.uid], ['EvictPod', uid])

  verdict = () => ADMITTED
  asked.length = 0
  const dry = await evict({ deleteOptions: { dryRun: ['All'] } })
  assert.equal(dry.status, 201, dry.text)
  assert.deepEqual(
    asked.map(({ dryRun }) => dryRun),
    [true],
  )
  assert.ok(await exists('web'))
  const annotations = { 'podseidon.kubewharf.io/health-criterion': 'Running' }
  asked.length = 0
  const done = await evict({ metadata: { name: 'web', namespace: 'shop', annotations } })
  assert.equal(done.status, 201, done.text)
  assert.deepEqual(
    asked.map(({ criterion, dryRun }) => [criterion, dryRun]),
    [['Running', false]],
    'and no review of a deletion follows',
  )
  await removeAll()
  const missing = await evict()
  assert.equal(missing.status, 404, missing.text)
})

test('dry runs are evaluated, and marked', async () => {
  await createPods(['web'])
  verdict = () => REJECTED
  assert.equal((await remove(`${PODS_PATH}/web`, DRY_RUN)).status, 429)
  verdict = () => ADMITTED
  const kubectl = await cluster.kubectl(['delete', 'pod', 'web', '-n', 'shop', '--dry-run=server'])
  assert.equal(kubectl.code, 0, kubectl.stderr)
  const bare = await cluster.request(`${PODS_PATH}/web?dryRun=All`, { method: 'DELETE' })
  assert.equal(bare.status, 200, bare.text)
  assert.ok(asked.length >= 3)
  assert.ok(asked.every(({ dryRun }) => dryRun))
  assert.ok(await exists('web'))
  await removeAll()
})

test('the kubelet ends a terminating pod, whatever the ledger says', async () => {
  await createPods(['web'])
  assert.equal((await remove(`${PODS_PATH}/web`, {})).status, 200)
  const { metadata } = (await cluster.request(`${PODS_PATH}/web`)).json()
  assert.notEqual(metadata.deletionTimestamp, undefined)
  verdict = () => REJECTED
  asked.length = 0
  const node = { cert: cluster.clientCertificate('system:node:node-0', ['system:nodes', 'system:masters']) }
  const last = await remove(`${PODS_PATH}/web`, NOW, { user: node })
  assert.equal(last.status, 200, last.text)
  assert.equal(await exists('web'), false)
  assert.equal(asked.length, 0)
})

test('namespaces that are excluded are not asked about', async () => {
  await createPods(['system'], 'kube-system')
  verdict = () => REJECTED
  assert.equal((await remove('/api/v1/namespaces/kube-system/pods/system')).status, 200)
  assert.equal(asked.length, 0)
})

test('a credential that the API server presents by its AdmissionConfiguration', async () => {
  const { code, text } = await install({ url: `https://127.0.0.1:${known.port}`, token: false })
  assert.equal(code, 0, text)
  await createPods(['web'])
  await waitFor('the other port to be asked', async () => {
    verdict = () => ({ ...REJECTED, message: 'asked' })
    return (await remove(`${PODS_PATH}/web`)).text.includes('asked')
  })
  await removeAll()
})

test('a token of another cell, or of none, opens nothing', async () => {
  await createPods(['web'])
  const before = await worker.get(VALIDATING_WEBHOOK_CONFIGURATIONS, { namespace: '', name: NAME })
  const webhooks = before['webhooks'] as { clientConfig: { url: string } }[]
  const mine = createWebhookTokens(readControlTokenKey(controlPaths(dir).pki)).tokenOf('worker-1')
  for (const path of [`worker-2/${mine}`, 'worker-1', `worker-1/${'0'.repeat(64)}`]) {
    const url = `https://127.0.0.1:${stranger.port}/${path}`
    const changed = webhooks.map((one) => ({ ...one, clientConfig: { ...one.clientConfig, url } }))
    const current = await worker.get(VALIDATING_WEBHOOK_CONFIGURATIONS, { namespace: '', name: NAME })
    await worker.update(VALIDATING_WEBHOOK_CONFIGURATIONS, { ...current, webhooks: changed })
    verdict = () => REJECTED
    await waitFor('the API server to use the path', async () => {
      const answer = await remove(`${PODS_PATH}/web`)
      return answer.status === 500 && /failed calling webhook/.test(answer.text)
    })
    asked.length = 0
    codes.length = 0
    const answer = await remove(`${PODS_PATH}/web`)
    assert.equal(answer.status, 500, answer.text)
    assert.equal(asked.length, 0)
    assert.deepEqual(codes, [401])
    // The next one must be told from this one.
    assert.equal((await install()).code, 0)
    await waitFor('the right path again', async () => (await remove(`${PODS_PATH}/web`)).status === 429)
  }
  await removeAll()
})

test('a cell that is not known is refused, and says what to do', async () => {
  // The one that is in force answers well; it must not be taken for the one that is probed.
  const { code, text } = await install({ cluster: 'nowhere', timeout: '2s' })
  assert.equal(code, 1)
  assert.match(text, /cell \\?"nowhere\\?" is not known here/)
  assert.equal(asked.length, 0)
})

test('a webhook that is away: with Fail nothing is deleted, but what has ended ends', async () => {
  await createPods(['web', 'ending'])
  assert.equal((await remove(`${PODS_PATH}/ending`, {})).status, 200)
  await stranger.close()
  const refused = await remove(`${PODS_PATH}/web`)
  assert.equal(refused.status, 500, refused.text)
  assert.match(refused.json().message, /failed calling webhook "podseidon\.kubewharf\.io"/)
  assert.ok(await exists('web'))
  assert.equal((await remove(`${PODS_PATH}/ending`)).status, 200)
  assert.equal(await exists('ending'), false)

  const url = `https://127.0.0.1:${known.port}`
  const failed = await install({ url: url.replace(String(known.port), '1'), timeout: '1s' })
  assert.equal(failed.code, 1)
  assert.match(failed.text, /does not answer the API server of the worker: .*refused; nothing was changed/)
  assert.doesNotMatch(failed.text, /[0-9a-f]{64}/)

  const texts: string[] = []
  const out = (line: string): void => void texts.push(line)
  assert.equal(await protectUninstall({ name: NAME, client: worker, out, err: out }), 0, texts.join(''))
  await waitFor('deletions without the webhook', async () => (await remove(`${PODS_PATH}/web`)).status === 200)
  const { items } = await worker.list(VALIDATING_WEBHOOK_CONFIGURATIONS, '')
  assert.deepEqual(items, [])
})
