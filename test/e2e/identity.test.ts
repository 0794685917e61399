// Who upstream sees is exactly who signed in: name, uid, groups and every extra, although the gateway's own user may do
// nothing but impersonate and review.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeRequest } from '../harness/clusters/kube-request.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'

const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const REVIEW = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
const PRINTABLE = ' !"#$%&\'()*+,-./0:;<=>?@A[\\]^_`a{|}~'

interface CertificateUser {
  readonly name: string
  readonly groups?: readonly string[]
  readonly uid?: string
}

const CERTIFICATE_USERS: readonly CertificateUser[] = [
  { name: 'jane' },
  { name: 'jane', groups: ['b', 'a', 'b', 'system:authenticated'], uid: '42' },
  { name: 'jürgen ☃ 日本語 😀', groups: ['größe', '日本'], uid: 'ü-☃' },
  { name: 'a/b//c/../d', groups: ['/', 'x/y'] },
  { name: 'doe, jane', groups: ['a, b', 'c,d,', 'e=f', 'g+h', 'i;j'] },
  { name: '100%', groups: ['%41', '%2Fa%00', '%%'], uid: '%0a' },
  { name: 'a+b c', groups: ['+', 'a  b'] },
  { name: `x${PRINTABLE}x`, groups: [`x${PRINTABLE}x`] },
  { name: 'Impersonate-User: admin', groups: ['Impersonate-Group: system:masters'], uid: 'X-Remote-User: root' },
  { name: 'x%0d%0aImpersonate-Group:%20system:masters' },
  { name: 'x\\r\\nImpersonate-Group: system:masters' },
  { name: 'system:node:node-7', groups: ['system:nodes'] },
  { name: 'system:serviceaccount:default:robot', groups: ['others'] },
  { name: 'root', groups: ['system:masters'] },
  { name: 'n'.repeat(2000), groups: ['g'.repeat(2000)] },
  { name: 'in many groups', groups: Array.from({ length: 250 }, (_, i) => `group ${i} of the directory`) },
]

const TOKEN_USERS: readonly { user: string; uid: string; groups?: readonly string[] }[] = [
  { user: 'tina', uid: '7' },
  { user: 'erin, "the" operator', uid: 'u 7', groups: ['devs', 'all ops', 'größe'] },
  { user: 'jürgen/ö%2f', uid: 'ü', groups: ['%', '+'] },
]

let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  const tokens = TOKEN_USERS.map((row, i) => ({ ...row, token: `token-${i}` }))
  cluster = await startCluster({ apiservers: 2, controllerManager: true, kwok: true, nodes: 1, tokens })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)] })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function succeed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args)
  assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

// biome-ignore lint/suspicious/noExplicitAny: JSON as kubectl printed it
async function whoami(kubeconfig: string): Promise<any> {
  const { code, stdout, stderr } = await cluster.kubectl(['auth', 'whoami', '-o', 'json'], { kubeconfig })
  return code === 0 ? JSON.parse(stdout).status.userInfo : stderr
}

/** By HTTP/2 through kubectl, by HTTP/1.1, by host name and by path. Returns what it was each time. */
// biome-ignore lint/suspicious/noExplicitAny: a UserInfo as JSON
async function seenEverywhere(user: Credentials): Promise<any> {
  const direct = await whoami(cluster.kubeconfigFor(user))
  assert.equal(typeof direct, 'object', `direct: ${direct}`)
  assert.deepEqual(await whoami(await kubeconfigThrough(gateway, cluster, user)), direct)
  assert.deepEqual(await whoami(await kubeconfigThrough(gateway, cluster, user, { path: true })), direct)
  const ca = gatewayCA().certPem
  const common = { user, ca, method: 'POST', path: REVIEWS, body: REVIEW }
  const serverName = hostOf(cluster.name)
  const byName = await kubeRequest({ ...common, server: `https://127.0.0.1:${gateway.port}`, serverName })
  assert.equal(byName.status, 201, byName.text)
  assert.deepEqual(byName.json().status.userInfo, direct)
  return direct
}

