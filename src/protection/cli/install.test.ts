import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { Command } from 'commander'
import { parse } from 'yaml'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { failure, StatusError, statusError } from '../../kube/api/status.ts'
import { ensureControlPki } from '../../pki/io/control-pki.ts'
import { createWebhookTokens } from '../../pki/io/webhook-tokens.ts'
import { type ProtectInstallOptions, protectCredentials, protectInstall, protectUninstall } from './install.ts'
import { registerProtectInstall } from './program.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-protect-'))
const pki = ensureControlPki(controlPaths(dir).pki, ['localhost'])
const token = createWebhookTokens(pki.tokenKey).tokenOf('worker-1')
after(() => rmSync(dir, { recursive: true, force: true }))

const NAME = 'protection.portcullis.io'
const KIND = VALIDATING_WEBHOOK_CONFIGURATIONS
let out: string[]
let err: string[]
let now: number
let worker: Worker

/** An API server that calls, or doesn't call, the webhook of the configuration used for the probe. */
class Worker extends MemoryObjects {
  answers: (Error | 'created')[] = []
  evictions: { path: string; object: JsonObject; configurations: JsonObject[] }[] = []

  override async create(kind: ResourceKind, object: JsonObject): Promise<JsonObject> {
    if (kind.kind !== 'Eviction') return await super.create(kind, object)
    this.evictions.push({ path: kind.plural, object, configurations: this.all(KIND) })
    const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0]
    if (answer instanceof Error) throw answer
    return object
  }
}

const denied = (text: string): Error =>
  statusError('NotFound', `admission webhook "probe.protection.portcullis.io" denied the request: ${text}`)
const WELL = denied('probe: cell worker-1 is protected here')
const NOT_CALLED = statusError('NotFound', 'pods "portcullis-probe" not found')

beforeEach(() => {
  out = []
  err = []
  now = 1_000_000
  worker = new Worker()
  worker.answers = [WELL]
})

function options(fields: Partial<ProtectInstallOptions> = {}): ProtectInstallOptions {
  return {
    cluster: 'worker-1',
    url: 'https://gateway.example.com:9444',
    port: 9444,
    dataDir: dir,
    token: true,
    excludeNamespace: ['kube-system'],
    name: NAME,
    shadow: false,
    print: false,
    timeout: '10s',
    now: () => (now += 1_000),
    pollMs: 0,
    client: worker,
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    ...fields,
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a manifest is looked into
function webhookOf(object: JsonObject | undefined): any {
  const [webhook, ...more] = object?.['webhooks'] as unknown[]
  assert.equal(more.length, 0)
  return webhook
}

test('what is installed', async () => {
  assert.equal(await protectInstall(options()), 0, err.join(''))
  const webhook = webhookOf(worker.find(KIND, NAME))
  const caBundle = Buffer.from(pki.caPem).toString('base64')
  assert.deepEqual(webhook, {
    name: 'podseidon.kubewharf.io',
    failurePolicy: 'Fail',
    timeoutSeconds: 10,
    sideEffects: 'NoneOnDryRun',
    matchPolicy: 'Equivalent',
    admissionReviewVersions: ['v1'],
    rules: [
      { apiGroups: [''], apiVersions: ['v1'], operations: ['DELETE'], resources: ['pods'], scope: 'Namespaced' },
      {
        apiGroups: [''],
        apiVersions: ['v1'],
        operations: ['CREATE'],
        resources: ['pods/eviction'],
        scope: 'Namespaced',
      },
    ],
    matchConditions: webhook.matchConditions,
    namespaceSelector: {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] }],
    },
    clientConfig: { url: `https://gateway.example.com:9444/worker-1/${token}`, caBundle },
  })
  assert.match(out.join(''), /is created: failurePolicy Fail, not for pods in kube-system/)
  assert.doesNotMatch(out.join(''), new RegExp(token), 'the token is in no output')
})

test('the probe comes first, concerns only itself, and is removed', async () => {
  worker.answers = [NOT_CALLED, NOT_CALLED, WELL]
  assert.equal(await protectInstall(options()), 0, err.join(''))
  assert.equal(worker.evictions.length, 3)
  for (const { path, object, configurations } of worker.evictions) {
    const [probe, ...more] = configurations
    assert.equal(more.length, 0, 'nothing that can refuse is there before the webhook has answered')
    const webhook = webhookOf(probe)
    const { labels, name } = object['metadata'] as { labels: object; name: string }
    assert.deepEqual(webhook.objectSelector, { matchLabels: labels })
    assert.deepEqual(object['deleteOptions'], { dryRun: ['All'] })
    assert.equal(path, `pods/${name}/eviction`)
    assert.equal(webhook.clientConfig.url, `https://gateway.example.com:9444/worker-1/${token}`)
  }
  assert.equal(worker.all(KIND).length, 1, 'the probe is gone')
})

