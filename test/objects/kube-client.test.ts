// The client of a Kubernetes cluster against a real kube-apiserver, through a connection that is cut and mended.

import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { LEASES } from '../../src/kube/api/kinds/lease-kind.ts'
import { NAMESPACES } from '../../src/kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import type { FollowEvents } from '../../src/kube/api/object-client.ts'
import { StatusError, statusError } from '../../src/kube/api/status.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/io/client.ts'
import { startLeaderElection } from '../../src/kube/io/leader-lease.ts'
import type { FollowTiming } from '../../src/kube/io/watch.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { base64 } from '../harness/clusters/kubeconfig.ts'
import { type SeverableProxy, startSeverableProxy } from '../harness/upstreams/severable-proxy.ts'
import { waitFor } from '../harness/wait.ts'

const lines: string[] = []
const write = (message: string, fields?: Record<string, unknown>): void => {
  lines.push(`${message} ${JSON.stringify(fields)}`)
}
const log: Logger = { debug: write, info: write, warn: write, error: write }

let cluster: TestCluster
let direct: KubeClient
let proxy: SeverableProxy

before(async () => {
  cluster = await startCluster({
    tokens: [{ token: 'sesame-token', user: 'plugin', uid: 'p', groups: ['system:masters'] }],
  })
  direct = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log })
  proxy = await startSeverableProxy(cluster.apiservers[0]?.port ?? 0)
})

after(async () => {
  await direct.close()
  await proxy.stop()
  await cluster.stop()
})

function throughProxy(t: TestContext, timing: Partial<FollowTiming> = {}, timeoutMs = 30_000): KubeClient {
  const kubeconfigFile = cluster.kubeconfigFor(cluster.admin, `https://127.0.0.1:${proxy.port}`)
  const quick = { firstDelayMs: 20, longestDelayMs: 100, ...timing }
  const client = createKubeClient({ kubeconfigFile, log, timing: quick, timeoutMs })
  t.after(async () => {
    proxy.restore()
    await client.close()
  })
  return client
}

function secret(name: string, text: string, namespace = 'default'): JsonObject {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data: { text: base64(text) } }
}

function metadataOf(object: JsonObject | undefined): Record<string, unknown> {
  return Object(object?.['metadata'])
}

function textOf(object: JsonObject | undefined): string {
  return Buffer.from(String(Object(object?.['data']).text), 'base64').toString()
}

/** Follows the Secrets of a namespace, and keeps what they are by what it hears. */
function mirror(t: TestContext, client: KubeClient, namespace: string) {
  const objects = new Map<string, string>()
  const states: { current: boolean; message: string; known: string[] }[] = []
  const received: string[] = []
  let replaced = 0
  const nameOf = (object: JsonObject): string => String(metadataOf(object)['name'])
  const events: FollowEvents = {
    onReplace: (list) => {
      replaced++
      objects.clear()
      for (const object of list) objects.set(nameOf(object), textOf(object))
    },
    onChange: (type, object) => {
      received.push(`${type} ${nameOf(object)}`)
      if (type === 'DELETED') objects.delete(nameOf(object))
      else objects.set(nameOf(object), textOf(object))
    },
    onState: (current, message) => states.push({ current, message, known: [...objects.keys()] }),
  }
  const following = client.follow(SECRETS, namespace, events)
  t.after(() => following.stop())
  return {
    objects,
    states,
    received,
    get replaced() {
      return replaced
    },
    isCurrent: () => states.at(-1)?.current === true,
  }
}

async function namespaceNamed(name: string): Promise<string> {
  await direct.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  return name
}

function isStatus(code: number, reason: string, message: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof StatusError, String(error))
    assert.deepEqual([error.code, error.reason], [code, reason])
    assert.match(error.message, message)
    return true
  }
}

