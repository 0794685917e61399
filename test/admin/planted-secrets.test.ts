// Every kind of secret that the process can know, planted where settings, clusters and files have them, and repeated in each encoding by
// whatever a support bundle and /debug/config show: none of them is there.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { KnownSecrets } from '../../src/admin/app/inside/known-secrets.ts'
import { supportBundleRoute } from '../../src/admin/app/inside/support-bundle.ts'
import type { ClusterTable } from '../../src/gateway/state/clusters.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'

let dir: string
let config: Config
let clusters: ClusterTable
const planted = new Map<string, string>()

/** A secret that nothing else contains, with characters that each encoding writes in its own way. */
function plant(where: string): string {
  const own = where.replaceAll(/[^a-z]/g, '').slice(-8)
  const secret = `P${planted.size}/qZ${own}+7x${planted.size}~W=${'k'.repeat(planted.size % 3)}`
  planted.set(where, secret)
  return secret
}

/** Written as a file of its own. */
function file(name: string, content: string): string {
  const path = join(dir, name)
  writeFileSync(path, content)
  return path
}

function pem(where: string): string {
  const line = Buffer.from(`${plant(where)}${'x'.repeat(30)}`)
    .toString('base64')
    .slice(0, 64)
  planted.set(where, line)
  return `-----BEGIN PRIVATE KEY-----\n${line}\n-----END PRIVATE KEY-----\n`
}

function kubeconfig(name: string): string {
  mkdirSync(join(dir, name))
  file(`${name}/token-file`, plant(`${name} token file`))
  file(`${name}/key.pem`, pem(`${name} key file`))
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const user = {
    token: plant(`${name} token`),
    password: plant(`${name} password`),
    'client-key-data': base64(pem(`${name} key data`)),
    'client-key': 'key.pem',
    tokenFile: 'token-file',
    exec: {
      command: 'plugin',
      args: ['get-token', `--client-secret=${plant(`${name} argument`)}`],
      env: [{ name: 'API_KEY', value: plant(`${name} variable`) }],
    },
    'auth-provider': { name: 'oidc', config: { 'refresh-token': plant(`${name} refresh`) } },
  }
  const server = `https://admin:${encodeURIComponent(plant(`${name} server`))}@host:6443`
  const content = { clusters: [{ name: 'c', cluster: { server } }], users: [{ name: 'u', user }] }
  return file(`${name}/config`, JSON.stringify(content))
}

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-planted-'))
  const basic = Buffer.from(`user:${plant('tracing header basic')}`).toString('base64')
  const headers = `authorization: Bearer ${plant('tracing header bearer')}\nx-other: ${plant('tracing header')}\nx-basic: Basic ${basic}\n`
  const s3 = `[default]\naws_access_key_id = ID\naws_secret_access_key = ${plant('s3 secret key')}\naws_session_token=${plant('s3 session token')}\n`
  const usual = loadConfig({ flags: { source: 'files', configDir: 'given' }, env: {}, readFile: () => '' })
  config = {
    ...usual,
    redisUrl: `redis+cluster://${encodeURIComponent(plant('redis user'))}:${encodeURIComponent(plant('redis password'))}@127.0.0.1:1,127.0.0.1:2`,
    redisPasswordFile: file('redis', `${plant('redis password file')}\n`),
    redisSentinelPasswordFile: file('sentinel', plant('sentinel password file')),
    redisKeyFile: file('redis.key', pem('redis key')),
    storeKeyFile: file('store.key', plant('store key')),
    tlsPrivateKeyFile: file('tls.key', pem('serving key')),
    adminTlsPrivateKeyFile: file('admin.key', pem('admin key')),
    healthTlsPrivateKeyFile: file('health.key', pem('health key')),
    adminTokenFile: file('admin-token', `${plant('admin token')}\n`),
    metricsTokenFile: file('metrics-token', plant('metrics token')),
    controlOidcIssuerUrl: `https://client:${encodeURIComponent(plant('oidc secret'))}@issuer.example`,
    auditWebhookConfigFile: kubeconfig('audit-webhook'),
    tracingOtlpHeadersFile: file('headers', headers),
    sessionRecordingS3CredentialsFile: file('s3', s3),
    kubeconfig: kubeconfig('objects'),
    protection: {
      ...usual.protection,
      kubeconfig: kubeconfig('protection'),
      workloadsKubeconfig: kubeconfig('workloads'),
    },
  }
  const compiled = {
    name: 'prod',
    client: { bearerToken: plant('bearer token'), key: pem('client key') },
    serving: { key: pem('cluster serving key') },
  }
  clusters = { values: () => [{ compiled }] } as unknown as ClusterTable
})
after(() => rmSync(dir, { recursive: true, force: true }))

