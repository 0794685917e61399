// How other systems' configurations are converted, and what is reported.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { MemoryObjects } from '../../../test/harness/objects/memory-objects.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { resolveAtWrite } from '../../gateway/io/secrets/references-at-write.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { createCA, issueCertificate } from '../../pki/io/pki.ts'
import { type ImportKubeconfigOptions, importKubeconfig } from './kubeconfig.ts'
import { importKubeGateway } from './kubegateway.ts'

const dir = mkdtempSync(join(tmpdir(), 'portcullis-'))
after(() => rmSync(dir, { recursive: true, force: true }))
const ca = createCA({ commonName: 'upstream' })
const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'client' })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  // biome-ignore lint/suspicious/noExplicitAny: a document of any shape
  readonly documents: readonly Record<string, any>[]
}

async function run(
  command: (io: { out: (text: string) => void; err: (text: string) => void }) => Promise<number> | number,
): Promise<Ran> {
  let out = ''
  let err = ''
  const code = await command({
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
  })
  const documents = out.includes('kind:') ? parseAllDocuments(out).map((document) => document.toJS()) : []
  return { code, out, err, documents }
}

function fromKubeconfig(config: object | string, options: Partial<ImportKubeconfigOptions> = {}): Promise<Ran> {
  const file = join(dir, 'kubeconfig')
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config))
  // No cluster is asked, except in the tests of that.
  const clientCA = (): Promise<string> => Promise.reject(new Error('no answer in time'))
  return run((io) => importKubeconfig({ file, clientCA, ...io, ...options }))
}

function kubeconfig(cluster: object, user: object, context = 'prod'): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: context, context: { cluster: 'c', user: 'u' } }],
  }
}

/** The spec of the first one. */
function specOf(documents: Ran['documents']): Record<string, unknown> {
  return documents.find(({ kind }) => kind === 'UpstreamCluster')?.['spec']
}

const SERVER = { server: 'https://10.0.0.1:6443', 'certificate-authority-data': base64(ca.certPem) }

