// The examples in config/ load as they stand, without an error or a warning, and hold what their comments promise.

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { check } from '../../src/cli/check.ts'
import { upstreamClusterKind } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { buildClusterIndex } from '../../src/gateway/core/cluster/cluster-index.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { explainRequest } from '../../src/gateway/core/explain/explain-request.ts'
import { membersFact } from '../../src/gateway/core/status/members.ts'
import { resolveAtWrite, type SecretAtWrite } from '../../src/gateway/io/secrets/references-at-write.ts'
import { loadDirectory } from '../../src/gateway/io/sources/files/source.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import { type ResourceKind, resourceName } from '../../src/kube/api/resource-kind.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import { writeKeyPair } from '../../src/pki/io/pki-files.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { checkPodProtector } from '../../src/protection/api/pod-protector-kind.ts'
import { readProtector } from '../../src/protection/core/requests/read-protector.ts'
import { ControlClient } from '../harness/clients/control-client.ts'
import { startControl } from '../harness/gateways/control.ts'

const EXAMPLES = join(import.meta.dirname, '../../config')
let dir: string

/** A copy, with the files under pki/ that the examples ask their reader for. */
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-examples-'))
  cpSync(join(EXAMPLES, 'clusters'), dir, { recursive: true })
  const ca = createCA({ commonName: 'ca' })
  const pki = join(dir, 'pki')
  writeKeyPair(pki, 'ca', ca)
  writeKeyPair(pki, 'tls', issueCertificate(ca, { commonName: 'x', usage: 'server', dnsNames: ['prod.example.com'] }))
  for (const name of ['prod', 'staging']) {
    writeKeyPair(pki, `${name}-ca`, ca)
    writeKeyPair(pki, `${name}-gateway`, issueCertificate(ca, { commonName: 'portcullis', usage: 'client' }))
  }
})

after(() => rmSync(dir, { recursive: true, force: true }))

test('the UpstreamClusters load without a problem', async () => {
  const { clusters, problems } = await loadDirectory(dir, nodePemChecks)
  assert.deepEqual(problems, [])
  assert.deepEqual([...clusters.keys()].sort(), ['prod', 'staging'])
})