/** As it is, URL-encoded, in base64 wherever it begins, alone and after a user, and in JSON within JSON. */
function formsOf(secret: string): readonly string[] {
  const base64 = (['base64', 'base64url'] as const).flatMap((encoding) =>
    ['', 'u:', 'us:', 'use:', 'user:'].map((user) => Buffer.from(`${user}${secret}`).toString(encoding)),
  )
  return [secret, encodeURIComponent(secret), encodeURI(secret), JSON.stringify({ token: secret }), ...base64]
}

/** What may not be found: at least four of five characters of a form, its ends may be those of neighbours. */
function tracesOf(secret: string): readonly string[] {
  const shifted = (['base64', 'base64url'] as const).flatMap((encoding) =>
    [0, 1, 2].map((shift) =>
      Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)])
        .toString(encoding)
        .slice(4, -4),
    ),
  )
  return [secret, encodeURIComponent(secret), ...shifted]
}

function assertClean(text: string): void {
  for (const [where, secret] of planted) {
    for (const trace of tracesOf(secret)) {
      assert.ok(trace.length >= LEAST_TRACE, where)
      assert.ok(!text.includes(trace), `the secret of ${where} is shown as ${trace}`)
    }
  }
}
const LEAST_TRACE = 12

/** A state, or a log, that repeats all secrets in all places. */
function echoes(): {
  readonly messages: readonly string[]
  readonly annotations: Readonly<Record<string, string>>
  readonly byName: ReadonlyMap<string, number>
} {
  const forms = [...planted.values()].flatMap(formsOf)
  const applied = { data: Object.fromEntries(forms.map((form, i) => [`f${i}`, form])) }
  return {
    messages: forms.map((form) => `https://up:6443: 401: ${form} is not accepted; GET /api/${form}?x=${form}&y=1`),
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(applied), note: forms.join() },
    byName: new Map(forms.map((form, i) => [form, i])),
  }
}

async function bundleText(known: KnownSecrets): Promise<string> {
  const { messages } = echoes()
  const lines = messages.map((message) => `${JSON.stringify({ level: 'warn', msg: message })}\n`).join('')
  const route = supportBundleRoute({
    config,
    version: { version: '1', note: messages[0] },
    describe: () => echoes(),
    metrics: {
      contentType: 'text/plain',
      text: () => Promise.resolve(`m{user=${JSON.stringify(messages.join())}} 1\n`),
    },
    recentLog: () => `${lines}the end\n`,
    profiles: { take: () => Promise.resolve([{ name: 'main.cpuprofile', text: messages.join('\n') }]) } as never,
    redaction: () => known.redaction(),
  })
  const request = { query: new URLSearchParams({ profile: '1' }) } as never
  const answer = await route.answer(request, undefined as never)
  assert.ok('body' in answer && Buffer.isBuffer(answer.body))
  return String(gunzipSync(answer.body))
}

test('no planted secret is in a support bundle, in no encoding', async () => {
  const text = await bundleText(new KnownSecrets(config, clusters))
  assert.ok(planted.size > 45)
  // A test that finds nothing must be able to find something.
  assert.throws(() => assertClean(JSON.stringify([...echoes().messages])), /is shown as/)
  assertClean(text)
  // What is not secret is still there.
  for (const kept of [
    'https://up:6443: 401: ',
    ' is not accepted',
    '127.0.0.1:1',
    'issuer.example',
    'the end',
    '"level":"warn"',
  ]) {
    assert.ok(text.includes(kept), kept)
  }
})

test('no planted secret is in what /debug/config shows', () => {
  const shown = JSON.stringify(new KnownSecrets(config, clusters).redaction().object(echoes()))
  assertClean(shown)
  assert.match(shown, /is not accepted/)
})

test('what a file held before is still taken out, what is too short or cannot be read is told', () => {
  const tokenFile = file('changing', 'first-token-of-it')
  const known = new KnownSecrets(
    { ...config, adminTokenFile: tokenFile, metricsTokenFile: join(dir, 'none') },
    clusters,
  )
  file('changing', 'abc')
  const redaction = known.redaction(['given-by-others'])
  assert.equal(redaction.text('first-token-of-it abc given-by-others'), '[redacted] abc [redacted]')
  assert.deepEqual(redaction.report, {
    shorterThan: 6,
    tooShortToLookFor: ['adminTokenFile'],
    filesNotRead: ['metricsTokenFile'],
  })
})