describe('auth whoami through the gateway equals direct', () => {
  for (const { name, groups = [], uid } of CERTIFICATE_USERS) {
    const shown = name.length > 80 ? `${name.slice(0, 20)}...` : name
    test(`x509: ${JSON.stringify(shown)}, ${groups.length} groups, uid ${uid}`, async () => {
      const seen = await seenEverywhere({ cert: cluster.clientCertificate(name, groups, uid) })
      assert.equal(seen.username, name)
      assert.equal(seen.uid, uid)
      assert.deepEqual(seen.groups.slice(0, groups.length), groups)
      assert.match(seen.extra['authentication.kubernetes.io/credential-id'][0], /^X509SHA256=[0-9a-f]{64}$/)
    })
  }

  for (const [i, { user, uid, groups = [] }] of TOKEN_USERS.entries()) {
    test(`static token: ${user}`, async () => {
      const seen = await seenEverywhere({ token: `token-${i}` })
      assert.deepEqual(seen, { username: user, uid, groups: [...groups, 'system:authenticated'] })
    })
  }

  test('ServiceAccount tokens: plain, bound to a pod, a node, a secret, and of a secret', async () => {
    await cluster.apply(
      [
        { kind: 'ServiceAccount', metadata: { name: 'robot' } },
        {
          kind: 'Pod',
          metadata: { name: 'holder' },
          spec: { serviceAccountName: 'robot', nodeName: 'node-0', containers: [{ name: 'c', image: 'c' }] },
        },
        {
          kind: 'Secret',
          metadata: { name: 'robot', annotations: { 'kubernetes.io/service-account.name': 'robot' } },
          type: 'kubernetes.io/service-account-token',
        },
      ]
        .map((object) => `---\n${JSON.stringify({ apiVersion: 'v1', ...object })}\n`)
        .join(''),
    )
    const create = (...bound: string[]): Promise<string> => succeed('create', 'token', 'robot', ...bound)
    const plain = await seenEverywhere({ token: await create() })
    assert.equal(plain.username, 'system:serviceaccount:default:robot')
    const key = (name: string): string => `authentication.kubernetes.io/${name}`
    assert.deepEqual(Object.keys(plain.extra), [key('credential-id')])

    const bound = await seenEverywhere({
      token: await create('--bound-object-kind=Pod', '--bound-object-name=holder'),
    })
    const names = ['credential-id', 'node-name', 'node-uid', 'pod-name', 'pod-uid']
    assert.deepEqual(Object.keys(bound.extra).sort(), names.map(key))
    assert.deepEqual(bound.extra[key('pod-name')], ['holder'])
    assert.deepEqual(bound.extra[key('node-name')], ['node-0'])

    const onNode = await create('--bound-object-kind=Node', '--bound-object-name=node-0')
    assert.deepEqual((await seenEverywhere({ token: onNode })).extra[key('node-name')], ['node-0'])
    await seenEverywhere({ token: await create('--bound-object-kind=Secret', '--bound-object-name=robot') })
    const secret = await succeed('get', 'secret', 'robot', '-o', 'go-template={{.data.token | base64decode}}')
    await seenEverywhere({ token: secret })
  })

  test('an anonymous client', async () => {
    const reviews = ['--verb=create', '--resource=selfsubjectreviews.authentication.k8s.io']
    await succeed('create', 'clusterrole', 'who', ...reviews)
    await succeed('create', 'clusterrolebinding', 'who', '--clusterrole=who', '--group=system:unauthenticated')
    const common = { method: 'POST', path: REVIEWS, body: REVIEW }
    const path = `https://127.0.0.1:${gateway.port}/clusters/${cluster.name}`
    for (const server of [cluster.apiservers[0]?.url ?? '', path]) {
      const { userInfo } = (await kubeRequest({ ...common, server })).json().status
      assert.deepEqual(userInfo, { username: 'system:anonymous', groups: ['system:unauthenticated'] })
    }
  })
})

describe('impersonation asked for by a user who may', () => {
  const asked: readonly (readonly string[])[] = [
    ['Impersonate-User', 'jane'],
    ['impersonate-user', 'j%C3%BCrgen', 'impersonate-group', 'a, b', 'Impersonate-Group', 'c', 'impersonate-uid', '7'],
    ['impersonate-user', 'jane', 'impersonate-extra-scopes', 'a', 'impersonate-extra-scopes', 'b'],
    ['impersonate-user', 'jane', 'impersonate-extra-Example.com%2fTeam%41', 'blue %2f'],
    ['impersonate-user', 'jane', 'impersonate-extra-100%', 'x'],
    ['impersonate-user', 'jane', 'impersonate-group', 'system:unauthenticated'],
    ['impersonate-user', 'system:serviceaccount:default:robot'],
    ['impersonate-user', 'system:serviceaccount:default:robot', 'impersonate-group', 'only'],
    ['impersonate-user', 'system:node:node-0', 'impersonate-group', 'system:nodes'],
    ['impersonate-user', 'system:anonymous'],
    ['impersonate-user', Buffer.from('jürgen ☃').toString('latin1')],
    ['impersonate-user', ''],
    ['impersonate-group', 'system:masters'],
  ]
  for (const fields of asked) {
    test(fields.join(' '), async () => {
      const certificate = cluster.admin.cert
      const [apiserver] = cluster.apiservers
      assert.ok(apiserver)
      const ask = async (port: number, serverName?: string): Promise<[number, unknown]> => {
        const session = h2Connect({ port, certificate, ...(serverName !== undefined && { serverName }) })
        const lower = fields.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
        const head = [':method', 'POST', ':path', REVIEWS, ':authority', serverName ?? 'localhost', ...lower]
        head.push('content-type', 'application/json')
        const { status, body } = await h2Request(session, head, Buffer.from(JSON.stringify(REVIEW)))
        session.destroy()
        const { status: review, reason } = JSON.parse(body.toString())
        return [status, status === 201 ? review.userInfo : reason]
      }
      const direct = await ask(apiserver.port)
      const through = await ask(gateway.port, hostOf(cluster.name))
      assert.deepEqual(through, direct)
    })
  }
})

describe('a name that cannot be told to upstream exactly', () => {
  const unspeakable = [
    'x\r\nImpersonate-Group: system:masters',
    'x\nroot',
    'x\0',
    ' admin',
    'admin ',
    '\tadmin',
    'x\x7f',
  ]
  for (const name of unspeakable) {
    test(`${JSON.stringify(name)} is refused, not changed`, async () => {
      for (const user of [cluster.clientCertificate(name), cluster.clientCertificate('jane', [name])]) {
        const seen = await whoami(await kubeconfigThrough(gateway, cluster, { cert: user }))
        assert.match(String(seen), /the server has asked for the client to provide credentials|Unauthorized/)
      }
    })
  }
})

describe("the gateway's own user", () => {
  test('may do nothing by itself, and no user gets its rights', async () => {
    const kubeconfig = cluster.kubeconfigFor({ cert: cluster.gatewayUser.cert })
    for (const command of ['get pods', 'create configmap x', 'get secrets -A', 'auth can-i delete pods']) {
      assert.notEqual((await cluster.kubectl(command.split(' '), { kubeconfig })).code, 0, command)
    }
    const jane = await kubeconfigThrough(gateway, cluster, { cert: cluster.clientCertificate('jane') })
    const { code } = await cluster.kubectl(['auth', 'can-i', 'impersonate', 'users'], { kubeconfig: jane })
    assert.equal(code, 1)
  })
})