test('the podProtection and scaleProtection in their comments are valid, too', async () => {
  for (const name of ['prod', 'staging']) {
    const file = join(dir, `${name}.yaml`)
    const text = readFileSync(file, 'utf8')
    const shown = text.replaceAll(/^ {2}# ((?:pod|scale)Protection:.*\n(?: {2}# .*\n)*)/gm, (block) =>
      block.replaceAll(/^ {2}# /gm, '  '),
    )
    assert.notEqual(shown, text)
    const folder = join(dir, 'shown')
    cpSync(join(dir, 'pki'), join(folder, 'pki'), { recursive: true })
    writeFileSync(join(folder, `${name}.yaml`), shown)
    const { clusters, problems } = await loadDirectory(folder, nodePemChecks)
    assert.deepEqual(problems, [])
    assert.deepEqual(
      [...clusters.values()].map((one) => compileCluster(one).protection?.cell),
      [name],
    )
    const scaleProtected = [...clusters.values()].map((one) => compileCluster(one).scaleProtection !== undefined)
    assert.deepEqual(scaleProtected, [name === 'prod'])
    rmSync(folder, { recursive: true })
  }
})

test('the two-user example: pod lists are limited for ordinary users, and not for the controller manager', async () => {
  const { clusters } = await loadDirectory(dir, nodePemChecks)
  const index = buildClusterIndex([...clusters.values()].map((one) => compileCluster(one)))
  const flowControl = (user: string, groups: string[], method: string, target: string): string | null =>
    explainRequest(index, { host: 'prod.example.com', method, target, user, groups }, Date.parse('2026-01-01'))
      .flowControl
  const authenticated = ['system:authenticated']
  const pods = '/api/v1/namespaces/shop/pods'
  assert.equal(flowControl('alice', authenticated, 'GET', pods), 'pod-lists')
  assert.equal(flowControl('system:kube-controller-manager', authenticated, 'GET', pods), 'system')
  assert.equal(flowControl('system:node:a', ['system:nodes', ...authenticated], 'GET', pods), 'system')
  assert.equal(flowControl('alice', authenticated, 'GET', `${pods}/web`), 'everyone')
  assert.equal(flowControl('alice', authenticated, 'GET', '/version'), 'everyone')
})

test('the cluster is found by host name, wildcard, path and as the default', async () => {
  const { clusters } = await loadDirectory(dir, nodePemChecks)
  const index = buildClusterIndex([...clusters.values()].map((one) => compileCluster(one)))
  const clusterOf = (host: string, target = '/version'): string | null =>
    explainRequest(index, { host, method: 'GET', target, user: 'alice' }, 0).cluster
  assert.equal(clusterOf('prod.example.com'), 'prod')
  assert.equal(clusterOf('api.prod.example.com'), 'prod')
  assert.equal(clusterOf('staging.example.com'), 'staging')
  assert.equal(clusterOf('203.0.113.7', '/clusters/staging/version'), 'staging')
  assert.equal(clusterOf('203.0.113.7'), 'prod')
})

test('the clusters read as one are those of the examples, which have what is read of them in the caches of their comments', async () => {
  const folder = join(dir, 'federated')
  cpSync(join(dir, 'pki'), join(folder, 'pki'), { recursive: true })
  cpSync(join(EXAMPLES, 'federations'), folder, { recursive: true })
  for (const name of ['prod', 'staging']) {
    const text = readFileSync(join(dir, `${name}.yaml`), 'utf8')
    const shown = text.replaceAll(/^ {2}# cache:.*\n(?: {2}# .*\n)*/gm, (block) => block.replaceAll(/^ {2}# /gm, '  '))
    writeFileSync(join(folder, `${name}.yaml`), shown)
  }
  const { clusters, problems } = await loadDirectory(folder, nodePemChecks)
  assert.deepEqual(problems, [])
  const compiled = new Map(Array.from(clusters.values(), (one) => [one.object.metadata.name, compileCluster(one)]))
  const { federation } = compiled.get('all') ?? {}
  assert.ok(federation !== undefined)
  const { members } = membersFact(federation, { get: (name) => compiled.get(name), cached: () => [] })
  // Nothing is wrong with their objects: they only have not been read.
  assert.deepEqual(
    members.map(({ member, state, loading }) => [member, state, loading]),
    [
      ['prod', 'NotRead', true],
      ['staging', 'NotRead', true],
    ],
  )
  rmSync(folder, { recursive: true })
})

test('check: their files are missing as they stand, and --no-secrets looks at the rest', async () => {
  const lines: string[] = []
  const options = {
    dir: join(EXAMPLES, 'clusters'),
    output: 'text',
    out: (text: string) => void lines.push(text),
  } as const
  assert.equal(await check(options), 1)
  assert.match(lines.join(''), /keyRef\.file: "pki\/prod-gateway\.key" cannot be read.*\n {2}fix: .*check --no-secrets/)
  lines.length = 0
  assert.equal(await check({ ...options, secrets: false }), 0)
  assert.equal(lines.join(''), 'valid: UpstreamCluster prod, staging (0 errors, 0 warnings)\n')
})

test('the objects for the embedded API server are applied as they stand, without a warning', async () => {
  const clusters: ResourceKind = upstreamClusterKind({
    resolve: (object) => {
      const secretOf = (namespace: string, name: string): SecretAtWrite =>
        control.store.get({ resource: resourceName(SECRETS), namespace, name })?.object
      return resolveAtWrite(object, secretOf, ['portcullis-system', 'default'])
    },
  })
  const control = await startControl({ clusters })
  const client = new ControlClient(control, { cert: control.admin })
  try {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portcullis-system' } }
    assert.equal((await client.call('POST', '/api/v1/namespaces', { body: namespace })).code, 201)
    const text = readFileSync(join(EXAMPLES, 'objects/prod.yaml'), 'utf8')
    const [secret, cluster] = parseAllDocuments(text).map((document) => document.toJS())
    const paths = [
      '/api/v1/namespaces/portcullis-system/secrets',
      '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters',
    ]
    for (const [at, body] of [secret, cluster].entries()) {
      const { code, headers, text: answer } = await client.call('POST', `${paths[at]}?fieldValidation=Strict`, { body })
      assert.deepEqual([code, headers['warning']], [201, undefined], answer)
    }
  } finally {
    client.close()
    await control.stop()
  }
  const loaded = await loadDirectory(join(EXAMPLES, 'objects'), nodePemChecks)
  assert.deepEqual([[...loaded.clusters.keys()], loaded.problems], [['prod'], []])
})

test('the PodProtector is valid, and is read unchanged', () => {
  const object = parse(readFileSync(join(EXAMPLES, 'protectors/web.yaml'), 'utf8'))
  assert.deepEqual(checkPodProtector(object), [])
  const { protector, faults } = readProtector(object, undefined)
  assert.deepEqual(faults, [])
  assert.deepEqual(protector.spec, object.spec)
})

test('the settings load, and show the defaults of serve', () => {
  const readFile = (path: string): string => readFileSync(path, 'utf8')
  const flags = { config: join(EXAMPLES, 'gateway.yaml') }
  const fromFile: Config = loadConfig({ flags, env: {}, readFile })
  const byDefault = loadConfig({ flags: { configDir: 'config/clusters' }, env: {}, readFile })
  assert.deepEqual({ ...fromFile }, { ...byDefault })
})

test('the update trigger of the docs writes where the RBAC file lets it', () => {
  const page = readFileSync(join(EXAMPLES, '../docs/upstream-cluster.md'), 'utf8')
  const [, namespace = ''] = /updateTrigger:.*\n\s+namespace: (\S+)/.exec(page) ?? []
  const rbac = readFileSync(join(EXAMPLES, '../deploy/rbac/protection-worker.yaml'), 'utf8')
  const objects = parseAllDocuments(rbac).map((document) => document.toJS())
  for (const kind of ['Role', 'RoleBinding']) {
    assert.ok(
      objects.some((one) => one.kind === kind && one.metadata.namespace === namespace),
      `${kind} in ${namespace}`,
    )
  }
})
