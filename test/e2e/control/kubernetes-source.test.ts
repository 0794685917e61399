// UpstreamClusters and Secrets in a real cluster: CRDs, rights, an API server that goes away and comes back.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import type { ResolvedCluster, SourceChange } from '../../../src/gateway/api/resource-source.ts'
import { UPSTREAM_CLUSTERS } from '../../../src/gateway/api/upstream-cluster-kind.ts'
import { replicaLease } from '../../../src/gateway/core/status/gateways.ts'
import { USABLE_BY_ANNOTATION } from '../../../src/gateway/io/secrets/secret-release.ts'
import { createObjectsSource } from '../../../src/gateway/io/sources/objects/objects-source.ts'
import { degradeMany } from '../../../src/incidents/cli/many.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../../src/kit/api/ports.ts'
import { UserError } from '../../../src/kit/api/validation/field-errors.ts'
import { metaMicroTime } from '../../../src/kit/core/text/meta-time.ts'
import { sameJson } from '../../../src/kit/core/text/same-json.ts'
import { VERSION } from '../../../src/kit/io/program/build.ts'
import { SECRETS } from '../../../src/kube/api/kinds/secret-kind.ts'
import { createKubeClient, type KubeClient } from '../../../src/kube/io/client.ts'
import { installCrds } from '../../../src/kube/io/install-crds.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import { crdOf } from '../../../src/program/api/scheme.ts'
import { POD_PROTECTORS } from '../../../src/protection/api/pod-protector-kind.ts'
import { protectStatus } from '../../../src/protection/cli/status.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { base64 } from '../../harness/clusters/kubeconfig.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { startGateway } from '../../harness/gateways/gateway.ts'
import { type SeverableProxy, startSeverableProxy } from '../../harness/upstreams/severable-proxy.ts'
import { waitFor } from '../../harness/wait.ts'

const CRDS = [crdOf(UPSTREAM_CLUSTERS, VERSION), crdOf(POD_PROTECTORS, VERSION)]
const lines: string[] = []
const write = (message: string, fields?: Record<string, unknown>): void => {
  lines.push(`${message} ${JSON.stringify(fields)}`)
}
const log: Logger = { debug: write, info: write, warn: write, error: write }

let cluster: TestCluster
let admin: KubeClient
let proxy: SeverableProxy

before(async () => {
  cluster = await startCluster({ name: 'source' })
  admin = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log })
  proxy = await startSeverableProxy(cluster.apiservers[0]?.port ?? 0)
})

after(async () => {
  await admin.close()
  await proxy.stop()
  await cluster.stop()
})

function manifest(name: string, host: string, secret?: string): JsonObject {
  const token = { bearerTokenRef: { namespace: 'default', name: secret, key: 'token' } }
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [{ endpoint: 'https://192.0.2.1:6443' }],
      clientConfig: { insecure: true, ...(secret === undefined ? { bearerToken: base64('inline') } : token) },
      secureServing: { serverNames: [host] },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
    },
  }
}

/** A user with these rights, as a kubeconfig that leads through the proxy. */
async function userWith(name: string, rules: readonly object[]): Promise<string> {
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules }
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }],
  }
  await cluster.apply([role, binding].map((object) => stringify(object)).join('---\n'))
  const user = { cert: cluster.clientCertificate(name) }
  const resourceAttributes = { verb: 'list', group: 'proxy.kubegateway.io', resource: 'upstreamclusters' }
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } }
  // The authoriser reads roles through a watch of its own.
  await waitFor(`the rights of ${name}`, async () => {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const review = await cluster.request(path, { method: 'POST', user, body })
    return review.json().status?.allowed === true
  })
  return cluster.kubeconfigFor(user, `https://127.0.0.1:${proxy.port}`)
}

const CLUSTERS_RULE = { apiGroups: ['proxy.kubegateway.io'], resources: ['upstreamclusters'], verbs: ['list', 'watch'] }

async function started(t: TestContext, kubeconfigFile: string, refreshMs = 60_000) {
  const timing = { firstDelayMs: 20, longestDelayMs: 200, awayMs: 300 }
  const client = createKubeClient({ kubeconfigFile, log, timing })
  const source = createObjectsSource({ client, pem: nodePemChecks, log, secretNamespaces: ['default'], refreshMs })
  const deliveries: SourceChange[] = []
  t.after(async () => {
    proxy.restore()
    await source.stop()
    await client.close()
  })
  await source.start((change) => deliveries.push(change))
  return {
    deliveries,
    inForce: (name: string): ResolvedCluster | undefined => deliveries.at(-1)?.clusters.get(name),
    problems: (): string[] => (deliveries.at(-1)?.problems ?? []).map(({ message }) => message),
  }
}

