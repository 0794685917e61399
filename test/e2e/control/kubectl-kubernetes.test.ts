// `--source kubernetes`: the objects are CRDs of a real cluster, which the gateway has installed itself. The kubectl suite
// there; two replicas with the rights of deploy/rbac and no others; the webhook; a replica, and then the API server, killed.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { createCA } from '../../../src/pki/io/pki.ts'
import type { Json } from '../../harness/clients/control-client.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import type { Credentials } from '../../harness/clusters/kubeconfig.ts'
import { ClientConnections, type CliResult, runCli, UC_PATH } from '../../harness/gateways/embedded.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { kubectlSuite } from '../../harness/kubectl/suite.ts'
import { ALLOW_ALL, base64, clientPair } from '../../harness/objects/objects.ts'
import { type StubUpstream, startStub } from '../../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../../harness/wait.ts'

const DEPLOY = resolve(import.meta.dirname, '../../../deploy')
const THREADS = Number(process.env['PORTCULLIS_TEST_THREADS'] ?? 2)
const NAME = 'prod.example.com'
const REPLICAS = ['r1', 'r2']
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')

/** The cluster of the replicas, and of the suite, which no gateway must disturb by writing statuses of its objects. */
let cluster: TestCluster
let suiteCluster: TestCluster
let stub: StubUpstream
const gateways = new Map<string, TestGateway>()

before(async () => {
  stub = await startStub()
  const started = await Promise.all([startCluster({ name: 'control' }), startCluster({ name: 'suite' })])
  ;[cluster, suiteCluster] = started
})
after(async () => {
  await Promise.all([...gateways.values()].map((gateway) => gateway.stop()))
  await cluster?.stop()
  await suiteCluster?.stop()
  await stub?.stop()
})

function serve(kubeconfig: string, replica: string): Promise<TestGateway> {
  const control = '--control-listen=127.0.0.1:CONTROL'
  const source = ['--source=kubernetes', `--kubeconfig=${kubeconfig}`, control, `--replica-name=${replica}`]
  return startGateway({ clusters: [], source })
}

/** Each authoriser reads roles through a watch of its own. */
async function untilAllowed(where: TestCluster, user: Credentials, resourceAttributes: object): Promise<void> {
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } }
  await waitFor('the rights of the gateway', async () => {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const review = await where.request(path, { method: 'POST', user, body })
    return review.json().status?.allowed === true
  })
}

const CREATES_CRDS = { verb: 'create', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' }

/** The ServiceAccount of deploy/rbac, with what that gives and nothing else. */
async function serviceAccount(where: TestCluster): Promise<Credentials> {
  await where.apply(readFileSync(join(DEPLOY, 'rbac/control-cluster.yaml'), 'utf8'))
  const path = '/api/v1/namespaces/portcullis-system/serviceaccounts/portcullis/token'
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const answer = await where.request(path, { method: 'POST', body })
  const user = { token: String(answer.json().status.token) }
  await untilAllowed(where, user, CREATES_CRDS)
  await untilAllowed(where, user, { verb: 'create', resource: 'events', namespace: 'default' })
  await untilAllowed(where, user, { verb: 'list', resource: 'secrets', namespace: 'portcullis-system' })
  return user
}

async function succeed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args)
  assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

function object(name: string, fields: object = {}): object {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: {
      servers: [{ endpoint: stub.url }],
      clientConfig: {
        bearerTokenRef: { namespace: 'portcullis-system', name: 'upstream', key: 'token' },
        caData: base64(stub.caPem),
      },
      secureServing: { clientCAData: base64(clientCA.certPem) },
      dispatchPolicies: [ALLOW_ALL],
      healthCheck: { intervalSeconds: 1 },
      ...fields,
    },
  }
}

async function statusOf(): Promise<Json> {
  return (await cluster.request(`${UC_PATH}/${NAME}`)).json().status
}

async function leader(): Promise<string> {
  const lease = await cluster.request('/apis/coordination.k8s.io/v1/namespaces/default/leases/portcullis-leader')
  return String(lease.json().spec?.holderIdentity ?? '').replace(/_.*/, '')
}

function cli(...args: string[]): Promise<CliResult> {
  return runCli([...args, `--kubeconfig=${cluster.adminKubeconfig}`])
}

function gatewayOf(replica: string): TestGateway {
  const gateway = gateways.get(replica)
  assert.ok(gateway)
  return gateway
}