test('objects are created, read, listed, changed and deleted; refusals are those of the server', async () => {
  const at = { namespace: 'default', name: 'one' }
  const created = await direct.create(SECRETS, secret('one', 'a'))
  await assert.rejects(
    direct.create(SECRETS, secret('one', 'a')),
    isStatus(409, 'AlreadyExists', /"one" already exists/),
  )
  assert.equal(textOf(await direct.get(SECRETS, at)), 'a')
  const updated = await direct.update(SECRETS, { ...created, data: { text: base64('b') } })
  assert.equal(textOf(updated), 'b')
  const stale = direct.update(SECRETS, { ...created, data: { text: base64('c') } })
  await assert.rejects(stale, isStatus(409, 'Conflict', /the object has been modified/))
  const merge = { data: { text: base64('d') } }
  await direct.patch(SECRETS, at, 'application/merge-patch+json', merge, { fieldManager: 'test' })
  const json = [{ op: 'add', path: '/data/more', value: base64('e') }]
  await direct.patch(SECRETS, at, 'application/json-patch+json', json, { fieldManager: 'test' })
  const applied = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'one' }, data: { text: base64('f') } }
  const apply = (force: boolean): Promise<JsonObject> =>
    direct.patch(SECRETS, at, 'application/apply-patch+yaml', applied, { fieldManager: 'other', force })
  await assert.rejects(apply(false), isStatus(409, 'Conflict', /conflict with "test"/))
  assert.equal(textOf(await apply(true)), 'f')
  const { items, resourceVersion } = await direct.list(SECRETS, 'default')
  assert.deepEqual([items.length, items[0]?.['kind'], items[0]?.['apiVersion']], [1, 'Secret', 'v1'])
  assert.match(resourceVersion, /^[1-9]\d*$/)
  assert.equal((await direct.list(SECRETS, '', 'none=none')).items.length, 0)
  await direct.delete(SECRETS, at)
  await assert.rejects(direct.get(SECRETS, at), isStatus(404, 'NotFound', /^secrets "one" not found$/))
  await assert.rejects(
    direct.get(SECRETS, { namespace: 'default', name: '..' }),
    isStatus(404, 'NotFound', /not found/),
  )
})

test('a forbidden call rejects with a StatusError', async () => {
  const file = cluster.kubeconfigFor({ cert: cluster.clientCertificate('nobody') })
  const client = createKubeClient({ kubeconfigFile: file, log })
  await assert.rejects(
    client.list(SECRETS, ''),
    isStatus(403, 'Forbidden', /secrets is forbidden: User "nobody" cannot list resource "secrets"/),
  )
  const wrong = createKubeClient({ kubeconfigFile: cluster.kubeconfigFor({ token: 'wrong-token' }), log })
  await assert.rejects(wrong.list(SECRETS, ''), isStatus(401, 'Unauthorized', /Unauthorized/))
  await Promise.all([client.close(), wrong.close()])
})

test('no answer is an Error for people', async () => {
  const server = 'https://127.0.0.1:9'
  const away = createKubeClient({ kubeconfigFile: cluster.kubeconfigFor(cluster.admin, server), log })
  await assert.rejects(away.list(SECRETS, ''), (error) => {
    assert.ok(error instanceof Error && !(error instanceof StatusError))
    assert.equal(error.message, `no answer from ${server}: connection refused`)
    return true
  })
  const untrusted = cluster.newKubeconfigPath()
  const url = cluster.apiservers[0]?.url ?? ''
  const users = [{ name: 'u', user: { token: 'sesame-token' } }]
  const contexts = [{ name: 'c', context: { cluster: 'k', user: 'u' } }]
  const clusters = [
    { name: 'k', cluster: { server: url, 'certificate-authority-data': base64(cluster.clientCA.certPem) } },
  ]
  writeFileSync(untrusted, stringify({ 'current-context': 'c', clusters, users, contexts }))
  const client = createKubeClient({ kubeconfigFile: untrusted, log })
  await assert.rejects(client.list(SECRETS, ''), /its certificate is signed by a CA that is not trusted$/)
  await Promise.all([away.close(), client.close()])
})

