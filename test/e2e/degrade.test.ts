// The degrade switch in the middle of kubectl and heartbeat traffic: kube-controller-manager and kwok, which plays every
// kubelet, run through the gateway.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Degrade, DispatchRule } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type KubectlResult, kubectl } from '../harness/kubectl/kubectl.ts'
import { waitFor } from '../harness/wait.ts'

/** Without heartbeats for this long a node is no longer Ready. Default of Kubernetes: 50. */
const GRACE_SECONDS = 6
const LEASE_SECONDS = 4
const NODES = 2
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const REASON = 'etcd is slow, see #incident-7'
const EXPIRES_AT = '2099-01-02T03:04:05Z'
const OPERATOR: readonly DispatchRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], users: ['operator'] },
  { verbs: ['*'], nonResourceURLs: ['*'], users: ['operator'] },
]

/** Who says that nodes are NotReady, each controller by a service account of its own: it has to go on saying so. */
const CONTROLLERS: readonly DispatchRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], users: ['system:kube-controller-manager'] },
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], userGroups: ['system:serviceaccounts:kube-system'] },
]

const RBAC = join(import.meta.dirname, '../../deploy/rbac/scale-worker.yaml')

let cluster: TestCluster
let gateway: TestGateway
let kubeconfig = ''
let operator = ''
/** HOME of kubectl, so that it knows the API of the cluster before the switch is flipped. */
let home = ''

before(async () => {
  home = mkdtempSync(join(tmpdir(), 'portcullis-degrade-'))
  cluster = await startCluster({ kubelet: true })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)] })
  const through = (component: 'kube-controller-manager' | 'kwok'): Promise<string> =>
    kubeconfigThrough(gateway, cluster, cluster.componentUser(component), { path: true })
  const grace = [`--node-monitor-grace-period=${GRACE_SECONDS}s`]
  const lease = [`--node-lease-duration-seconds=${LEASE_SECONDS}`]
  await Promise.all([
    cluster.startControllerManager({ kubeconfig: await through('kube-controller-manager'), flags: grace }),
    cluster.startKwok({ kubeconfig: await through('kwok'), flags: lease }),
  ])
  await cluster.createNodes(NODES)
  kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin)
  const cert = cluster.clientCertificate('operator', ['system:masters'])
  operator = await kubeconfigThrough(gateway, cluster, { cert })
  assert.equal((await run('get', 'pods,replicasets,configmaps')).code, 0)
  assert.equal((await run('explain', 'pods')).code, 0)
})
afterEach(async () => {
  degrade(undefined)
  await untilWorks('create', 'configmap', 'probe', '--dry-run=server')
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  rmSync(home, { recursive: true, force: true })
})

function run(...args: string[]): Promise<KubectlResult> {
  return kubectl(args, { kubeconfig, home })
}

function degrade(setting: Degrade | undefined): void {
  gateway.write(upstreamClusterFor(cluster, setting === undefined ? {} : { spec: { degrade: setting } }))
}

async function untilRefused(...args: string[]): Promise<KubectlResult> {
  return waitFor(`${args.join(' ')} to be refused`, async () => {
    const result = await run(...args)
    return result.code !== 0 && result
  })
}

async function untilWorks(...args: string[]): Promise<KubectlResult> {
  return waitFor(`${args.join(' ')} to work`, async () => {
    const result = await run(...args)
    return result.code === 0 && result
  })
}

interface NodeState {
  readonly name: string
  readonly ready: string
  readonly since: string
  readonly renewedMs: number
}

/** As the apiserver itself knows it. */
async function nodeStates(): Promise<NodeState[]> {
  const [nodes, leases] = await Promise.all(
    ['/api/v1/nodes', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'].map(async (path) => {
      const answer = await cluster.request(path)
      return answer.json().items
    }),
  )
  // biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes
  return nodes.map(({ metadata, status }: any) => {
    // biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes
    const ready = status.conditions.find(({ type }: any) => type === 'Ready')
    // biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes
    const lease = leases.find((one: any) => one.metadata.name === metadata.name)
    const renewedMs = Date.parse(lease.spec.renewTime)
    return { name: metadata.name, ready: ready.status, since: ready.lastTransitionTime, renewedMs }
  })
}