describe('two replicas with the rights of deploy/rbac', { concurrency: false }, () => {
  before(async () => {
    const kubeconfig = cluster.kubeconfigFor(await serviceAccount(cluster))
    // One installs the CRDs; both at once would do, too.
    await Promise.all(REPLICAS.map(async (replica) => gateways.set(replica, await serve(kubeconfig, replica))))
  })

  test('objects are served by both, and get their status', async () => {
    const annotations = { 'portcullis.io/usable-by': `${NAME},bad.example.com` }
    const metadata = { name: 'upstream', namespace: 'portcullis-system', annotations }
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata }
    const objects = [{ ...secret, stringData: { token: 'first' } }, object(NAME)]
    await cluster.apply(objects.map((each) => stringify(each)).join('---\n'))
    await succeed('wait', '--for=condition=Ready', `uc/${NAME}`, '--timeout=30s')
    for (const gateway of gateways.values()) {
      const clients = new ClientConnections(() => gateway, NAME, alice)
      await clients.everywhereStatus(200)
      clients.close()
    }
    const table = (await succeed('get', 'uc')).split('\n').map((line) => line.split(/ {2,}/))
    assert.deepEqual(table[0], ['NAME', 'READY', 'ENDPOINTS', 'TOTAL', 'DEGRADE', 'CACHE', 'AGE'])
    assert.deepEqual(table[1]?.slice(0, 5), [NAME, 'True', '1', '1', 'Off'])
    assert.match(await succeed('get', 'uc', '-o', 'wide'), /generation 1 is in force, 1 of 1 endpoints take requests/)
    await waitFor('the Event', async () => /Applied/.test(await succeed('describe', 'uc', NAME)))
  })

  test('status.gateways has both, with all threads; one of them leads', async () => {
    const gatewaysSeen = await waitFor('both', async () => {
      const { gateways: found } = await statusOf()
      return found.length === 2 && found
    })
    assert.deepEqual(
      gatewaysSeen.map(({ appliedAt: _at, ...rest }: Json) => rest),
      REPLICAS.map((name) => ({ name, threads: THREADS, threadsApplied: THREADS, observedGeneration: 1 })),
    )
    assert.ok(REPLICAS.includes(await leader()))
    for (const gateway of gateways.values()) assert.doesNotMatch(gateway.logs(), /forbidden|cannot be/)
  })

  test('share the CA of their webhooks and the key of its tokens', () => {
    for (const file of ['ca.crt', 'ca.key', 'token.key']) {
      const [first, second] = REPLICAS.map((replica) => {
        return readFileSync(join(gatewayOf(replica).dataDir, 'control/pki', file), 'utf8')
      })
      assert.equal(first, second, file)
    }
  })

  test('degrade --status waits for both', async () => {
    const slow = REPLICAS.find((replica) => replica !== 'r1') ?? ''
    gatewayOf(slow).signal('SIGSTOP')
    const early = await cli('degrade', NAME, '--mode=ReadOnly', '--reason=a drill', '--status', '--timeout=1s')
    gatewayOf(slow).signal('SIGCONT')
    assert.equal(early.code, 1)
    assert.match(early.stderr, /generation 2 of prod\.example\.com is not in force yet on: r2/)
    assert.match(early.stdout, new RegExp(`r1 +${THREADS}/${THREADS} +2 .*in force`))
    const late = await cli('degrade', NAME, '--status')
    assert.equal(late.code, 0, late.stderr)
    for (const replica of REPLICAS) {
      assert.match(late.stdout, new RegExp(`${replica} +${THREADS}/${THREADS} +2 .*in force`))
    }
    assert.match(await succeed('get', 'uc', NAME), / ReadOnly /)
    await succeed('patch', 'uc', NAME, '--type=merge', '-p', '{"spec":{"degrade":null}}')
  })

  test('the webhook refuses what schema and rules cannot see', async () => {
    const configuration = parse(readFileSync(join(DEPLOY, 'webhook/validating-webhook.yaml'), 'utf8'))
    const ca = readFileSync(join(gatewayOf('r1').dataDir, 'control/pki/ca.crt'), 'utf8')
    const url = `https://127.0.0.1:${gatewayOf('r1').controlPort}`
    const printed = await runCli(['control', 'webhook', '--data-dir', gatewayOf('r1').dataDir, '--url', url])
    const { clientConfig } = parse(printed.stdout).webhooks[0]
    assert.deepEqual([printed.code, clientConfig.caBundle], [0, base64(ca)], printed.stderr)
    for (const webhook of configuration.webhooks) {
      webhook.clientConfig = clientConfig
      webhook.failurePolicy = 'Fail'
    }
    await cluster.apply(stringify(configuration))
    const create = async (fields: object): Promise<string> => {
      const stdin = JSON.stringify(object('bad.example.com', fields))
      const { code, stderr } = await cluster.kubectl(['create', '--dry-run=server', '-f', '-'], { stdin })
      return code === 0 ? '' : stderr
    }
    const broken = { secureServing: { certData: base64('no certificate'), keyData: base64('no key') } }
    const refused = await waitFor('the webhook to be asked', async () => (await create(broken)) || undefined)
    assert.match(refused, /^The UpstreamCluster "bad\.example\.com" is invalid:/)
    assert.match(refused, /spec\.secureServing\.certData: .*holds no PEM certificate/)
    assert.match(
      await create({ secureServing: { serverNames: [NAME] } }),
      /spec\.secureServing\.serverNames.*prod\.example\.com/,
    )
    assert.equal(await create({}), '')
    // The Secret of the object in force has a token, and no key.
    const token = { namespace: 'portcullis-system', name: 'upstream', key: 'token' }
    const swapped = { clientConfig: { insecure: true, certRef: token, keyRef: token } }
    assert.match(await create(swapped), /spec\.clientConfig\.keyRef: .*holds no PEM private key/)
    const foreign = { namespace: 'kube-system', name: 'x', key: 'token' }
    assert.match(
      await create({ clientConfig: { insecure: true, bearerTokenRef: foreign } }),
      /Secret kube-system\/x may not be used: .*--secret-namespace/,
    )
    const warned = async (): Promise<string> => {
      const stdin = JSON.stringify(object('bad.example.com'))
      return (await cluster.kubectl(['create', '--dry-run=server', '-f', '-'], { stdin })).stderr
    }
    assert.equal(await warned(), '')
    await succeed('annotate', 'secret', 'upstream', '-n', 'portcullis-system', 'portcullis.io/usable-by-')
    assert.match(
      await warned(),
      /^Warning: spec\.clientConfig\.bearerTokenRef: Secret portcullis-system\/upstream is released to all .* portcullis\.io\/usable-by=bad\.example\.com$/m,
    )
    await succeed('delete', 'validatingwebhookconfiguration', 'portcullis')
  })

  test('the leader is killed', async () => {
    const name = await leader()
    await gatewayOf(name).stop('SIGKILL')
    gateways.delete(name)
  })
})