test('a credential plugin is run again when its token is refused', async () => {
  const file = cluster.newKubeconfigPath()
  const plugin = join(cluster.dir, 'plugin.sh')
  const credential = (token: string): string =>
    JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } })
  // The first run hands out a token that has been revoked. Every run must be told what client-go tells.
  writeFileSync(
    plugin,
    `#!/bin/sh
case "$KUBERNETES_EXEC_INFO" in *ExecCredential*) ;; *) exit 1;; esac
if [ -e "$0.ran" ]; then echo '${credential('sesame-token')}'; else touch "$0.ran"; echo '${credential('old')}'; fi
`,
  )
  chmodSync(plugin, 0o700)
  const server = cluster.apiservers[0]?.url ?? ''
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin.sh', interactiveMode: 'Never' }
  const ca = base64(cluster.ca.certPem)
  writeFileSync(
    file,
    stringify({
      'current-context': 'c',
      clusters: [{ name: 'k', cluster: { server, 'certificate-authority-data': ca } }],
      users: [{ name: 'u', user: { exec } }],
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    }),
  )
  const client = createKubeClient({ kubeconfigFile: file, log })
  assert.ok((await client.list(NAMESPACES, '')).items.length > 0)
})

test('a list of many pages, and every change after it', async (t) => {
  const namespace = await namespaceNamed('pages')
  const names = Array.from({ length: 620 }, (_, i) => `s${i}`)
  await Promise.all(names.map((name) => direct.create(SECRETS, secret(name, name, namespace))))
  const received = mirror(t, direct, namespace)
  await waitFor('the list', () => received.isCurrent())
  assert.deepEqual([...received.objects.keys()].sort(), [...names].sort())
  await direct.create(SECRETS, secret('new', 'x', namespace))
  await direct.patch(
    SECRETS,
    { namespace, name: 's0' },
    'application/merge-patch+json',
    { data: { text: base64('changed') } },
    { fieldManager: 'test' },
  )
  await direct.delete(SECRETS, { namespace, name: 's1' })
  await waitFor('three changes', () => received.received.length === 3)
  assert.deepEqual(received.received, ['ADDED new', 'MODIFIED s0', 'DELETED s1'])
  assert.deepEqual([received.objects.get('s0'), received.objects.size, received.replaced], ['changed', 620, 1])
})

test('a broken connection is taken up where it broke', async (t) => {
  const namespace = await namespaceNamed('blip')
  const client = throughProxy(t, { awayMs: 20_000 })
  await direct.create(SECRETS, secret('a', '1', namespace))
  const received = mirror(t, client, namespace)
  await waitFor('the list', () => received.isCurrent())
  proxy.sever()
  await direct.create(SECRETS, secret('b', '2', namespace))
  await direct.delete(SECRETS, { namespace, name: 'a' })
  proxy.restore()
  await waitFor('both changes', () => received.received.length === 2)
  assert.deepEqual([received.received, received.replaced], [['ADDED b', 'DELETED a'], 1])
  assert.deepEqual(
    received.states.map(({ current }) => current),
    [true],
  )
})

test('disconnected for long: reported, and current again only when everything is known', async (t) => {
  const namespace = await namespaceNamed('away')
  const client = throughProxy(t, { awayMs: 200 })
  await direct.create(SECRETS, secret('a', '1', namespace))
  await direct.create(SECRETS, secret('kept', '1', namespace))
  const received = mirror(t, client, namespace)
  await waitFor('the list', () => received.isCurrent())
  proxy.sever()
  await waitFor('the news that it is away', () => received.states.at(-1)?.current === false)
  assert.match(received.states.at(-1)?.message ?? '', /^no answer from https:.*: the connection broke$/)
  const attempts = proxy.accepted
  await waitFor('more attempts', () => proxy.accepted > attempts + 3)
  await direct.create(SECRETS, secret('b', '2', namespace))
  await direct.delete(SECRETS, { namespace, name: 'a' })
  proxy.restore()
  await waitFor('the news that it is current', () => received.isCurrent())
  assert.deepEqual(received.states.at(-1)?.known.sort(), ['b', 'kept'])
  assert.equal(received.replaced, 2)
})