/** A ReplicaSet gets its pods from the controller manager, and kwok makes them Ready. */
async function assertControllersWork(name: string): Promise<void> {
  const labels = { app: name }
  const container = { name: 'c', image: 'c:1' }
  const template = { metadata: { labels }, spec: { nodeName: 'node-0', containers: [container] } }
  const spec = { replicas: 2, selector: { matchLabels: labels }, template }
  const object = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name }, spec }
  const applied = await kubectl(['apply', '-f', '-'], { kubeconfig, home, stdin: JSON.stringify(object) })
  assert.equal(applied.code, 0, applied.stderr)
  const path = '{.status.readyReplicas}'
  await waitFor('two pods', async () => (await run('get', 'rs', name, '-o', `jsonpath=${path}`)).stdout === '2')
}

function assertTold(result: KubectlResult, mode: string): void {
  assert.equal(result.code, 1)
  assert.equal(result.stdout, '')
  assert.match(result.stderr, new RegExp(`in degrade mode ${mode} .*until ${EXPIRES_AT}: ${REASON}`))
}

describe('degrade', () => {
  test('HeartbeatsOnly: nodes stay Ready, kubectl is refused, and lifted all flows again', async () => {
    await assertControllersWork('before')
    const before = await nodeStates()
    degrade({ mode: 'HeartbeatsOnly', reason: REASON, expiresAt: EXPIRES_AT })
    assertTold(await untilRefused('get', 'pods'), 'HeartbeatsOnly')
    for (const command of ['get nodes', 'get configmaps -w', 'create configmap x', 'scale rs before --replicas=1']) {
      assertTold(await run(...command.split(' ')), 'HeartbeatsOnly')
    }
    const from = Math.max(...before.map(({ renewedMs }) => renewedMs))
    const longAfter = from + 2 * GRACE_SECONDS * 1000
    const during = await waitFor('heartbeats for longer than the grace period', async () => {
      const states = await nodeStates()
      for (const { name, ready } of states) assert.equal(ready, 'True', `${name} is Ready`)
      return states.every(({ renewedMs }) => renewedMs > longAfter) && states
    })
    assert.deepEqual(
      during.map(({ name, since }) => [name, since]),
      before.map(({ name, since }) => [name, since]),
      'no node was anything but Ready in between',
    )
    assertTold(await run('get', 'pods'), 'HeartbeatsOnly')
    degrade(undefined)
    await untilWorks('get', 'pods')
    await assertControllersWork('after')
    const refused = await gateway.logged((line) => line['reason'] === 'degraded')
    assert.equal(refused[0]?.['code'], 503)
  })

  test('Freeze: nothing but health and who is exempt; a running watch goes on', async () => {
    const session = h2Connect({
      port: gateway.port,
      serverName: hostOf(cluster.name),
      certificate: cluster.admin.cert,
    })
    const authority = hostOf(cluster.name)
    const watch = h2Open(session, [':path', `${CONFIGMAPS}?watch=1`, ':authority', authority])
    let seen = ''
    watch.setEncoding('utf8').on('data', (text: string) => {
      seen += text
    })
    await waitFor('the watch', () => seen.includes('kube-root-ca.crt'))
    degrade({ mode: 'Freeze', reason: REASON, expiresAt: EXPIRES_AT, exempt: OPERATOR })
    assertTold(await untilRefused('get', 'configmaps'), 'Freeze')
    for (const command of ['get nodes', 'delete configmap x', 'auth can-i get pods', 'get pods -A -w']) {
      assertTold(await run(...command.split(' ')), 'Freeze')
    }
    const { stderr } = await run('exec', 'rs/before', '--', 'true')
    assert.match(stderr, /Freeze/)
    for (const path of ['/readyz', '/livez', '/healthz', '/version']) {
      assert.equal((await run('get', '--raw', path)).code, 0, path)
    }
    const heartbeat = [':path', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0']
    const answer = await h2Request(session, [...heartbeat, ':authority', authority])
    assert.equal(answer.status, 503)
    assert.ok(!answer.head.includes('retry-after'), 'client-go would send it again')
    assert.deepEqual(
      JSON.parse(answer.body.toString()).details.causes.map(({ message }: { message: string }) => message),
      ['Freeze', REASON, EXPIRES_AT],
    )
    const made = await kubectl(['create', 'configmap', 'by-the-operator'], { kubeconfig: operator, home })
    assert.equal(made.code, 0, made.stderr)
    await waitFor('the event on the running watch', () => seen.includes('by-the-operator'))
    session.destroy()
    degrade(undefined)
    await untilWorks('get', 'nodes')
    await assertControllersWork('after-freeze')
  })

  test('ReadOnly: reads and watches pass, writes are refused', async () => {
    degrade({ mode: 'ReadOnly', reason: REASON, expiresAt: EXPIRES_AT })
    assertTold(await untilRefused('create', 'configmap', 'probe', '--dry-run=server'), 'ReadOnly')
    for (const command of [
      'get pods -A',
      'describe nodes',
      'get --raw /metrics',
      'auth can-i get pods',
      'explain rs',
    ]) {
      assert.equal((await run(...command.split(' '))).code, 0, command)
    }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'refused' } }
    for (const args of [
      ['apply', '-f', '-'],
      ['apply', '--server-side', '-f', '-'],
      ['create', '-f', '-'],
    ]) {
      const result = await kubectl(args, { kubeconfig, home, stdin: JSON.stringify(object) })
      assert.equal(result.code, 1)
      assert.match(result.stderr, new RegExp(`ReadOnly .*until ${EXPIRES_AT}: ${REASON}`))
    }
    for (const command of ['annotate node node-0 a=b', 'scale rs before --replicas=1', 'delete configmaps --all']) {
      const { code, stderr } = await run(...command.split(' '))
      assert.notEqual(code, 0)
      assert.match(stderr, new RegExp(`ReadOnly .*${REASON}`))
    }
    assert.match((await run('exec', 'rs/before', '--', 'true')).stderr, /ReadOnly/)
    const events = await cluster.kubectl(['get', 'configmaps', '-w', '-o', 'name', '--request-timeout=2s'], {
      kubeconfig,
      home,
    })
    assert.match(events.stdout, /configmap\/kube-root-ca\.crt/)
    assert.equal((await cluster.request(`${CONFIGMAPS}/refused`)).status, 404)
    degrade(undefined)
    await untilWorks('create', 'configmap', 'allowed')
  })

  test('NoDisruption: creates and updates pass; what takes away pods or nodes does not, in any format', async () => {
    // Without it the gateway does not know what replicas were before, and the write passes.
    assert.equal((await cluster.kubectl(['apply', '-f', RBAC])).code, 0)
    await assertControllersWork('before')
    await assertControllersWork('kept')
    const [pod = ''] = (await run('get', 'pods', '-l', 'app=kept', '-o', 'name')).stdout.split('\n')
    const name = pod.slice('pod/'.length)
    degrade({ mode: 'NoDisruption', reason: REASON, expiresAt: EXPIRES_AT })
    await waitFor('the mode', async () => /NoDisruption/.test((await run('delete', 'configmap', 'none')).stderr))
    // Past the gateway, and kwok, which is not a kubelet by name, may not finish it.
    const directly = await cluster.kubectl(['delete', pod, '--wait=false', '--grace-period=600'])
    assert.equal(directly.code, 0, directly.stderr)
    const apply = (object: object, ...flags: string[]): Promise<KubectlResult> =>
      kubectl(['apply', ...flags, '-f', '-'], { kubeconfig, home, stdin: JSON.stringify(object) })
    const tainted = (effect: string): object => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-1' },
      spec: { taints: [{ key: 'applied', effect }] },
    })
    for (const command of [
      'create configmap created',
      'label node node-0 a=b --overwrite',
      'taint node node-0 soft=x:NoSchedule --overwrite',
      'scale rs before --replicas=3',
      'annotate pods --all a=b --overwrite',
      'delete pods --all --dry-run=server',
      'delete node node-0 --dry-run=server',
      'taint node node-0 hard=x:NoExecute --dry-run=server',
      'patch node node-1 --type=json -p [{"op":"add","path":"/metadata/labels/c","value":"d"}]',
    ]) {
      const { code, stderr } = await run(...command.split(' '))
      assert.equal(code, 0, `${command}: ${stderr}`)
    }
    assert.equal((await apply(tainted('NoSchedule'), '--server-side', '--force-conflicts')).code, 0)
    const taints = '"taints":[{"key":"hard","effect":"NoExecute"}]'
    for (const command of [
      'delete pods --all --wait=false',
      'delete rs kept --wait=false',
      'delete node node-0 --wait=false',
      'delete --raw /api/v1/namespaces/default/pods',
      'scale rs before --replicas=1',
      'patch rs before --type=merge -p {"spec":{"replicas":1}}',
      'patch rs before --type=json -p [{"op":"replace","path":"/spec/replicas","value":1}]',
      'taint node node-0 hard=x:NoExecute',
      `patch node node-0 --type=merge -p {"spec":{${taints}}}`,
      `patch node node-0 --type=strategic -p {"spec":{${taints}}}`,
      'patch node node-0 --type=json -p [{"op":"add","path":"/spec/taints","value":[{"key":"hard","effect":"No\\u0045xecute"}]}]',
    ]) {
      const { code, stderr } = await run(...command.split(' '))
      assert.notEqual(code, 0, command)
      assert.match(stderr, new RegExp(`in degrade mode NoDisruption .*until ${EXPIRES_AT}: ${REASON}`), command)
    }
    const applied = await apply(tainted('NoExecute'), '--server-side', '--force-conflicts')
    assert.match(applied.stderr, /adds NoExecute taint applied to nodes\/node-1/)
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } }
    const path = `/api/v1/namespaces/default/pods/${name}/eviction`
    const evicted = await kubectl(['create', '--raw', path, '-f', '-'], {
      kubeconfig,
      home,
      stdin: JSON.stringify(eviction),
    })
    assert.match(evicted.stderr, /NoDisruption/)
    const node = await cluster.request('/api/v1/nodes/node-0')
    const { taints: kept = [] } = node.json().spec
    assert.deepEqual([kept.map(({ key }: { key: string }) => key)], [['soft']])

    // kube-controller-manager, which comes through the gateway, may not evict what does not tolerate the taint.
    const hard = await cluster.kubectl(['taint', 'node', 'node-0', 'hard=x:NoExecute'])
    assert.equal(hard.code, 0, hard.stderr)
    await gateway.logged((line) => {
      return (
        line['reason'] === 'disruption-refused' &&
        String(line['user']).startsWith('system:') &&
        line['verb'] === 'delete'
      )
    })
    // A write that keeps the taint is not refused.
    const whole = (await run('get', 'node', 'node-0', '-o', 'json')).stdout
    const replaced = await kubectl(['replace', '-f', '-'], { kubeconfig, home, stdin: whole })
    assert.equal(replaced.code, 0, replaced.stderr)
    const pods: readonly { readonly metadata: { readonly name: string; readonly deletionTimestamp?: string } }[] = (
      await cluster.request('/api/v1/namespaces/default/pods')
    ).json().items
    const ending = pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    assert.deepEqual(
      ending.map(({ metadata }) => metadata.name),
      [name],
      'only the one that was deleted past the gateway',
    )

    // The kubelet finishes what was deleted.
    const binding = ['clusterrolebinding', 'kubelets', '--clusterrole=cluster-admin', '--group=system:nodes']
    assert.equal((await cluster.kubectl(['create', ...binding])).code, 0)
    const cert = cluster.clientCertificate('system:node:node-0', ['system:nodes'])
    const kubelet = await kubeconfigThrough(gateway, cluster, { cert })
    const finished = await kubectl(['delete', pod, '--grace-period=0', '--force', '--wait=false'], {
      kubeconfig: kubelet,
      home,
    })
    assert.equal(finished.code, 0, finished.stderr)
    assert.equal((await cluster.request(`/api/v1/namespaces/default/pods/${name}`)).status, 404)
    await cluster.kubectl(['taint', 'node', 'node-0', 'hard-', 'soft-'])
    degrade(undefined)
    await untilWorks('delete', 'rs', 'kept')
  })

  test('Limited: what disrupts passes at a rate, for all threads together; the rest is not limited', async () => {
    const limited = { startQPS: 1, endQPS: 1 }
    degrade({ mode: 'Limited', reason: REASON, expiresAt: EXPIRES_AT, since: '2026-01-01T00:00:00Z', limited })
    const certificate = cluster.clientCertificate('operator', ['system:masters'])
    const sessions = Array.from({ length: 6 }, () =>
      h2Connect({ port: gateway.port, serverName: hostOf(cluster.name), certificate }),
    )
    const all = (method: string, path: string): Promise<number[]> =>
      Promise.all(
        sessions.map(
          async (session) =>
            (await h2Request(session, [':method', method, ':path', path, ':authority', hostOf(cluster.name)])).status,
        ),
      )
    const codes = await waitFor('the mode', async () => {
      const seen = await all('DELETE', `${CONFIGMAPS}/none`)
      return seen.includes(429) && seen
    })
    assert.ok(
      codes.every((code) => code === 404 || code === 429),
      String(codes),
    )
    await waitFor('one of them to pass', async () => (await all('DELETE', `${CONFIGMAPS}/none`)).includes(404))
    assert.deepEqual(new Set(await all('GET', CONFIGMAPS)), new Set([200]))
    for (const session of sessions) session.destroy()
  })

  test('the way back from a Freeze: nodes that are Ready again stay so under ReadOnly', async () => {
    degrade({ mode: 'Freeze', reason: REASON, expiresAt: EXPIRES_AT, exempt: CONTROLLERS })
    await waitFor('nodes without heartbeats', async () => {
      return (await nodeStates()).every(({ ready }) => ready !== 'True')
    })
    degrade({ mode: 'HeartbeatsOnly', reason: REASON, expiresAt: EXPIRES_AT, exempt: CONTROLLERS })
    const back = await waitFor('nodes to be Ready', async () => {
      const states = await nodeStates()
      return states.every(({ ready }) => ready === 'True') && states
    })
    degrade({ mode: 'ReadOnly', reason: REASON, expiresAt: EXPIRES_AT, exempt: CONTROLLERS })
    await untilWorks('get', 'pods')
    assertTold(await run('label', 'node', 'node-0', 'refused=yes', '--overwrite'), 'ReadOnly')
    const from = Math.max(...(await nodeStates()).map(({ renewedMs }) => renewedMs))
    const during = await waitFor('heartbeats for longer than the grace period', async () => {
      const states = await nodeStates()
      return states.every(({ renewedMs }) => renewedMs > from + 2 * GRACE_SECONDS * 1000) && states
    })
    assert.deepEqual(
      during.map(({ name, ready, since }) => [name, ready, since]),
      back.map(({ name, ready, since }) => [name, ready, since]),
    )
  })

  // client-go drops the Status of refused discovery and OpenAPI requests, and prints the warnings that came with it.
  test('a kubectl that has yet to discover the API is told, too', async () => {
    degrade({ mode: 'Freeze', reason: REASON, expiresAt: EXPIRES_AT })
    await untilRefused('get', 'pods')
    const { code, stderr } = await cluster.kubectl(['get', 'pods'], { kubeconfig })
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`^Warning: .*in degrade mode Freeze .*until ${EXPIRES_AT}: ${REASON}`, 'm'))
  })

  test("KubeGateway's annotation DenyAllRequests is Freeze", async () => {
    const annotations = { 'proxy.kubegateway.io/feature-gates': 'DenyAllRequests=true' }
    gateway.write(upstreamClusterFor(cluster, { annotations }))
    assert.match((await untilRefused('get', 'pods')).stderr, /Freeze/)
    assert.equal((await run('get', '--raw', '/readyz')).code, 0)
    const off = { 'proxy.kubegateway.io/feature-gates': 'DenyAllRequests=false' }
    gateway.write(upstreamClusterFor(cluster, { annotations: off }))
    await untilWorks('get', 'pods')
  })

  test('the expiry ends it by itself', async () => {
    const expiresAt = new Date(Date.now() + 5_000).toISOString()
    degrade({ mode: 'Freeze', reason: REASON, expiresAt })
    await untilRefused('get', 'pods')
    await untilWorks('get', 'pods')
    assert.ok(Date.now() >= Date.parse(expiresAt), 'not before')
  })
})
