// The admin listener of two replicas by the users and rights of a real cluster, with deploy/rbac: who reads what, by which credential, and
// that replicas find each other by their Leases and take no other process for one.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import { replicaLease } from '../../../src/gateway/core/status/gateways.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { type KubeRequest, type KubeResponse, kubeRequest } from '../../harness/clusters/kube-request.ts'
import type { Credentials } from '../../harness/clusters/kubeconfig.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { gatewayCA, serverCertificate, writeKeyPair } from '../../harness/pki.ts'
import { waitFor } from '../../harness/wait.ts'

const RBAC = resolve(import.meta.dirname, '../../../deploy/rbac')
const NAMESPACE = 'portcullis-system'
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`
let cluster: TestCluster
let a: TestGateway
let b: TestGateway
let viewer: Credentials
let own: Credentials

async function tokenOf(account: string): Promise<Credentials> {
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  return { token: String((await cluster.request(path, { method: 'POST', body })).json().status.token) }
}

function account(name: string): string {
  return stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } })
}

function bound(role: string, subject: object): string {
  return stringify({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: `test-${role}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [subject],
  })
}

/** At a replica's admin listener. */
function ask(
  { adminPort }: TestGateway,
  path: string,
  user: Credentials,
  more: Partial<KubeRequest> = {},
): Promise<KubeResponse> {
  return kubeRequest({ server: `https://127.0.0.1:${adminPort}`, ca: gatewayCA().certPem, path, user, ...more })
}

async function levels(user: Credentials): Promise<readonly string[]> {
  return await Promise.all(
    [a, b].map(async (replica) => String((await ask(replica, '/debug/log-level', user)).json().level)),
  )
}