function hostOf(found: ResolvedCluster | undefined): string {
  return found?.object.spec.secureServing?.serverNames?.join(',') ?? ''
}

function tokenOf(found: ResolvedCluster | undefined): string {
  return Buffer.from(found?.object.spec.clientConfig?.bearerToken ?? '', 'base64').toString()
}

test('CRDs: who may not write them is told the command; who may installs them, and old ones get their fields', async () => {
  const file = await userWith('poor', [CLUSTERS_RULE])
  const poor = createKubeClient({ kubeconfigFile: file, log })
  const refused = (message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof UserError, String(error))
    assert.match(error.message, message)
    assert.match(error.fix, /kubectl apply --server-side -f deploy\/crds/)
    return true
  }
  await assert.rejects(
    installCrds({ client: poor, crds: CRDS, log }),
    refused(/^CustomResourceDefinition upstreamclusters.proxy.kubegateway.io is missing$/),
  )
  // As an old release left it: without the degrade switch.
  const old = structuredClone(CRDS[0]) as { spec: { versions: { schema: { openAPIV3Schema: unknown } }[] } }
  const [version] = old.spec.versions
  assert.ok(version !== undefined)
  version.schema.openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object' } } }
  await cluster.apply(stringify(old))
  const readOnly = { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get'] }
  const reader = createKubeClient({ kubeconfigFile: await userWith('reader', [readOnly, CLUSTERS_RULE]), log })
  await assert.rejects(
    installCrds({ client: reader, crds: CRDS, log }),
    refused(
      /^may not add v1alpha1 spec\..* to CustomResourceDefinition upstreamclusters.proxy.kubegateway.io: .*forbidden/,
    ),
  )
  await installCrds({ client: admin, crds: CRDS, log })
  await waitFor('the schema to be published', async () => {
    return (await cluster.kubectl(['explain', 'uc.spec.degrade.mode'])).code === 0
  })
  // Now everything is there: no write is needed.
  await installCrds({ client: reader, crds: CRDS.slice(0, 1), log })
  await installCrds({ client: poor, crds: CRDS.slice(0, 1), log })
  await installCrds({ client: admin, crds: CRDS, log })
  await Promise.all([poor.close(), reader.close()])
})

test('a change is in force at once; Secrets are watched where that is allowed', async (t) => {
  const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] }
  const file = await userWith('full', [CLUSTERS_RULE, secrets])
  const metadata = { name: 'tok', annotations: { [USABLE_BY_ANNOTATION]: 'a' } }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { token: 'one' } }
  await cluster.apply([manifest('a', 'a.test', 'tok'), secret].map((object) => stringify(object)).join('---\n'))
  const { inForce, problems } = await started(t, file)
  assert.deepEqual([hostOf(inForce('a')), tokenOf(inForce('a')), problems()], ['a.test', 'one', []])
  await cluster.apply(stringify(manifest('a', 'b.test', 'tok')))
  await waitFor('the other host', () => hostOf(inForce('a')) === 'b.test')
  await cluster.apply(stringify({ ...secret, stringData: { token: 'two' } }))
  await waitFor('the other token', () => tokenOf(inForce('a')) === 'two')
  await cluster.kubectl(['delete', 'uc', 'a'])
  await waitFor('the end of it', () => inForce('a') === undefined)
})

test('a switch of many clusters is in force wave by wave: beside a watch from the list of the plan, and without the right to watch', async (t) => {
  const names = ['many-1', 'many-2', 'many-3']
  const lease = replicaLease('gw-1', 'default', metaMicroTime(Date.now() + 3_600_000))
  await cluster.apply(
    [...names.map((name) => manifest(name, `${name}.test`)), lease].map((one) => stringify(one)).join('---\n'),
  )
  const apply = (object: JsonObject): void => {
    const { generation } = object['metadata'] as { generation: number }
    const gateways = [{ name: 'gw-1', threads: 1, threadsApplied: 1, observedGeneration: generation }]
    if (sameJson(object['status'], { gateways })) return
    // One that is behind is told of the newer object, too.
    void admin.update(UPSTREAM_CLUSTERS, { ...object, status: { gateways } }, 'status').catch(() => undefined)
  }
  const replica = admin.follow(UPSTREAM_CLUSTERS, '', {
    onReplace: (objects) => objects.forEach(apply),
    onChange: (type, object) => void (type !== 'DELETED' && apply(object)),
    onState: () => undefined,
  })
  t.after(async () => {
    await replica.stop()
    await cluster.kubectl(['delete', 'uc', ...names])
  })
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] }
  const reads = { ...CLUSTERS_RULE, verbs: ['get', 'list', 'patch'] }
  for (const [user, mode, rules] of [
    ['watching', 'ReadOnly', [reads, CLUSTERS_RULE, leases]],
    ['listing', 'Limited', [reads, leases]],
  ] as const) {
    const told: string[] = []
    const tell = (text: string): void => void told.push(text)
    const kubeconfig = await userWith(user, rules)
    const change = { mode, reason: 'INC-1', force: true, yes: true, waveSize: '1', timeout: '2m' }
    const options = { ...change, kubeconfig, clusters: ['many-*'], status: false, now: Date.now, out: tell, err: tell }
    assert.equal(await degradeMany(options), 0, told.join(''))
    assert.match(told.join(''), /wave 3 of 3: in force on many-3\n/)
    for (const name of names) {
      const { spec } = await admin.get(UPSTREAM_CLUSTERS, { namespace: '', name })
      assert.equal((spec as { degrade: { mode: string } }).degrade.mode, mode)
    }
  }
})

