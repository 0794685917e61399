// The support bundle of a process: what is in it, and that no secret is, in whatever place one was planted, plain or in base64.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { supportBundle } from '../../src/cli/inside.ts'
import type { UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { RecentLines } from '../../src/kit/io/logs/recent-lines.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'

let dir: string
let gateway: InProcessGateway
const secrets = new Map<string, string>()

/** A secret that nothing else contains. */
function plant(where: string): string {
  const secret = `PLANTED${secrets.size}qZ7xW-${where.replaceAll(/[^a-z]/g, '')}`
  secrets.set(where, secret)
  return secret
}

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-bundle-'))
  const ca = createCA({ commonName: 'ca' })
  const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'client' })
  secrets.set('private key', pair.keyPem.split('\n')[1] ?? '')
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const annotation = plant('annotation')
  const cluster = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: {
      name: 'prod',
      annotations: {
        'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({ token: annotation }),
        note: `https://user:${plant('annotation url')}@host/`,
        encoded: base64(plant('annotation base')),
      },
    },
    spec: {
      servers: [{ endpoint: 'https://127.0.0.1:1' }],
      clientConfig: {
        bearerToken: base64(plant('bearer token')),
        keyData: base64(pair.keyPem),
        certData: base64(pair.certPem),
        insecure: true,
      },
      secureServing: { keyData: base64(pair.keyPem), certData: base64(pair.certPem) },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
    },
  } as unknown as UpstreamCluster
  const adminTokenFile = join(dir, 'token')
  writeFileSync(adminTokenFile, plant('admin token'))
  // State, log and metrics repeat it: it is the name of a cluster, too.
  const repeated = 'planted-value-that-is-a-name'
  secrets.set('metrics token', repeated)
  const metricsTokenFile = join(dir, 'metrics-token')
  writeFileSync(metricsTokenFile, repeated)
  const overrides = {
    adminTokenFile,
    metricsTokenFile,
    logLevel: 'debug',
    redisUrl: `redis://user:${plant('redis')}@127.0.0.1:1`,
    controlOidcIssuerUrl: `https://client:${plant('oidc')}@issuer.example`,
  } as const
  const named = { ...cluster, metadata: { name: repeated } }
  gateway = await startInProcess([cluster, named], overrides, Promise.resolve(), { logLines: { write: () => {} } })
  for (const [name, value] of [
    ['authorization', `Bearer ${plant('client token')}`],
    ['cookie', `session=${plant('cookie')}`],
  ] as const) {
    await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config?token=${plant('query')}`, {
      headers: { [name]: value },
    }).then((response) => response.text())
  }
})
after(async () => {
  await gateway.stop()
  rmSync(dir, { recursive: true, force: true })
})

async function bundle(
  name: string,
  profile = 0,
): Promise<{ readonly code: number; readonly said: string; readonly file: string }> {
  let said = ''
  const keep = (text: string): void => {
    said += text
  }
  const file = join(dir, name)
  const admin = `http://127.0.0.1:${gateway.adminPort}`
  const tokenFile = join(dir, 'token')
  return { code: await supportBundle({ admin, tokenFile, file, profile, out: keep, err: keep }), said, file }
}

function read(file: string, name: string): string {
  return String(execFileSync('tar', ['-xzOf', file, name], { maxBuffer: 2 ** 28 }))
}

test('it holds what helps, is for its owner alone, and overwrites nothing', async () => {
  const { code, said, file } = await bundle('one.tar.gz', 1)
  assert.equal(code, 0, said)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const names = String(execFileSync('tar', ['-tzf', file]))
    .trim()
    .split('\n')
  const expected = ['version.json', 'settings.json', 'state.json', 'metrics.txt', 'log.txt', 'main.cpuprofile']
  assert.deepEqual(names.slice(0, expected.length), expected)
  assert.equal(JSON.parse(read(file, 'settings.json')).logLevel, 'debug')
  assert.equal(JSON.parse(read(file, 'version.json')).node, process.version)
  assert.match(read(file, 'metrics.txt'), /^portcullis_build_info\{/m)
  assert.ok(JSON.parse(read(file, 'state.json')).clusters.some(({ name }: { name: string }) => name === 'prod'))
  assert.match(read(file, 'log.txt'), /"msg":"cluster applied"/)
  assert.match((await bundle('one.tar.gz')).said, /one\.tar\.gz.*name a file that does not exist yet/)
})

test('no secret is in it, nor its base64', async () => {
  const { code, said, file } = await bundle('two.tar.gz')
  assert.equal(code, 0, said)
  const text = String(execFileSync('tar', ['-xzOf', file], { maxBuffer: 2 ** 28 }))
  // A test that finds nothing must be able to find something.
  assert.match(text, /"prod"/)
  for (const [where, secret] of secrets) {
    assert.ok(secret.length > 8, where)
    for (const form of formsOf(secret)) assert.ok(!text.includes(form), `the secret of ${where} is in the bundle`)
  }
})

test('no secret is in /debug/config', async () => {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config`, {
    headers: { authorization: `Bearer ${secrets.get('admin token')}` },
  })
  const text = await response.text()
  assert.match(text, /"name": "\[redacted\]"/)
  for (const [where, secret] of secrets) {
    for (const form of formsOf(secret)) assert.ok(!text.includes(form), `the secret of ${where} is shown`)
  }
})

/** Itself, and its base64 wherever in a text it begins. */
function formsOf(secret: string): readonly string[] {
  const shifted = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]).toString('base64')
    return text.slice(4, -4)
  })
  return [secret, encodeURIComponent(secret), ...shifted]
}

test('the last lines of the log are there, bounded', () => {
  const passed: string[] = []
  const recent = new RecentLines({ write: (line) => void passed.push(line) }, 100)
  for (let i = 0; i < 1000; i++) recent.write(`line ${i} token Bearer`)
  assert.equal(passed.length, 1000)
  const lines = recent.text().trim().split('\n')
  assert.ok(lines.length <= 5 && lines.at(-1) === 'line 999 token Bearer')
  recent.write('x'.repeat(1000))
  assert.equal(recent.text(), '')
})
