// What a federated cluster hands over to a member: logs, exec, attach, port-forward and cp of a pod, on a real kube-apiserver and a kubelet's own streaming
// code. The member decides about them by its own rules, for the user that its UpstreamCluster knows the caller as.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { prefixedNamespace } from '../../src/gateway/core/federation/names.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { KubeRequest, KubeResponse } from '../harness/clusters/kube-request.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { kubeconfigThrough } from '../harness/clusters/upstream-cluster.ts'
import {
  ALL_PODS,
  alice,
  createPod,
  federatedClusters,
  federatedUsersCA,
  prepareMember,
  readThrough,
  userNamed,
} from '../harness/federation/federated-clusters.ts'
import { type AccessLogLine, startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type KubectlResult, type RunningKubectl, SPDY, startKubectl } from '../harness/kubectl/kubectl.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const POD = 'target'
const IN_EAST = '/api/v1/namespaces/east--default/pods'
const LOG = `${IN_EAST}/${POD}/log`
const IN_NAMESPACE = ['-n', 'east--default']
/** Too long to be called east--NAME. */
const LONG = `long-${'n'.repeat(56)}`
/** May read pods in east, and nothing else. */
const bob = userNamed('bob')
const FORWARDED = 10_000

const folder = mkdtempSync(join(tmpdir(), 'federation-sessions-'))
const auditLog = join(folder, 'audit.log')
const recordings = join(folder, 'recordings')
const keyFile = join(folder, 'sessions.key')
writeFileSync(keyFile, `${randomBytes(32).toString('base64')}\n`)

let east: TestCluster
let west: TestCluster
let gateway: TestGateway
let objects: readonly UpstreamCluster[] = []
let kubeconfig = ''
let logFile = ''

before(async () => {
  const kubelet = { nodes: 1, controllerManager: true, kwok: true, kubelet: true }
  const start = (name: string, more: object): Promise<TestCluster> =>
    startCluster({ name, clientCA: federatedUsersCA, ...more })
  ;[east, west] = await Promise.all([start('east', kubelet), start('west', {})])
  await Promise.all([prepareMember(east, ['alice', 'bob']), prepareMember(west, ['alice'])])
  await prepareSessions()
  logFile = east.kubelet?.logFile ?? ''
  objects = federatedClusters([east, west]).map((one) => ({ ...one, spec: { ...one.spec, logging: { mode: 'on' } } }))
  gateway = await startGateway({
    clusters: objects,
    args: [
      `--audit-log-path=${auditLog}`,
      `--session-recording-dir=${recordings}`,
      `--session-recording-key-file=${keyFile}`,
    ],
  })
  await readable(gateway)
  kubeconfig = await kubeconfigOf(alice)
}, PATIENT)
afterEach(async () => {
  gateway.write(...objects)
  // By every thread.
  const paths = Array.from({ length: 4 }, () => [LOG, ALL_PODS]).flat()
  await waitFor('it to be open again', async () => {
    const answers = await Promise.all(paths.map((path) => ask(path)))
    return answers.every(({ status }) => status === 200)
  })
})
after(async () => {
  await gateway?.stop()
  await east?.stop()
  await west?.stop()
  rmSync(folder, { recursive: true })
})