test('where Secrets may only be read by name, they are, and it is said', async (t) => {
  const secrets = { apiGroups: [''], resources: ['secrets'], resourceNames: ['named'], verbs: ['get'] }
  const file = await userWith('frugal', [CLUSTERS_RULE, secrets])
  const metadata = { name: 'named', annotations: { [USABLE_BY_ANNOTATION]: 'here' } }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { token: 'one' } }
  const objects = [manifest('here', 'here.test', 'named'), manifest('lost', 'lost.test', 'other'), secret]
  await cluster.apply(objects.map((object) => stringify(object)).join('---\n'))
  const { inForce, problems } = await started(t, file, 200)
  assert.equal(tokenOf(inForce('here')), 'one')
  assert.equal(inForce('lost'), undefined)
  assert.match(
    problems().join('\n'),
    /^Secret default\/other cannot be read: secrets "other" is forbidden: User "frugal"/,
  )
  assert.ok(lines.some((line) => line.startsWith('Secrets cannot be watched; changes are seen later')))
  await cluster.apply(stringify({ ...secret, stringData: { token: 'two' } }))
  await waitFor('the other token', () => tokenOf(inForce('here')) === 'two')
  await cluster.kubectl(['delete', 'uc', 'here', 'lost'])
})

test('the API server away: everything stays in force, it is said, and caught up with', async (t) => {
  const kubeconfig = cluster.kubeconfigFor(cluster.admin, `https://127.0.0.1:${proxy.port}`)
  for (const name of ['p', 'q']) await cluster.apply(stringify(manifest(name, `${name}.test`, 'later')))
  await admin.create(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'later', namespace: 'default', annotations: { [USABLE_BY_ANNOTATION]: 'p,q' } },
    data: { token: base64('one') },
  })
  const { inForce, problems, deliveries } = await started(t, kubeconfig)
  proxy.sever()
  await waitFor('the news', () =>
    problems().some((message) => message.includes('the previous configuration stays in force')),
  )
  assert.deepEqual([hostOf(inForce('p')), hostOf(inForce('q'))], ['p.test', 'q.test'])
  await cluster.kubectl(['delete', 'uc', 'p'])
  await cluster.apply(stringify(manifest('q', 'other.test', 'later')))
  await cluster.apply(stringify(manifest('r', 'r.test')))
  await admin.patch(
    SECRETS,
    { namespace: 'default', name: 'later' },
    'application/merge-patch+json',
    { data: { token: base64('two') } },
    { fieldManager: 'test' },
  )
  const before = deliveries.length
  proxy.restore()
  await waitFor('everything', () => problems().length === 0 && tokenOf(inForce('q')) === 'two' && inForce('r'))
  assert.deepEqual([inForce('p'), hostOf(inForce('q')), hostOf(inForce('r'))], [undefined, 'other.test', 'r.test'])
  assert.ok(deliveries.length - before <= 4)
})

/** Gives a user what a file of deploy/rbac gives to `portcullis`. */
async function grantTo(user: string, file: string): Promise<void> {
  const text = readFileSync(join(import.meta.dirname, '../../../deploy/rbac', file), 'utf8')
  await cluster.apply(
    text.replaceAll('name: portcullis }', `name: ${user} }`).replace(/name: portcullis$/gm, `name: ${user}`),
  )
}