before(async () => {
  cluster = await startCluster()
  for (const file of ['control-cluster.yaml', 'metrics-reviews.yaml', 'insight.yaml']) {
    await cluster.apply(readFileSync(resolve(RBAC, file), 'utf8'))
  }
  await cluster.apply(
    [
      account('viewer'),
      account('other'),
      bound('portcullis-insight-view', { kind: 'ServiceAccount', name: 'viewer', namespace: NAMESPACE }),
      bound('portcullis-insight-admin', { kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' }),
    ].join('---\n'),
  )
  viewer = await tokenOf('viewer')
  own = await tokenOf('portcullis')
  // All replicas have it, as of one Secret.
  const pair = serverCertificate(gatewayCA(), ['portcullis-admin.portcullis-system.svc'], ['127.0.0.1'])
  const adminPair = writeKeyPair(cluster.dir, 'admin-listener', pair)
  const start = async (name: string, user: Credentials): Promise<TestGateway> =>
    startGateway({
      clusters: [],
      source: [
        '--source=kubernetes',
        `--kubeconfig=${cluster.kubeconfigFor(user)}`,
        '--control-listen=127.0.0.1:CONTROL',
      ],
      args: [`--replica-name=${name}`],
      adminPair,
    })
  a = await start('a', own)
  // Each pod has a token of its own.
  b = await start('b', await tokenOf('portcullis'))
  // JSON: the `on` of YAML 1.2 is a boolean for kubectl.
  await cluster.apply(JSON.stringify(upstreamClusterFor(cluster)))
})
after(async () => {
  await Promise.all([a?.stop(), b?.stop()])
  await cluster?.stop()
})

test('a ServiceAccount with the view role sees what happens, not the inside; without a right or a credential, nothing', async () => {
  // The authoriser reads roles through a watch.
  await waitFor('the right of the viewer', async () => (await ask(a, '/api/v1/overview', viewer)).status === 200)
  for (const path of ['/api/v1/top', '/metrics']) assert.equal((await ask(a, path, viewer)).status, 200, path)
  for (const path of ['/debug/profile?seconds=1', '/debug/support-bundle', '/debug/config', '/debug/log-level']) {
    const refused = await ask(a, path, viewer)
    assert.equal(refused.status, 403, path)
    const [plain = ''] = path.split('?')
    // The right that is missing, with its user.
    assert.match(
      refused.text,
      new RegExp(`system:serviceaccount:portcullis-system:viewer.* cannot get path .*${plain}`),
    )
  }
  const other = await tokenOf('other')
  assert.equal((await ask(a, '/api/v1/overview', other)).status, 403)
  for (const user of [{}, { token: 'invented' }, { token: `${viewer.token}x` }]) {
    assert.equal((await ask(a, '/api/v1/overview', user)).status, 401)
  }
  assert.equal((await ask(a, '/livez', {})).status, 200)
})

test("a client certificate of the cluster's CA logs in; of another CA it does not", async () => {
  const ann = { cert: cluster.clientCertificate('ann') }
  await waitFor('the CA and the right of ann', async () => (await ask(a, '/debug/config', ann)).status === 200)
  assert.equal((await ask(a, '/debug/log-level', ann)).json().level, 'info')
  const bob = { cert: cluster.clientCertificate('bob') }
  assert.equal((await ask(a, '/debug/config', bob)).status, 403)
  const forged = { cert: serverCertificate(gatewayCA(), ['ann'], []) }
  assert.equal((await ask(a, '/debug/config', forged)).status, 401)
})

test('replicas find each other by their Leases and merge what they know; a Lease of another program gets no credential', async () => {
  const asked: (string | undefined)[] = []
  const impostor = serverCertificate(gatewayCA(), ['localhost'], ['127.0.0.1'])
  const server = createServer({ cert: impostor.certPem, key: impostor.keyPem }, (request, response) => {
    asked.push(request.headers.authorization)
    response.end('{}')
  })
  let connections = 0
  server.on('connection', () => void connections++)
  await new Promise<void>((started) => server.listen(0, '127.0.0.1', started))
  try {
    const { port } = server.address() as AddressInfo
    const now = new Date().toISOString().replace('Z', '000Z')
    const body = replicaLease('impostor', NAMESPACE, now, `127.0.0.1:${port}`)
    assert.equal((await cluster.request(LEASES, { method: 'POST', body })).status, 201)
    const through = (gateway: TestGateway, user: string) =>
      kubeRequest({
        server: `https://127.0.0.1:${gateway.port}/clusters/${cluster.name}`,
        ca: gatewayCA().certPem,
        path: '/api/v1/namespaces/default/configmaps',
        user: { cert: cluster.clientCertificate(user, ['system:masters']) },
      })
    for (const [gateway, user] of [
      [a, 'asks-a'],
      [b, 'asks-b'],
    ] as const) {
      await waitFor(`${user} to be served`, async () => (await through(gateway, user)).status === 200)
    }
    for (const replica of [a, b]) {
      const names = (path: string) => async (): Promise<{ rows: string[]; missing: string[] } | false> => {
        const { rows, missing } = (await ask(replica, path, viewer)).json()
        const users = rows.map(({ name }: { name: string }) => name).filter((name: string) => name.startsWith('asks-'))
        return missing?.join() === 'impostor' && users.length === 2 && { rows: users.toSorted(), missing }
      }
      const { rows } = await waitFor('both users', names('/api/v1/top?by=user&replicas=all'))
      assert.deepEqual(rows, ['asks-a', 'asks-b'])
    }
    assert.ok(connections > 0, 'the impostor was tried')
    assert.deepEqual(asked, [])
  } finally {
    server.closeAllConnections()
    server.close()
    await cluster.request(`${LEASES}/portcullis-replica-impostor`, { method: 'DELETE' })
  }
})

test("the replicas' own user may ask what replicas ask each other, and nothing else", async () => {
  assert.equal((await ask(a, '/api/v1/top', own)).status, 200)
  for (const path of ['/metrics', '/debug/profile?seconds=1', '/debug/config', '/debug/support-bundle']) {
    assert.equal((await ask(a, path, own)).status, 403, path)
  }
})

test('the log level of all replicas: a viewer changes it in none, an administrator in all', async () => {
  const ann = { cert: cluster.clientCertificate('ann') }
  const put = (replica: TestGateway, user: Credentials, level: string) =>
    ask(replica, '/debug/log-level?replicas=all', user, { method: 'PUT', body: { level, for: '1h' } })
  for (const replica of [a, b]) {
    const refused = await put(replica, viewer, 'debug')
    assert.equal(refused.status, 403)
    assert.match(refused.text, /viewer.* cannot put path .*\/debug\/log-level/)
  }
  assert.deepEqual(await levels(ann), ['info', 'info'])
  // The Lease of the impostor is in the list that was remembered, for a while.
  await waitFor('both replicas', async () => {
    const { replicas, missing } = (await put(a, ann, 'debug')).json()
    return replicas.length === 2 && missing.length === 0
  })
  assert.deepEqual(await levels(ann), ['debug', 'debug'])
  assert.equal((await put(b, ann, 'info')).status, 200)
  assert.deepEqual(await levels(ann), ['info', 'info'])
  const used = a.logs() + b.logs()
  assert.match(used, /"user":"ann".*admin listener used/)
  assert.doesNotMatch(used, new RegExp(String(viewer.token)))
})