kubectlSuite('CRDs that the gateway has installed', async () => {
  // Everything but what statuses need: they would come in between.
  const name = 'reader'
  const rules = [
    {
      apiGroups: ['apiextensions.k8s.io'],
      resources: ['customresourcedefinitions'],
      verbs: ['create', 'get', 'update'],
    },
    { apiGroups: ['proxy.kubegateway.io'], resources: ['upstreamclusters'], verbs: ['get', 'list', 'watch'] },
  ]
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name } }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }]
  const objects = [
    { ...rbac, kind: 'ClusterRole', rules },
    { ...rbac, kind: 'ClusterRoleBinding', roleRef, subjects },
  ]
  await suiteCluster.apply(objects.map((each) => stringify(each)).join('---\n'))
  const user = { cert: suiteCluster.clientCertificate(name) }
  await untilAllowed(suiteCluster, user, CREATES_CRDS)
  const gateway = await serve(suiteCluster.kubeconfigFor(user), 'reader')
  return {
    kubeconfig: suiteCluster.adminKubeconfig,
    stop: async () => {
      await gateway.stop()
    },
  }
})

describe('the replica that is left', { concurrency: false }, () => {
  const left = (): TestGateway => {
    const [gateway] = gateways.values()
    assert.ok(gateway)
    return gateway
  }

  test('leads, and the entry of the other one goes', async () => {
    const [name = ''] = gateways.keys()
    await waitFor('it to lead', async () => (await leader()) === name)
    await waitFor(
      'the entry to go',
      async () => (await statusOf()).gateways.map((each: Json) => each.name).join() === name,
      { timeoutMs: 60_000 },
    )
  })

  test('the API server is killed: it serves on, and the degrade mode ends in time', async () => {
    const clients = new ClientConnections(left, NAME, alice)
    const post = [':method', 'POST', ':path', '/api/v1/namespaces/default/pods']
    const [apiserver] = cluster.apiservers
    assert.ok(apiserver)
    try {
      const expiresAt = new Date(Date.now() + 8_000).toISOString()
      const spec = { degrade: { mode: 'ReadOnly', reason: 'an incident', expiresAt } }
      await succeed('patch', 'uc', NAME, '--type=merge', '-p', JSON.stringify({ spec }))
      await clients.everywhereStatus(503, post)
      await apiserver.kill()
      await clients.everywhereStatus(200)
      await clients.everywhereStatus(200, post)
      await apiserver.restart()
      await succeed(
        'patch',
        'uc',
        NAME,
        '--type=merge',
        '-p',
        '{"spec":{"degrade":{"mode":"Freeze","expiresAt":null}}}',
      )
      await clients.everywhereStatus(503)
      await waitFor('the condition', async () => / Freeze /.test(await succeed('get', 'uc', NAME)))
    } finally {
      clients.close()
    }
  })
})