describe('a kubeconfig', () => {
  test('becomes a Secret and an UpstreamCluster that names it', async () => {
    writeFileSync(join(dir, 'client.crt'), pair.certPem)
    writeFileSync(join(dir, 'client.key'), pair.keyPem)
    const user = { 'client-certificate': 'client.crt', 'client-key': 'client.key', token: 'abc' }
    const { code, err, documents } = await fromKubeconfig(kubeconfig({ ...SERVER, 'tls-server-name': 'k8s' }, user), {
      namespace: 'gw',
      offline: true,
    })
    assert.equal(code, 0, err)
    assert.match(err, /^note: prod: its user must be allowed to impersonate: .*\n/)
    assert.equal(specOf(documents)['secureServing'], undefined)
    assert.match(err, /warning: .*clientCARef: users with client certificates get 401: no cluster was asked/)
    const at = { namespace: 'gw', name: 'prod-upstream' }
    const [secret] = documents
    const annotations = { 'portcullis.io/usable-by': 'prod' }
    assert.deepEqual(secret?.['metadata'], { name: 'prod-upstream', namespace: 'gw', annotations })
    assert.deepEqual(secret?.['data'], {
      'ca.crt': base64(ca.certPem),
      'tls.crt': base64(pair.certPem),
      'tls.key': base64(pair.keyPem),
      token: base64('abc'),
    })
    assert.deepEqual(specOf(documents)['servers'], [{ endpoint: 'https://10.0.0.1:6443' }])
    assert.deepEqual(specOf(documents)['clientConfig'], {
      serverName: 'k8s',
      caRef: { ...at, key: 'ca.crt' },
      certRef: { ...at, key: 'tls.crt' },
      keyRef: { ...at, key: 'tls.key' },
      bearerTokenRef: { ...at, key: 'token' },
    })
  })

  test('writes Secrets that are released to their own UpstreamCluster alone, in every namespace', async () => {
    const config = kubeconfig(SERVER, { token: 'a' }) as { contexts: object[] }
    const context = { cluster: 'c', user: 'u' }
    config.contexts = ['Admin@PROD', 'admin-prod'].map((name) => ({ name, context }))
    for (const options of [{}, { namespace: 'gw' }]) {
      const { documents } = await fromKubeconfig(config, { offline: true, ...options })
      const secrets = documents.filter(({ kind }) => kind === 'Secret')
      assert.deepEqual(
        secrets.map(({ metadata }) => metadata.annotations),
        ['admin-prod', 'admin-prod-2'].map((name) => ({ 'portcullis.io/usable-by': name })),
      )
      for (const object of documents.filter(({ kind }) => kind === 'UpstreamCluster')) {
        const secretOf = (namespace: string, name: string): JsonObject | undefined =>
          secrets.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name)
        assert.deepEqual(resolveAtWrite(object, secretOf, ['portcullis-system']).problems, [])
      }
    }
  })

  test('the CA of client certificates is the cluster’s own, or a message says that no user can sign in by certificate', async () => {
    const clientCA = createCA({ commonName: 'clients' }).certPem
    const asked: string[] = []
    const answer = async (context: string): Promise<string> => {
      asked.push(context)
      return clientCA
    }
    const config = kubeconfig(SERVER, { token: 'a' })
    const found = await fromKubeconfig(config, { clientCA: answer })
    assert.deepEqual(asked, ['prod'])
    const reference = { namespace: 'portcullis-system', name: 'prod-upstream', key: 'client-ca.crt' }
    assert.deepEqual(specOf(found.documents)['secureServing'], { clientCARef: reference })
    assert.equal(found.documents[0]?.['data']['client-ca.crt'], base64(clientCA))
    assert.doesNotMatch(found.err, /401/)
    const away = await fromKubeconfig(config)
    assert.match(away.err, /warning: .*get 401: the cluster does not show it: no answer in time\./)
    assert.equal((await fromKubeconfig(config, { clientCA: async () => '' })).code, 0)
    // An attacker in the middle could name another CA, and impersonate any user.
    const unverified = { server: SERVER.server, 'insecure-skip-tls-verify': true }
    const insecure = await fromKubeconfig(kubeconfig(unverified, { token: 'a' }), { clientCA: answer })
    assert.equal(specOf(insecure.documents)['secureServing'], undefined)
    assert.match(insecure.err, /get 401: a server that is not verified is not trusted/)
    assert.deepEqual(asked, ['prod'])
  })

  const cannot: [string, object, RegExp][] = [
    [
      'exec',
      kubeconfig(SERVER, { exec: { command: 'aws' } }),
      /error: prod: cannot take over an exec credential \("aws"\)/,
    ],
    [
      'auth-provider',
      kubeconfig(SERVER, { 'auth-provider': { name: 'oidc' } }),
      /error: prod: cannot take over an auth-provider/,
    ],
    ['password', kubeconfig(SERVER, { username: 'a', password: 'b' }), /error: prod: cannot take over a password/],
    [
      'a path',
      kubeconfig({ ...SERVER, server: 'https://rancher/k8s/clusters/x' }, { token: 'a' }),
      /error: prod: the server .* cannot be an endpoint: it has more than/,
    ],
    ['no server', kubeconfig({}, { token: 'a' }), /error: prod: its cluster has no server/],
    [
      'a file that is not there',
      kubeconfig({ server: 'https://a', 'certificate-authority': 'nowhere.crt' }, { token: 'a' }),
      /error: prod: cannot read .*nowhere\.crt/,
    ],
    [
      'no such cluster',
      { kind: 'Config', contexts: [{ name: 'prod', context: { cluster: '__proto__' } }] },
      /error: prod: names no cluster of /,
    ],
  ]
  for (const [what, config, expected] of cannot) {
    test(`${what}: said, with exit code 1`, async () => {
      const { code, err } = await fromKubeconfig(config)
      assert.match(err, expected)
      assert.equal(code, 1)
    })
  }

  test('each context has a name of its own that objects may have', async () => {
    const config = kubeconfig(SERVER, { token: 'a' }) as { contexts: object[] }
    const context = { cluster: 'c', user: 'u' }
    config.contexts = ['Admin@PROD', 'admin-prod', 'arn:aws:eks:eu:1:cluster/x', '***', '__proto__'].map((name) => ({
      name,
      context,
    }))
    const { documents, err } = await fromKubeconfig(config)
    assert.deepEqual(
      documents.filter(({ kind }) => kind === 'UpstreamCluster').map(({ metadata }) => metadata.name),
      ['admin-prod', 'admin-prod-2', 'arn-aws-eks-eu-1-cluster-x', 'cluster', 'proto'],
    )
    assert.match(err, /note: admin-prod: is the context "Admin@PROD"/)
  })

  test('--dir: files for the owner alone, and none that exists is overwritten', async () => {
    const target = join(dir, 'out')
    const config = kubeconfig(SERVER, { token: 'a' })
    const first = await fromKubeconfig(config, { dir: target })
    assert.equal(first.out, `${target}/prod.yaml\n`)
    const file = join(target, 'prod.yaml')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const text = readFileSync(file, 'utf8')
    assert.match(text, /^# note: its user must be allowed to impersonate/)
    const second = await fromKubeconfig(config, { dir: target })
    assert.match(second.err, /^error: .* already has: prod\.yaml; give another --dir, or --force/)
    assert.equal(second.code, 1)
    assert.equal((await fromKubeconfig(config, { dir: target, force: true })).code, 0)
  })

  for (const [what, text, expected] of [
    ['no YAML', 'a: [', /is not YAML: /],
    ['another kind', '{"kind":"Pod"}', /is not a kubeconfig; it begins with/],
    ['a list', '[]', /is not a kubeconfig/],
    ['nothing', '', /is not a kubeconfig/],
    ['no contexts', '{"kind":"Config"}', /has no contexts/],
  ] as const) {
    test(`${what}: one line`, async () => {
      const { code, err } = await fromKubeconfig(text)
      assert.match(err, expected)
      assert.match(err, /^error: [^\n]*\n$/)
      assert.equal(code, 1)
    })
  }
})