test('a webhook that does not answer is not installed, and what was there stays', async () => {
  const before = worker.put(KIND, { metadata: { name: NAME }, webhooks: [] })
  const url = `https://gateway.example.com:9444/worker-1/${token}?timeout=10s`
  const away = failure('InternalError', `failed calling webhook "probe": Post "${url}": connection refused`)
  for (const [answer, said] of [
    [new StatusError(away), /connection refused/],
    [NOT_CALLED, /has not called the webhook/],
    [denied('cell "worker-1" is not known here'), /cell "worker-1" is not known here/],
    [
      statusError('NotFound', 'admission webhook "podseidon.kubewharf.io" denied the request: probe: cell worker-1'),
      /webhook "podseidon.kubewharf.io" denied/,
    ],
    [statusError('Forbidden', 'pods "x" is forbidden'), /needs get, create, update and delete of validatingwebhook/],
    [new Error('socket hang up'), /does not answer: socket hang up/],
  ] as const) {
    err.length = 0
    worker.answers = [answer]
    assert.equal(await protectInstall(options()), 1)
    assert.match(err.join(''), said)
    assert.doesNotMatch(err.join(''), new RegExp(token))
    assert.deepEqual(worker.all(KIND), [before], 'the probe is gone, the rest as it was')
  }
})

test('again: the same; others keep their labels', async () => {
  await protectInstall(options())
  const first = worker.find(KIND, NAME)
  worker.put(KIND, { ...first, metadata: { ...(first?.['metadata'] as object), labels: { team: 'sre' } } })
  assert.equal(await protectInstall(options()), 0, err.join(''))
  const second = worker.find(KIND, NAME)
  assert.deepEqual(second?.['webhooks'], first?.['webhooks'])
  const { labels } = second?.['metadata'] as { labels: object }
  assert.deepEqual(labels, { team: 'sre', 'app.kubernetes.io/managed-by': 'portcullis' })
  assert.match(out.join(''), /is up to date/)
  worker.beforeUpdate = () => worker.put(KIND, { metadata: { name: NAME }, webhooks: [] })
  assert.equal(await protectInstall(options()), 0, 'another client wrote in between')
  assert.deepEqual(worker.find(KIND, NAME)?.['webhooks'], first?.['webhooks'])
})

test('a Service has path and port; its namespace is not matched', async () => {
  const { url: _, ...rest } = options({ service: 'gates/portcullis', port: 443, token: false })
  assert.equal(await protectInstall(rest), 0, err.join(''))
  const webhook = webhookOf(worker.find(KIND, NAME))
  const { service } = webhook.clientConfig
  assert.deepEqual(service, { namespace: 'gates', name: 'portcullis', port: 443, path: '/worker-1' })
  assert.deepEqual(webhook.namespaceSelector.matchExpressions[0].values, ['kube-system', 'gates'])
})

