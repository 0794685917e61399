// `portcullis kubeconfig`: the server of a cluster, which credentials go in, and what is refused.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { MemoryObjects } from '../../test/harness/objects/memory-objects.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import { statusError } from '../kube/api/status.ts'
import { type KubeconfigOptions, kubeconfig } from './kubeconfig.ts'

const configDir = mkdtempSync(join(tmpdir(), 'portcullis-kubeconfig-'))
after(() => rmSync(configDir, { recursive: true, force: true }))

for (const [name, serverNames] of [
  ['prod', ['*.example.com', 'prod.example.com']],
  ['plain', undefined],
] as const) {
  const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [{ endpoint: 'https://192.0.2.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' },
      ...(serverNames === undefined ? {} : { secureServing: { serverNames } }),
      dispatchPolicies: [{ rules }],
    },
  }
  writeFileSync(join(configDir, `${name}.yaml`), JSON.stringify(object), { mode: 0o600 })
}

async function run(options: Partial<KubeconfigOptions>): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await kubeconfig({
    cluster: 'prod',
    ...(options.client === undefined && { configDir }),
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    ...options,
  })
  return { code, out: out.join(''), err: err.join('') }
}

async function serverOf(options: Partial<KubeconfigOptions>): Promise<string> {
  const { code, out, err } = await run(options)
  assert.equal(code, 0, err)
  return parse(out).clusters[0].cluster.server
}

test('the server: a host name of the cluster, or the path prefix', async () => {
  assert.equal(await serverOf({}), 'https://prod.example.com:8443')
  assert.equal(await serverOf({ cluster: 'plain' }), 'https://plain:8443')
  assert.equal(await serverOf({ path: true }), 'https://prod.example.com:8443/clusters/prod')
  assert.equal(await serverOf({ server: 'https://192.0.2.1:8443/' }), 'https://192.0.2.1:8443/clusters/prod')
  assert.equal(await serverOf({ server: 'https://[fd00::1]:8443' }), 'https://[fd00::1]:8443/clusters/prod')
  assert.equal(await serverOf({ server: 'https://prod.example.com:6443' }), 'https://prod.example.com:6443')
  assert.equal(await serverOf({ server: 'https://192.0.2.1', path: false }), 'https://192.0.2.1')
})

test('credentials come from files', async () => {
  const file = (name: string, text: string): string => {
    writeFileSync(join(configDir, name), text)
    return join(configDir, name)
  }
  const { out } = await run({
    userCertFile: file('user.crt', 'CERT'),
    userKeyFile: file('user.key', 'KEY'),
    tokenFile: file('token', 'secret\n'),
    caFile: file('ca.crt', 'CA'),
  })
  const document = parse(out)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  assert.deepEqual(document.users[0].user, {
    'client-certificate-data': base64('CERT'),
    'client-key-data': base64('KEY'),
    token: 'secret',
  })
  assert.equal(document.clusters[0].cluster['certificate-authority-data'], base64('CA'))
  assert.equal(document['current-context'], 'prod')
})

test('an unknown cluster names the known ones; other errors say what is wrong', async () => {
  const unknown = await run({ cluster: 'prd' })
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /no cluster "prd".*did you mean prod\? Known clusters: plain, prod\n$/)
  const wrong: [Partial<KubeconfigOptions>, RegExp][] = [
    [{ server: 'http://x:80' }, /--server/],
    [{ server: 'https://x:80/path' }, /--server/],
    [{ userCertFile: 'x' }, /--user-key/],
    [{ caFile: join(configDir, 'missing') }, /cannot read .*missing/],
  ]
  for (const [options, message] of wrong) {
    const { code, out, err } = await run(options)
    assert.equal(code, 1)
    assert.equal(out, '')
    assert.match(err, message)
    assert.match(err, /^error: [^\n]+\n$/)
  }
})

/** Objects in an API server, with references to Secrets that no user may read. */
function served(specs: Readonly<Record<string, object>>): MemoryObjects {
  const objects = new MemoryObjects()
  for (const [name, spec] of Object.entries(specs)) {
    objects.put(UPSTREAM_CLUSTERS, {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name },
      spec: {
        servers: [{ endpoint: 'https://192.0.2.1:6443' }],
        clientConfig: { insecure: true, bearerTokenRef: { name: 'gateway', key: 'token' } },
        dispatchPolicies: [{ rules: [{ verbs: ['*'], nonResourceURLs: ['*'] }] }],
        ...spec,
      },
    })
  }
  return objects
}