describe('a KubeGateway control plane', () => {
  const spec = {
    servers: [{ endpoint: 'https://10.0.0.1:6443' }],
    clientConfig: { bearerToken: base64('token'), caData: base64(ca.certPem) },
    dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], users: ['-a', '-b'] }] }],
    logging: { mode: 'off' },
    degrade: { mode: 'ReadOnly', reason: 'x', expiresAt: '2030-01-31T12:00:00Z' },
  }

  function fromControlPlane(...items: [name: string, spec: unknown][]): Promise<Ran> {
    const objects = new MemoryObjects()
    for (const [name, itemSpec] of items) {
      const annotations = {
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
        'proxy.kubegateway.io/feature-gates': 'DenyAllRequests=true',
      }
      objects.put(UPSTREAM_CLUSTERS, { metadata: { name, annotations }, spec: itemSpec, status: {} })
    }
    return run((io) => importKubeGateway({ client: objects, ...io }))
  }

  test('its objects keep what they mean, and every difference is said', async () => {
    const { code, out, err, documents } = await fromControlPlane(['prod', spec])
    assert.equal(code, 0, err)
    const [cluster] = documents
    assert.deepEqual(cluster?.['metadata'], {
      name: 'prod',
      annotations: { 'proxy.kubegateway.io/feature-gates': 'DenyAllRequests=true' },
    })
    assert.equal(cluster?.['status'], undefined)
    assert.equal(cluster?.['spec'].clientConfig.serverName, 'prod')
    assert.deepEqual(cluster?.['spec'].healthCheck, { path: '/healthz', unhealthyThreshold: 1 })
    assert.deepEqual(cluster?.['spec'].dispatchPolicies, spec.dispatchPolicies)
    assert.match(err, /note: prod: spec\.dispatchPolicies\[0\]\.rules\[0\]\.users: matches everything except these/)
    assert.match(out, /mode: ["']off["']/, 'a string for kubectl, too')
    assert.match(out, /expiresAt: ["']2030/)
    assert.match(err, /note: prod: spec\.clientConfig\.bearerToken: is in clear text: .* bearerTokenRef/)
  })

  test('what KubeGateway accepts and the gateway does not is fixed, or an error', async () => {
    const insecure = { ...spec, clientConfig: { ...spec.clientConfig, insecure: true } }
    const fixed = await fromControlPlane(['prod', insecure])
    assert.equal(fixed.code, 0, fixed.err)
    assert.match(fixed.err, /insecure: removed: with a CA it has no effect/)
    const broken = await fromControlPlane(
      ['good', spec],
      ['bad', { ...spec, servers: [{ endpoint: 'nonsense' }] }],
      ['none', 'x'],
    )
    assert.equal(broken.code, 1)
    assert.match(broken.err, /error: bad: spec\.servers\[0\]\.endpoint: /)
    assert.match(broken.err, /error: none: spec: /)
    assert.doesNotMatch(broken.err, /error: good/)
    assert.equal(broken.documents.length, 3)
  })
})