test('each segment of the path is a DNS name, as kube-apiserver wants it of a Service', () => {
  assert.match(token, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
  assert.ok(token.length <= 253)
})

test('deploy/webhook/protection.yaml is what is installed', async () => {
  const { url: _, ...rest } = options({ service: 'portcullis-system/portcullis', token: false })
  await protectInstall(rest)
  const example = parse(readFileSync(new URL('../../../deploy/webhook/protection.yaml', import.meta.url), 'utf8'))
  const webhook = webhookOf(worker.find(KIND, NAME))
  assert.deepEqual(webhookOf(example), { ...webhook, clientConfig: { ...webhook.clientConfig, caBundle: '' } })
  assert.equal(example.metadata.name, NAME)
})

test('shadow: a webhook that is away stops nothing', async () => {
  await protectInstall(options({ shadow: true }))
  const { failurePolicy, timeoutSeconds } = webhookOf(worker.find(KIND, NAME))
  assert.deepEqual([failurePolicy, timeoutSeconds], ['Ignore', 3])
  assert.match(out.join(''), /podProtection\.shadow/)
})

test('--print asks no API server', async () => {
  const { client: _, ...rest } = options({ print: true, kubeconfig: '/none' })
  assert.equal(await protectInstall(rest), 0, err.join(''))
  const printed = parse(out.join(''))
  assert.equal(printed.metadata.name, NAME)
  assert.equal(printed.webhooks[0].failurePolicy, 'Fail')
})

test('errors are named, and nothing is sent', async () => {
  const file = join(dir, 'token')
  writeFileSync(file, 'not a token\n')
  const { url: _url, dataDir: _dir, ...bare } = options()
  const rows: readonly (readonly [ProtectInstallOptions, RegExp])[] = [
    [{ ...bare, dataDir: dir }, /no address of the webhook is given; give --url/],
    [options({ service: 'a/b' }), /both --url and --service/],
    [options({ url: 'http://gateway:1' }), /--url is not https:\/\/HOST:PORT/],
    [options({ url: 'https://user@gateway:1' }), /--url is not/],
    [options({ url: 'https://gateway:1/path' }), /--url is not/],
    [{ ...bare, dataDir: dir, service: 'portcullis' }, /--service is not NAMESPACE\/NAME/],
    [{ ...bare, dataDir: dir, service: 'a/b', port: 0 }, /--port is not a port/],
    [{ ...bare, url: 'https://gateway' }, /the CA of the webhook is unknown; give --data-dir DIR/],
    [options({ tokenFile: file }), /holds no token/],
    [options({ cluster: 'Worker_1' }), /--cluster "Worker_1" is not a DNS name/],
    [options({ name: 'A b' }), /--name "A b" is not a DNS name/],
    [options({ excludeNamespace: ['a.b'] }), /--exclude-namespace "a\.b" is not a namespace/],
    [options({ timeout: 'soon' }), /--timeout "soon" is not a positive duration/],
    [options({ dataDir: join(dir, 'none') }), /cannot read/],
  ]
  for (const [wrong, said] of rows) {
    err.length = 0
    assert.equal(await protectInstall(wrong), 1)
    assert.match(err.join(''), said)
  }
  assert.deepEqual(worker.writes, [])
})

test('uninstall', async () => {
  await protectInstall(options())
  assert.equal(await protectUninstall(options()), 0)
  assert.deepEqual(worker.all(KIND), [])
  assert.equal(await protectUninstall(options()), 0)
  assert.match(out.join(''), /is deleted.*\n.*there is no ValidatingWebhookConfiguration/)
})

test('credentials: as kube-apiserver looks them up', () => {
  const users = (fields: { url?: string; service?: string }): unknown => {
    out.length = 0
    const { url: _, ...rest } = options()
    assert.equal(protectCredentials({ ...rest, ...fields }), 0, err.join(''))
    return parse(out.join('')).users
  }
  const user = { token }
  assert.deepEqual(users({ url: 'https://gateway:9444' }), [{ name: 'gateway:9444', user }])
  assert.deepEqual(users({ url: 'https://gateway' }), [{ name: 'gateway:443', user }])
  assert.deepEqual(users({ service: 'ns/svc' }), [{ name: 'svc.ns.svc:9444', user }])
  assert.equal(protectCredentials({ ...options(), cluster: '/' }), 1)
})

test('the commands as they are typed', async () => {
  const codes: number[] = []
  const run = async (...argv: string[]): Promise<string> => {
    out.length = 0
    const command = new Command('protect').exitOverride()
    registerProtectInstall(command, {
      out: (text) => out.push(text),
      err: (text) => err.push(text),
      now: () => now,
      done: async (code) => void codes.push(await code),
    })
    await command.parseAsync(argv, { from: 'user' })
    return out.join('')
  }
  const printed = parse(
    await run('install', '--cluster', 'worker-1', '--service', 'gates/portcullis', '--data-dir', dir, '--print'),
  )
  assert.equal(webhookOf(printed).clientConfig.service.path, `/worker-1/${token}`)
  assert.equal(webhookOf(printed).clientConfig.service.port, 9444)
  const bare = parse(
    await run('install', '--cluster', 'c', '--url', 'https://a', '--data-dir', dir, '--no-token', '--print'),
  )
  assert.equal(webhookOf(bare).clientConfig.url, 'https://a/c')
  assert.match(await run('credentials', '--cluster', 'c', '--url', 'https://a', '--data-dir', dir), /token: /)
  assert.deepEqual(codes, [0, 0, 0])
})