test('the objects may be in an API server; none of its Secrets is read', async () => {
  const client = served({ prod: { secureServing: { serverNames: ['prod.example.com'] } } })
  client.get = () => Promise.reject(new Error('nothing else is to be read'))
  assert.equal(await serverOf({ client }), 'https://prod.example.com:8443')
  assert.match((await run({ client, cluster: 'prd' })).err, /no cluster "prd" in the API server; did you mean prod\?/)
  client.list = () => Promise.reject(statusError('Forbidden', 'no'))
  const refused = await run({ client })
  assert.equal(refused.code, 1)
  assert.match(refused.err, /^error: the API server refuses: no; .* needs list of upstreamclusters\n$/)
})

test('an address that chooses the cluster needs no path, and shows the certificate of the cluster', async () => {
  const reference = (key: string): object => ({ name: 'prod', key })
  const secureServing = { certRef: reference('tls.crt'), keyRef: reference('tls.key') }
  const addresses = { ips: ['192.0.2.10', 'fd00::10'], ports: [6443] }
  const client = served({ prod: { addresses, secureServing }, stage: {} })
  const ask = async (options: Partial<KubeconfigOptions>): Promise<[string, boolean]> => {
    const { out, err } = await run({ client, ...options })
    return [
      parse(out).clusters[0].cluster.server,
      /in spec.addresses of prod: it shows the certificate of prod/.test(err),
    ]
  }
  assert.deepEqual(await ask({ server: 'https://192.0.2.10:8443' }), ['https://192.0.2.10:8443', false])
  assert.deepEqual(await ask({ server: 'https://[fd00:0::10]:8443' }), ['https://[fd00:0::10]:8443', false])
  assert.deepEqual(await ask({ server: 'https://x.example.com:6443' }), ['https://x.example.com:6443', false])
  assert.deepEqual(await ask({ server: 'https://192.0.2.11:8443' }), ['https://192.0.2.11:8443/clusters/prod', false])
  const path = 'https://192.0.2.10:8443/clusters'
  assert.deepEqual(await ask({ server: 'https://192.0.2.10:8443', path: true }), [`${path}/prod`, true])
  assert.deepEqual(await ask({ server: 'https://192.0.2.10:8443', cluster: 'stage' }), [`${path}/stage`, true])
})

test('credentials in files that others may read are warned of', async () => {
  const key = join(configDir, 'open.key')
  writeFileSync(key, 'KEY', { mode: 0o644 })
  const all = join(configDir, 'secrets.yaml')
  writeFileSync(all, 'apiVersion: v1\nkind: Secret\nmetadata: { name: x }\n', { mode: 0o644 })
  const { code, err } = await run({ userCertFile: key, userKeyFile: key })
  assert.equal(code, 0)
  assert.match(err, /^warning: \S*secrets\.yaml: holds secrets, and others on this machine may read it \(chmod 600/m)
  assert.match(err, /^warning: \S*open\.key holds a credential/m)
  chmodSync(key, 0o600)
  chmodSync(all, 0o600)
  assert.equal((await run({ userCertFile: key, userKeyFile: key })).err, '')
})

test('all clusters: a context each, one user, and none of them is current', async () => {
  const user = { exec: { command: 'portcullis' } }
  const all = { cluster: undefined, execUser: user } as unknown as Partial<KubeconfigOptions>
  const { code, out, err } = await run({ ...all, server: 'https://gateway.example.com:8443' })
  assert.deepEqual([code, err], [0, ''])
  const document = parse(out)
  assert.equal(document['current-context'], undefined)
  assert.deepEqual(document.users, [{ name: 'portcullis', user }])
  const contexts = ['plain', 'prod'].map((name) => ({ name, context: { cluster: name, user: 'portcullis' } }))
  assert.deepEqual(document.contexts, contexts)
  const servers = document.clusters.map(({ cluster }: { cluster: { server: string } }) => cluster.server)
  // A name below *.example.com is that of prod.
  assert.deepEqual(servers, ['https://gateway.example.com:8443/clusters/plain', 'https://gateway.example.com:8443'])
  const both = await run({ ...all, tokenFile: 'token' })
  assert.match(both.err, /^error: a login and a credential are both given; [^\n]+\n$/)
})

test('all clusters: one that has errors is missing, and named', async () => {
  const client = served({ prod: {}, broken: { servers: [] } })
  const all = { cluster: undefined } as unknown as Partial<KubeconfigOptions>
  const { code, out, err } = await run({ ...all, client })
  assert.equal(code, 0)
  assert.deepEqual(
    parse(out).contexts.map(({ name }: { name: string }) => name),
    ['prod'],
  )
  assert.match(err, /^error: broken: spec\.servers: /)
  assert.match(
    (await run({ ...all, client: served({}) })).err,
    /^error: no UpstreamCluster could be loaded from the API server; /,
  )
})