test('rights that are missing: conditions, events, commands, the user and the log say what to apply, and follow it', async (t) => {
  const user = 'gateway-of-nobody'
  const { certPem, keyPem } = cluster.clientCertificate(user)
  const object = upstreamClusterFor(cluster, { name: 'front' })
  const clientConfig = { ...object.spec.clientConfig, certData: base64(certPem), keyData: base64(keyPem) }
  const gateway = await startGateway({
    clusters: [],
    source: ['--source=kubernetes', `--kubeconfig=${cluster.adminKubeconfig}`, '--control-listen=127.0.0.1:CONTROL'],
  })
  t.after(() => gateway.stop())
  // As JSON: `mode: on` is a boolean in kubectl's YAML.
  await cluster.apply(JSON.stringify({ ...object, spec: { ...object.spec, clientConfig } }))
  t.after(() => cluster.kubectl(['delete', 'uc', 'front']))
  const until = async (...conditions: string[]): Promise<void> => {
    for (const condition of conditions) {
      const { code, stderr } = await cluster.kubectl([
        'wait',
        `--for=condition=${condition}`,
        'uc/front',
        '--timeout=60s',
      ])
      assert.equal(code, 0, `${condition}: ${stderr}`)
    }
  }
  const message = async (type: string): Promise<string> => {
    const path = `{.status.conditions[?(@.type=="${type}")].message}`
    return (await cluster.kubectl(['get', 'uc', 'front', `-o=jsonpath=${path}`])).stdout
  }
  await until('CredentialsValid=false', 'Ready=false')
  assert.equal(
    await message('CredentialsValid'),
    'spec.clientConfig: the gateway\'s user "gateway-of-nobody" may not impersonate users, groups, serviceaccounts, ' +
      '*.authentication.k8s.io; may not create tokenreviews.authentication.k8s.io, ' +
      'subjectaccessreviews.authorization.k8s.io: apply deploy/rbac/upstream-gateway-user.yaml to the cluster, ' +
      'with this user in place of portcullis',
  )
  assert.match(gateway.logs(), /the gateway lacks rights in a cluster/)
  const alice = { cert: cluster.clientCertificate('alice', ['system:masters']) }
  const kubeconfig = await kubeconfigThrough(gateway, cluster, alice, { name: 'front' })
  const refused = await cluster.kubectl(['get', 'namespaces'], { kubeconfig })
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /Warning: cluster "front" refuses the gateway, not you: .* apply deploy\/rbac/)
  await grantTo(user, 'upstream-gateway-user.yaml')
  await until('CredentialsValid', 'Ready')
  const served = await cluster.kubectl(['get', 'namespaces'], { kubeconfig })
  assert.equal(served.stderr, '')
  assert.equal(served.code, 0)

  // Pod protection, and not its role.
  await cluster.apply(JSON.stringify({ ...object, spec: { ...object.spec, clientConfig, podProtection: {} } }))
  await cluster.apply(stringify(PROTECTOR))
  // Requests of users pass all the same.
  await until('PodsProtected=false', 'CredentialsValid=false', 'Ready')
  const missing =
    'may not get pods, events; may not list pods; may not watch pods; may not create events; may not patch events: '
  assert.ok((await message('CredentialsValid')).includes(missing), await message('CredentialsValid'))
  assert.match(await message('PodsProtected'), /may not watch pods; .*: apply deploy\/rbac\/protection-worker.yaml/)
  await waitFor('the event', async () => {
    const { stdout } = await cluster.kubectl(['get', 'events', '--field-selector=reason=PodsNotProtected'])
    return stdout.includes('deploy/rbac/protection-worker.yaml')
  })
  const status = async (): Promise<{ code: number; out: string; err: string }> => {
    const [out, err]: [string[], string[]] = [[], []]
    const io = { now: Date.now, out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
    const code = await protectStatus({ client: admin, allNamespaces: false, namespace: 'default', ...io })
    return { code, out: out.join(''), err: err.join('') }
  }
  await waitFor('the word of the replica', async () => (await status()).err.includes('pods is forbidden'))
  assert.equal((await status()).code, 1)
  assert.match((await status()).err, /^error: the pods of cell front are not counted since 20\S+Z: /m)
  assert.doesNotMatch(gateway.logs(), /no healthy endpoint/)
  await grantTo(user, 'protection-worker.yaml')
  await until('PodsProtected', 'CredentialsValid', 'Ready')
  await waitFor('the count', async () => (await status()).out.includes('front: 0 available of 0'))
  assert.deepEqual([(await status()).code, (await status()).err], [0, ''])
  await grantTo('portcullis', 'upstream-gateway-user.yaml')
})

const PROTECTOR = {
  apiVersion: 'podseidon.kubewharf.io/v1alpha1',
  kind: 'PodProtector',
  metadata: { name: 'web', namespace: 'default' },
  spec: { minAvailable: 0, minReadySeconds: 0, selector: { matchLabels: { app: 'web' } } },
}