/** alice may open sessions in east; a pod there runs, and one in a namespace with a long name. */
async function prepareSessions(): Promise<void> {
  const subresources = ['log', 'exec', 'attach', 'portforward'].map((name) => `pods/${name}`)
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'sessions' } }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'sessions' }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }]
  const containers = [{ name: 'c', image: 'c:1', ports: [{ containerPort: 80 }] }]
  const spec = { nodeName: 'node-0', containers }
  const pod = (namespace: string): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: POD, namespace },
    spec,
  })
  const all = [
    { ...role, rules: [{ apiGroups: [''], resources: subresources, verbs: ['get', 'create'] }] },
    { ...role, kind: 'ClusterRoleBinding', roleRef, subjects },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: LONG } },
  ]
  await east.apply(all.map((object) => `---\n${JSON.stringify(object)}\n`).join(''))
  for (const namespace of ['default', LONG]) {
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`
    await waitFor('its account', async () => (await east.request(account)).status === 200)
    await east.apply(JSON.stringify(pod(namespace)))
    const ready = await east.kubectl(['wait', '-n', namespace, `pod/${POD}`, '--for=condition=Ready'])
    assert.equal(ready.code, 0, ready.stderr)
  }
}

function readable(one: TestGateway): Promise<unknown> {
  return waitFor('what is kept of both', async () => (await readThrough(one, ALL_PODS)).status === 200)
}

function kubeconfigOf(user: Credentials): Promise<string> {
  return kubeconfigThrough(gateway, east, user, { name: 'all' })
}

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<KubectlResult> {
  return east.kubectl(args, { kubeconfig, env })
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RunningKubectl> {
  return startKubectl(args, { kubeconfig, env })
}

function ask(path: string, more: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  return readThrough(gateway, path, more)
}

async function succeed(running: Promise<KubectlResult>): Promise<string> {
  const { code, stdout, stderr } = await running
  assert.equal(code, 0, stdout + stderr)
  return stdout
}

/** Changes one of the clusters until the end of the test. */
function change(name: string, spec: object): void {
  const object = objects.find(({ metadata }) => metadata.name === name)
  assert.ok(object !== undefined)
  gateway.write({ ...object, spec: { ...object.spec, ...spec } as UpstreamClusterSpec })
}

function isSession(line: AccessLogLine): boolean {
  return line['federation'] === 'all'
}

/** A line of the log that has just come through. */
async function follow(line: string): Promise<RunningKubectl> {
  const following = await start(['logs', '-f', POD, ...IN_NAMESPACE])
  appendFileSync(logFile, `${line}\n`)
  await following.output(new RegExp(`${line}\n`))
  return following
}

function echo(port: number, bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.end(bytes))
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('end', () => resolve(Buffer.concat(chunks)))
  })
}

for (const [protocol, env] of [
  ['WebSocket', {}],
  ['SPDY', SPDY],
] as const) {
  describe(`kubectl over ${protocol}`, () => {
    test('exec: stdout, stderr and exit code', async () => {
      const shell = ['exec', POD, ...IN_NAMESPACE, '--', 'sh', '-c', 'echo out; echo err >&2; exit 4']
      const { code, stdout, stderr } = await run(shell, env)
      assert.deepEqual([code, stdout], [4, 'out\n'])
      assert.match(stderr, /^err\n/)
    })

    test('attach', async () => {
      const attached = await start(['attach', '-i', POD, ...IN_NAMESPACE], env)
      await attached.output(/attached/)
      attached.write('hello\n')
      await attached.output(/echo hello/)
      attached.endStdin()
      assert.equal((await attached.done).code, 0)
    })

    test('port-forward', async () => {
      const forward = await start(['port-forward', POD, ':80', ...IN_NAMESPACE], env)
      const [, port] = await forward.output(/127\.0\.0\.1:(\d+) -> 80/)
      const bytes = randomBytes(FORWARDED)
      assert.ok(bytes.equals(await echo(Number(port), bytes)))
      await forward.stop()
    })

    test('cp to a pod and back', async () => {
      const bytes = randomBytes(FORWARDED)
      const [local = '', remote = '', back = ''] = ['up', 'remote', 'back'].map((name) => join(folder, name))
      writeFileSync(local, bytes)
      await succeed(run(['cp', local, `east--default/${POD}:${remote}`], env))
      await succeed(run(['cp', `east--default/${POD}:${remote}`, back], env))
      assert.ok(readFileSync(back).equals(bytes))
      for (const file of [local, remote, back]) rmSync(file)
    })
  })
}

test('kubectl logs, and logs -f line by line', async () => {
  const following = await follow('through all')
  await following.stop()
  assert.ok((await succeed(run(['logs', POD, ...IN_NAMESPACE]))).endsWith('through all\n'))
})

test('the logs have it once, as the member served it, with the cluster by which it came', async () => {
  const target = `${LOG}?container=c&tailLines=1`
  assert.equal((await ask(target)).status, 200)
  const [line] = await gateway.logged((one) => one['target'] === target)
  assert.ok(line !== undefined)
  const { cluster, federation, namespace, user, subresource, endpoint, code } = line as Record<string, unknown>
  assert.deepEqual(
    { cluster, federation, namespace, user, subresource, endpoint, code },
    {
      cluster: 'east',
      federation: 'all',
      namespace: 'default',
      user: 'alice',
      subresource: 'log',
      endpoint: east.apiservers[0]?.url,
      code: 200,
    },
  )
  assert.equal(gateway.accessLog().filter((one) => one['target'] === target).length, 1)
  const events = await waitFor('the audit event', () => {
    const lines = readFileSync(auditLog, 'utf8').split('\n').slice(0, -1)
    const found = lines.map((one) => JSON.parse(one)).filter(({ auditID }) => auditID === line['auditID'])
    return found.some(({ stage }) => stage === 'ResponseComplete') && found
  })
  for (const { annotations, objectRef } of events) {
    assert.equal(annotations['portcullis.io/cluster'], 'east')
    assert.equal(annotations['portcullis.io/federation'], 'all')
    assert.equal(objectRef.namespace, 'default')
  }
  const metrics = await gateway.metrics()
  assert.match(metrics, /^portcullis_apiserver_request_total\{[^}]*cluster="east"[^}]*subresource="log"[^}]*\} [1-9]/m)
  assert.doesNotMatch(metrics, /^portcullis_apiserver_request_total\{[^}]*cluster="all"[^}]*subresource="log"/m)
})

test('discovery has what is handed over', async () => {
  const { resources } = (await ask('/api/v1')).json()
  const verbs = Object.fromEntries(resources.map((one: { name: string; verbs: string[] }) => [one.name, one.verbs]))
  const session = ['create', 'get']
  const written = ['get', 'patch', 'update']
  for (const verb of Object.values(verbs)) (verb as string[]).sort()
  assert.deepEqual(verbs, {
    pods: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    'pods/ephemeralcontainers': written,
    'pods/eviction': ['create'],
    'pods/resize': written,
    'pods/status': written,
    'pods/log': ['get'],
    'pods/attach': session,
    'pods/exec': session,
    'pods/portforward': session,
  })
})

test('a namespace with a hash is found, and one that does not exist is told by the member', async () => {
  const named = prefixedNamespace('east', LONG)
  assert.equal(named.length, 63)
  const { stdout } = await run(['exec', POD, '-n', named, '--', 'echo', 'here'])
  assert.equal(stdout, 'here\n')
  const none = await ask(`/api/v1/namespaces/${named.slice(0, -1)}${named.endsWith('a') ? 'b' : 'a'}/pods/${POD}/log`)
  assert.deepEqual([none.status, none.json().reason], [404, 'NotFound'])
  const absent = await ask(`/api/v1/namespaces/east--absent/pods/${POD}/log`)
  assert.deepEqual([absent.status, absent.json().message], [404, `pods "${POD}" not found`])
  assert.match((await ask(`/api/v1/namespaces/default/pods/${POD}/log`)).json().message, /MEMBER--NAMESPACE/)
  assert.match((await ask(`/api/v1/namespaces/north--default/pods/${POD}/log`)).json().message, /MEMBER--NAMESPACE/)
})

describe('who may', () => {
  test('one without rights in the member gets the answer of the member, in its words', async () => {
    const answer = await ask(LOG, { user: bob })
    assert.equal(answer.status, 403)
    const direct = await east.request('/api/v1/namespaces/default/pods/target/log', { user: bob })
    assert.equal(answer.json().message, direct.json().message)
    assert.match(answer.json().message, /User "bob" cannot get resource "pods\/log"/)
    const asBob = { kubeconfig: await kubeconfigOf(bob) }
    for (const env of [{}, SPDY]) {
      const { code, stderr } = await east.kubectl(['exec', POD, ...IN_NAMESPACE, '--', 'id'], { ...asBob, env })
      assert.equal(code, 1)
      assert.match(stderr, /User "bob" cannot (get|create) resource "pods\/exec"/)
    }
  })

  test('what ends in a hash says nothing to one without rights', async () => {
    const named = prefixedNamespace('east', LONG)
    const unknown = `${named.slice(0, -1)}${named.endsWith('a') ? 'b' : 'a'}`
    const messages = new Set<string>()
    const user = userNamed('carol')
    for (const namespace of [named, unknown]) {
      const answer = await ask(`/api/v1/namespaces/${namespace}/pods/${POD}/log`, { user })
      assert.equal(answer.status, 403, answer.text)
      messages.add(answer.json().message)
    }
    assert.equal(messages.size, 1)
  })

  test('service accounts, nodes and super users of one cluster are not those of another', async () => {
    for (const [name, group] of [
      ['system:serviceaccount:default:default', 'system:serviceaccounts'],
      ['system:node:node-0', 'system:nodes'],
      ['system:admin', 'system:masters'],
      ['system:kube-controller-manager', 'dev'],
    ] as const) {
      const answer = await ask(LOG, { user: userNamed(name, [group]) })
      assert.equal(answer.status, 403, `${name}: ${answer.text}`)
      assert.match(answer.json().message, /in cluster "east"/)
      const [line] = await gateway.logged((one) => one['user'] === name)
      assert.deepEqual([line?.['cluster'], line?.['endpoint']], ['all', undefined])
    }
    // Known by her name alone: the group that is above all rights stays here.
    const admin = await ask(LOG, { user: userNamed('admin', ['system:masters']) })
    assert.match(admin.json().message, /User "admin" cannot get resource/)
  })

  test('impersonation is refused, as for reads', async () => {
    for (const user of ['alice', 'bob', 'system:admin']) {
      const answer = await ask(LOG, { headers: { 'impersonate-user': user, 'impersonate-group': 'system:masters' } })
      assert.notEqual(answer.status, 200)
      assert.ok(!gateway.accessLog().some((line) => isSession(line) && line['impersonator'] !== undefined))
    }
  })

  test('where the users are not trusted, none is let in', async () => {
    change('all', { members: [{ name: 'east' }, { name: 'west', trustUsers: true }] })
    await waitFor('the refusal', async () => (await ask(LOG)).status === 403)
    assert.match((await ask(LOG)).json().message, /user "alice" cannot get pods\/log in cluster "east"/)
  })
})

describe('the rules of the member', () => {
  const refusals: readonly (readonly [string, string, object, number, RegExp])[] = [
    ['a degrade mode', 'east', { degrade: { mode: 'Freeze', reason: 'an incident' } }, 503, /an incident/],
    [
      'a policy',
      'east',
      { dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: [''], resources: ['pods'] }] }] },
      403,
      /east/,
    ],
    ['the access list', 'east', { accessControl: { deny: [{ name: 'no-alice', users: ['alice'] }] } }, 403, /no-alice/],
    [
      'a limit',
      'east',
      {
        flowControl: { flowControlSchemas: [{ name: 'none', maxRequestsInflight: { max: 0 } }] },
        dispatchPolicies: [
          { flowControlSchemaName: 'none', rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] },
        ],
      },
      429,
      /none/,
    ],
    ['a revocation', 'east', { authentication: { revoked: [{ user: 'alice', reason: 'left' }] } }, 401, /revoked/],
    [
      'a degrade mode of the federated cluster',
      'all',
      { degrade: { mode: 'Freeze', reason: 'an incident' } },
      503,
      /an incident/,
    ],
    [
      'a policy of the federated cluster',
      'all',
      { dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: [''], resources: ['pods'] }] }] },
      403,
      /all/,
    ],
    [
      'a revocation of the federated cluster',
      'all',
      { authentication: { revoked: [{ user: 'alice', reason: 'left' }] } },
      401,
      /revoked/,
    ],
  ]
  for (const [what, name, spec, status, message] of refusals) {
    test(`${what} refuses it`, async () => {
      change(name, spec)
      const answer = await waitFor('the refusal', async () => {
        const one = await ask(LOG)
        return one.status !== 200 && one
      })
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.json().message, message)
    })
  }

  const endings: readonly (readonly [string, () => void])[] = [
    [
      'the member revokes the user',
      () => change('east', { authentication: { revoked: [{ user: 'alice', reason: 'left' }] } }),
    ],
    [
      'the federated cluster revokes the user',
      () => change('all', { authentication: { revoked: [{ user: 'alice', reason: 'left' }] } }),
    ],
    ['the users are not trusted any more', () => change('all', { members: [{ name: 'east' }, { name: 'west' }] })],
    ['it is no member any more', () => change('all', { members: [{ name: 'west', trustUsers: true }] })],
    ['the federated cluster is deleted', () => gateway.removeFile('all.yaml')],
    ['the member is deleted', () => gateway.removeFile('east.yaml')],
  ]
  for (const [index, [what, end]] of endings.entries()) {
    test(`a session ends when ${what}`, PATIENT, async () => {
      const running = await start(['exec', POD, ...IN_NAMESPACE, '--', 'sh', '-c', 'echo up; sleep 600'])
      await running.output(/up/)
      const following = await follow(`before ${index}`)
      end()
      assert.notEqual((await running.done).code, 0)
      await following.done
    })
  }

  test('both clusters hold their slots until the end, and once', PATIENT, async () => {
    const limited = {
      flowControl: {
        flowControlSchemas: [
          { name: 'one', maxRequestsInflight: { max: 1 } },
          { name: 'free', exempt: {} },
        ],
      },
      dispatchPolicies: [
        { flowControlSchemaName: 'one', rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['pods/log'] }] },
        {
          rules: [
            { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
            { verbs: ['*'], nonResourceURLs: ['*'] },
          ],
        },
      ],
    }
    for (const name of ['east', 'all']) {
      change(name, limited)
      // Until the limit is in force, another one passes.
      const held = await waitFor('a held slot', async () => {
        const one = await follow(`held by ${name}`)
        if ((await ask(LOG)).status === 429) return one
        await one.stop()
        return undefined
      })
      await held.stop()
      await waitFor('the slot', async () => (await ask(LOG)).status === 200)
      for (let round = 0; round < 5; round++) assert.equal((await ask(LOG)).status, 200)
      gateway.write(...objects)
    }
  })

  test('sessions are recorded where either cluster says so', PATIENT, async () => {
    let known = 0
    for (const name of ['east', 'all']) {
      change(name, { audit: { sessions: { record: 'Output' } } })
      await waitFor('a recording', async () => {
        await succeed(run(['exec', POD, ...IN_NAMESPACE, '--', 'echo', 'recorded']))
        return (
          existsSync(recordings) && readdirSync(recordings).filter((one) => one.endsWith('.session')).length > known
        )
      })
      gateway.write(...objects)
      known = readdirSync(recordings).length
    }
    assert.ok(readdirSync(recordings).every((one) => one.includes('_east_')))
  })
})

describe('what is not handed over', () => {
  for (const [method, path, status] of [
    ['GET', `${IN_EAST}/${POD}/proxy/`, 404],
    ['GET', `${IN_EAST}/${POD}/log/`, 404],
    ['GET', `${IN_EAST}/${POD}/log/../exec`, 404],
    ['GET', `${IN_EAST}/../pods/${POD}/log`, 404],
    ['GET', `/api/v1/namespaces/east--default%2fpods%2f${POD}%2flog`, 200],
    ['GET', `/api/v1/namespaces/east--default%2f..%2fkube-system/pods/${POD}/log`, 404],
    ['GET', `/api/v1/namespaces/east--..%2fkube-system/pods/${POD}/log`, 404],
    ['GET', `/api/v1/namespaces/east--/pods/${POD}/log`, 404],
    ['GET', `/api/v1/namespaces/east----default/pods/${POD}/log`, 404],
    ['GET', `/api/v1/namespaces/east--default/pods/${POD}%3fcontainer=x/log`, 404],
    ['GET', `/api/v1/namespaces/east--default/pods/${POD}%00/log`, 404],
    ['GET', `/api/v1/watch/namespaces/east--default/pods/${POD}/log`, 404],
    ['GET', `/api/v1/proxy/namespaces/east--default/pods/${POD}/log`, 405],
    ['GET', `/api/v1/namespaces/east--default/services/${POD}/log`, 404],
    ['POST', LOG, 405],
    ['DELETE', `${IN_EAST}/${POD}/exec`, 405],
    ['POST', `${IN_EAST}/${POD}/binding`, 405],
    ['GET', `//api/v1/namespaces/east--default/pods/${POD}/log`, 404],
  ] as const) {
    test(`${method} ${path}: ${status}`, async () => {
      const answer = await ask(path, { method })
      assert.equal(answer.status, status, answer.text)
      const [line] = await gateway.logged((one) => one['target'] === path && one['method'] === method)
      assert.equal(line?.['endpoint'] !== undefined, status === 200)
    })
  }

  test('pods that are not federated', PATIENT, async () => {
    change('all', { federation: { resources: [] } })
    await waitFor('the refusal', async () => (await ask(LOG)).status === 404)
    assert.match((await ask(LOG)).json().message, /spec\.federation\.resources does not name/)
  })

  test('exec without an upgrade', async () => {
    const answer = await ask(`${IN_EAST}/${POD}/exec?command=id`, { method: 'POST' })
    assert.equal(answer.status, 400, answer.text)
  })
})

test('merged: what one member has is its own, and what two have is of none', PATIENT, async () => {
  const merged = { resources: [{ version: 'v1', resource: 'pods' }], mode: 'merged' }
  change('all', { federation: merged })
  const path = `/api/v1/namespaces/default/pods/${POD}/log`
  const forwarded = await waitFor('it to be merged', async () => {
    const answer = await ask(path)
    return answer.status === 200 && answer
  })
  assert.match(forwarded.text, /through all/)
  // Only east lets bob read pods: nothing is said of what there is.
  const one = await ask(path, { user: bob })
  const none = await ask(path.replace(POD, 'none'), { user: bob })
  assert.deepEqual([one.status, none.status], [403, 403])
  assert.equal(one.json().message, none.json().message)
  assert.equal((await ask(path.replace(POD, 'none'))).status, 404)
  await createPod(west, POD)
  const twice = await ask(path)
  assert.equal(twice.status, 409, twice.text)
  assert.match(twice.json().message, /"east" and "west"/)
})