test('a connection on which nothing passes is found by its silence', async (t) => {
  const namespace = await namespaceNamed('frozen')
  const client = throughProxy(t, { silenceMs: 1_500, awayMs: 20_000 }, 1_500)
  const received = mirror(t, client, namespace)
  await waitFor('the list', () => received.isCurrent())
  proxy.freeze()
  await direct.create(SECRETS, secret('b', '2', namespace))
  await waitFor('the change', () => received.objects.has('b'))
})

test('after a restart of the API server the follower catches up', async (t) => {
  const namespace = await namespaceNamed('restart')
  const client = throughProxy(t, { awayMs: 200 })
  await direct.create(SECRETS, secret('a', '1', namespace))
  const received = mirror(t, client, namespace)
  await waitFor('the list', () => received.isCurrent())
  await cluster.apiservers[0]?.kill()
  await waitFor('the news that it is away', () => received.states.at(-1)?.current === false)
  await cluster.apiservers[0]?.restart()
  await direct.create(SECRETS, secret('b', '2', namespace))
  await waitFor('the change', () => received.isCurrent() && received.objects.has('b'))
  assert.deepEqual([...received.objects.keys()].sort(), ['a', 'b'])
})

test('one of two candidates leads; the other takes over when it stops or is disconnected', async (t) => {
  const client = throughProxy(t)
  const times = { leaseDurationMs: 2_000, renewDeadlineMs: 1_200, retryPeriodMs: 100, log }
  const lease = { namespace: 'default', name: 'leader' }
  const a = startLeaderElection(client, { ...lease, ...times, identity: 'a' })
  await waitFor('a to lead', () => a.isLeader())
  const b = startLeaderElection(direct, { ...lease, ...times, identity: 'b' })
  let both = false
  const watch = setInterval(() => {
    both ||= a.isLeader() && b.isLeader()
  }, 5)
  const first = await direct.get(LEASES, lease)
  await waitFor('a renewal', async () => {
    const now = await direct.get(LEASES, lease)
    return Object(now['spec']).renewTime !== Object(first['spec']).renewTime
  })
  assert.equal(b.isLeader(), false)
  proxy.sever()
  await waitFor('b to lead', () => b.isLeader())
  proxy.restore()
  const taken = Object((await direct.get(LEASES, lease))['spec'])
  assert.deepEqual([taken.holderIdentity, taken.leaseTransitions], ['b', 1])
  await b.stop()
  await waitFor('a to lead again', () => a.isLeader())
  await a.stop()
  clearInterval(watch)
  assert.equal(both, false)
  assert.equal(Object((await direct.get(LEASES, lease))['spec']).holderIdentity ?? '', '')
})

test('two replicas that create the lease at once: one is faster, and neither logs an error', async () => {
  const lease = { namespace: 'default', name: 'at-once' }
  const times = { retryPeriodMs: 20, log }
  const from = lines.length
  const first = startLeaderElection(direct, { ...lease, ...times, identity: 'first' })
  await waitFor('it to lead', () => first.isLeader())
  let created = 0
  const late: Pick<KubeClient, 'get' | 'create' | 'update'> = {
    // As it was a moment ago.
    get: () => Promise.reject(statusError('NotFound', 'leases "at-once" not found')),
    create: (kind, object) => {
      created++
      return direct.create(kind, object)
    },
    update: (kind, object) => direct.update(kind, object),
  }
  const second = startLeaderElection(late, { ...lease, ...times, identity: 'second' })
  await waitFor('it to have tried twice', () => created >= 2)
  assert.equal(second.isLeader(), false)
  await Promise.all([first.stop(), second.stop()])
  assert.deepEqual(
    lines.slice(from).filter((line) => line.includes('cannot be')),
    [],
  )
})

test('no credential was logged', () => {
  assert.ok(lines.length > 0)
  for (const line of lines) assert.doesNotMatch(line, /sesame|wrong-token|PRIVATE KEY|Bearer/)
})
