// The scale-up guard end to end, with the CRDs of Cluster API on a real kube-apiserver: this file plays its controllers and the
// cluster-autoscaler, and writes through the gateway as these do.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { type KubeResponse, kubeRequest } from '../../harness/clusters/kube-request.ts'
import { coreUser } from '../../harness/clusters/protection-rights.ts'
import { crdsOf } from '../../harness/clusters/third-party-crds.ts'
import { hostOf, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, startEmbedded } from '../../harness/gateways/embedded.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { GiveUp, waitFor } from '../../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

const CAPI = '/apis/cluster.x-k8s.io/v1beta2'
const NAMESPACE = 'default'
const GUARDS = '/apis/scale.portcullis.io/v1alpha1/scaleupguards'
const MERGE = 'application/merge-patch+json'
const AUTOSCALER = 'system:serviceaccount:kube-system:cluster-autoscaler'
const TOKENS = { autoscaler: 'token-of-the-autoscaler', person: 'token-of-a-person' }
const KINDS = ['clusters', 'machinedeployments', 'machinesets', 'machines', 'machinepools', 'machinehealthchecks']

let cluster: TestCluster
let embedded: EmbeddedGateway

before(async () => {
  cluster = await startCluster({
    name: 'mgmt',
    tokens: [
      { token: TOKENS.autoscaler, user: AUTOSCALER, uid: 'autoscaler', groups: ['system:masters'] },
      { token: TOKENS.person, user: 'alice', uid: 'alice', groups: ['system:masters'] },
    ],
  })
  const folder = crdsOf('cluster-api')
  for (const kind of KINDS) {
    const crd = parse(readFileSync(join(folder, `cluster.x-k8s.io_${kind}.yaml`), 'utf8'))
    await direct('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd)
  }
  const rbac = join(import.meta.dirname, '../../../deploy/rbac')
  for (const file of ['scale-up-guard-management.yaml', 'scale-up-guard-workload.yaml']) {
    const { code, stderr } = await cluster.kubectl(['apply', '-f', join(rbac, file)])
    assert.equal(code, 0, stderr)
  }
  for (const kind of KINDS) {
    await waitFor(`${kind} to be served`, async () => (await cluster.request(`${CAPI}/${kind}`)).status === 200)
  }
  await direct('POST', objects('clusters'), { ...head('Cluster', 'c'), spec: { paused: false } })
  embedded = await startEmbedded()
  await embedded.apply(upstreamClusterFor(cluster), guard('guard'))
  await waitFor('the gateway to serve the cluster', async () => {
    return (await through('person', 'GET', objects('machinedeployments'))).status === 200
  })
})
after(async () => {
  await embedded?.stop()
  await cluster?.stop()
})

function guard(name: string, spec: Json = {}): Json {
  return {
    apiVersion: 'scale.portcullis.io/v1alpha1',
    kind: 'ScaleUpGuard',
    metadata: { name },
    spec: {
      clusterRef: { management: 'mgmt' },
      groupSelector: { matchLabels: { guarded: name } },
      failure: { minDuration: '1s' },
      backoff: { initial: '1h', max: '2h' },
      ...spec,
    },
  }
}

function objects(plural: string, name = ''): string {
  return `${CAPI}/namespaces/${NAMESPACE}/${plural}${name === '' ? '' : `/${name}`}`
}

function head(kind: string, name: string, metadata: Json = {}): Json {
  return { apiVersion: 'cluster.x-k8s.io/v1beta2', kind, metadata: { name, namespace: NAMESPACE, ...metadata } }
}

/** As an administrator, past the gateway. */
async function direct(method: string, path: string, body?: Json, type = 'application/json'): Promise<Json> {
  const answer = await cluster.request(path, { method, headers: { 'content-type': type }, ...(body && { body }) })
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
  return answer.json()
}

/** Through the gateway. */
function through(
  user: keyof typeof TOKENS,
  method: string,
  path: string,
  body?: Json,
  type = 'application/json',
  port = embedded.gateway.port,
): Promise<KubeResponse> {
  return kubeRequest({
    server: `https://127.0.0.1:${port}`,
    serverName: hostOf('mgmt'),
    user: { token: TOKENS[user] },
    method,
    path,
    headers: { 'content-type': type },
    ...(body !== undefined && { body }),
  })
}

const MACHINE_SPEC = {
  clusterName: 'c',
  bootstrap: { dataSecretName: 'none' },
  infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'TestMachine', name: 'none' },
}

interface Group {
  readonly name: string
  readonly replicas: number
  readonly machines: Json[]
}

/** A MachineDeployment as the autoscaler scales it, its MachineSet, and one Machine for each replica. */
async function createGroup(name: string, replicas: number, of = 'guard', annotations: Json = {}): Promise<Group> {
  const key = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group'
  const sizes = { [`${key}-min-size`]: '0', [`${key}-max-size`]: '10', ...annotations }
  const metadata = { labels: { guarded: of }, annotations: sizes }
  const template = { metadata: { labels: { group: name } }, spec: MACHINE_SPEC }
  const selector = { matchLabels: { group: name } }
  const spec = { clusterName: 'c', replicas, selector, template }
  const made = await direct('POST', objects('machinedeployments'), {
    ...head('MachineDeployment', name, metadata),
    spec,
  })
  const set = await createSet(made, `${name}-1`, replicas, name)
  const machines: Json[] = []
  for (let index = 0; index < replicas; index++) machines.push(await createMachine(set, `${name}-1-${index}`, name))
  return { name, replicas, machines }
}

function createSet(deployment: Json, name: string, replicas: number, group: string): Promise<Json> {
  const { uid } = deployment.metadata
  const owner = { apiVersion: deployment.apiVersion, kind: 'MachineDeployment', name: group, uid, controller: true }
  const template = { metadata: { labels: { group } }, spec: MACHINE_SPEC }
  const spec = { clusterName: 'c', replicas, selector: { matchLabels: { group } }, template }
  const set = head('MachineSet', name, { labels: { group }, ownerReferences: [owner] })
  return direct('POST', objects('machinesets'), { ...set, spec })
}

function createMachine(set: Json, name: string, group: string, labels: Json = {}): Promise<Json> {
  const { name: setName, uid } = set.metadata
  const owner = { apiVersion: set.apiVersion, kind: 'MachineSet', name: setName, uid, controller: true }
  const machine = head('Machine', name, { labels: { group, ...labels }, ownerReferences: [owner] })
  return direct('POST', objects('machines'), { ...machine, spec: MACHINE_SPEC })
}

/** As Cluster API says it when the cloud has no capacity. */
function failMachine(name: string): Promise<Json> {
  const lastTransitionTime = new Date(Date.now() - 5_000).toISOString().replace(/\.\d+Z/, 'Z')
  const failed = { type: 'InfrastructureReady', status: 'False', reason: 'InstanceProvisionFailed' }
  const condition = { ...failed, message: 'InsufficientInstanceCapacity: none of this kind here', lastTransitionTime }
  return direct('PATCH', `${objects('machines', name)}/status`, { status: { conditions: [condition] } }, MERGE)
}

function joinMachine(name: string): Promise<Json> {
  const nodeRef = { name: `node-${name}` }
  return direct('PATCH', `${objects('machines', name)}/status`, { status: { nodeRef } }, MERGE)
}

async function target(name: string): Promise<number> {
  return (await direct('GET', objects('machinedeployments', name))).spec.replicas
}

async function marked(names: readonly string[]): Promise<string[]> {
  const all = await Promise.all(names.map((name) => direct('GET', objects('machines', name))))
  const isMarked = ({ metadata }: Json): boolean =>
    metadata.annotations?.['cluster.x-k8s.io/delete-machine'] !== undefined
  return all.filter(isMarked).map(({ metadata }) => metadata.name)
}

async function statusOf(name = 'guard'): Promise<Json> {
  return (await embedded.admin.get(`${GUARDS}/${name}`)).json.status ?? {}
}

async function groupStatus(name: string, of = 'guard'): Promise<Json> {
  const { groups = [] } = await statusOf(of)
  return groups.find((group: Json) => group.name === `MachineDeployment/${NAMESPACE}/${name}`)
}

/** GET of the Scale, then the write: as the autoscaler up to 1.32 (PUT) and since (merge patch). */
async function scale(user: keyof typeof TOKENS, name: string, by: number, how: 'PUT' | 'PATCH'): Promise<KubeResponse> {
  const path = `${objects('machinedeployments', name)}/scale`
  const read = await through(user, 'GET', path)
  assert.equal(read.status, 200, read.text)
  const found = read.json()
  const replicas = (found.spec.replicas ?? 0) + by
  return how === 'PUT'
    ? through(user, 'PUT', path, { ...found, spec: { ...found.spec, replicas } })
    : through(user, 'PATCH', path, { spec: { replicas } }, MERGE)
}

/** Until the gateway threads refuse: they hear of the status a moment after it was written. */
async function refused(name: string, how: 'PUT' | 'PATCH'): Promise<Json> {
  return waitFor(`a raise of ${name} to be refused`, async () => {
    const answer = await scale('autoscaler', name, 1, how)
    if (answer.status === 200) await direct('PATCH', objects('machinedeployments', name), undo(answer), MERGE)
    return answer.status === 200 ? false : { ...answer.json(), headers: answer.headers }
  })
}

function undo(answer: KubeResponse): Json {
  return { spec: { replicas: answer.json().spec.replicas - 1 } }
}

test('a failed scale-up: the autoscaler is refused, the target corrected; other groups and people are not touched', async () => {
  const group = await createGroup('a', 4)
  await createGroup('b', 1)
  await waitFor('the guard to see both groups', async () => (await statusOf()).groupCount === 2)
  const names = group.machines.map(({ metadata }) => metadata.name)
  for (const name of names.slice(0, 2)) await joinMachine(name)
  await Promise.all(names.slice(2).map(failMachine))

  await waitFor('the target to be lowered', async () => (await target('a')) === 2)
  assert.deepEqual(await marked(names), names.slice(2))
  const status = await groupStatus('a')
  assert.equal(status.attempt, 1)
  assert.equal(status.failed[0].reason, 'InstanceProvisionFailed')
  assert.ok(Date.parse(status.backoffUntil) > Date.now())

  for (const how of ['PATCH', 'PUT'] as const) {
    const { code, reason, message, details, headers } = await refused('a', how)
    assert.deepEqual([code, reason], [403, 'Forbidden'])
    assert.match(
      message,
      /^scale-up of MachineDeployment\/default\/a refused: \d of \d machines failed \(InstanceProvisionFailed\); backing off/,
    )
    assert.ok(message.length < 400)
    assert.equal(details.causes[0].reason, 'NodeGroupBackoff')
    assert.equal(headers['retry-after'], undefined, 'the autoscaler would wait for it')
  }
  // A write of the object itself raises it as well.
  const whole = await through(
    'autoscaler',
    'PATCH',
    objects('machinedeployments', 'a'),
    { spec: { replicas: 9 } },
    MERGE,
  )
  assert.equal(whole.status, 403)
  assert.equal(await target('a'), 2)

  const other = await scale('autoscaler', 'b', 1, 'PATCH')
  assert.equal(other.status, 200, 'the next group')
  const equal = await scale('autoscaler', 'a', 0, 'PUT')
  assert.equal(equal.status, 200, 'what is there already')
  const lower = await scale('autoscaler', 'a', -1, 'PATCH')
  assert.equal(lower.status, 200, 'lowering')
  const person = await scale('person', 'a', 1, 'PATCH')
  assert.equal(person.status, 200)
  assert.match(String(person.headers['warning']), /scale-up of MachineDeployment\/default\/a refused/)
})

test('it is told: status, conditions, Events, metrics', async () => {
  const { conditions, backedOffCount } = await statusOf()
  assert.deepEqual(conditions.map(({ type, status }: Json) => `${type} ${status}`).sort(), [
    'NodesKnown True',
    'Ready True',
  ])
  assert.equal(backedOffCount, 1)
  await waitFor('the Events', async () => {
    const { items } = (await embedded.admin.get('/api/v1/namespaces/default/events')).json
    const reasons = new Set(
      items.filter((one: Json) => one.involvedObject.name === 'guard').map((one: Json) => one.reason),
    )
    return reasons.has('ScaleUpBackedOff') && reasons.has('TargetCorrected')
  })
  const { scaleUpGuards } = JSON.parse((await embedded.gateway.admin('/debug/config')).text)
  assert.equal(scaleUpGuards.leader, true)
  assert.equal(scaleUpGuards.enforced[0].backoffs[0].group, `MachineDeployment/${NAMESPACE}/a`)
  await waitFor('the metrics', async () => {
    const { text } = await embedded.gateway.admin('/metrics')
    return (
      /portcullis_scale_up_guard_groups_backed_off\{cluster="mgmt",guard="guard"\} 1/.test(text) &&
      /portcullis_scale_up_guard_actions_total\{cluster="mgmt",guard="guard",action="correction",result="done"\} \d/.test(
        text,
      ) &&
      /portcullis_scale_up_guard_writes_total\{cluster="mgmt",guard="guard",result="refused"\} \d/.test(text)
    )
  })
})

test('a gateway that is killed in the middle goes on: still backed off, and what was left is done', async () => {
  const group = await createGroup('killed', 2)
  await waitFor('the guard to see it', async () => (await groupStatus('killed')) !== undefined)
  // What comes between the backoff and the correction: machines may not be written for a while.
  const role = '/apis/rbac.authorization.k8s.io/v1/clusterroles/portcullis-scale-up-guard-management'
  const { rules } = await direct('GET', role)
  const may = (allowed: boolean): Promise<Json> =>
    direct(
      'PATCH',
      role,
      { rules: allowed ? rules : rules.filter(({ verbs }: Json) => !verbs.includes('patch')) },
      MERGE,
    )
  await may(false)
  await waitFor('the right to be gone', async () => {
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    const resourceAttributes = { verb: 'patch', group: 'cluster.x-k8s.io', resource: 'machines' }
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: 'portcullis', resourceAttributes },
    }
    return (await direct('POST', path, body)).status.allowed === false
  })
  await failMachine(group.machines[0].metadata.name)
  const before = await waitFor('the backoff', async () => {
    const status = await groupStatus('killed')
    return status?.backoffUntil !== undefined && status
  })
  assert.equal(await target('killed'), 2)
  await embedded.restart('SIGKILL', async () => void (await may(true)))
  await waitFor('the gateway to serve the cluster', async () => {
    return (await through('person', 'GET', objects('machinedeployments'))).status === 200
  })
  const answer = await scale('autoscaler', 'killed', 1, 'PATCH')
  assert.equal(answer.status, 403, 'in force from the first request on')
  await waitFor('the correction', async () => (await target('killed')) === 1)
  const status = await groupStatus('killed')
  assert.deepEqual([status.backoffUntil, status.attempt], [before.backoffUntil, 1], 'the same backoff')
})

test('a rollout, a paused group and a minimum are left alone', async () => {
  const rolling = await createGroup('rolling', 2)
  const paused = await createGroup('paused', 2, 'guard', { 'cluster.x-k8s.io/paused': '' })
  const key = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size'
  const minimum = await createGroup('minimum', 2, 'guard', { [key]: '2' })
  const deployment = await direct('GET', objects('machinedeployments', 'rolling'))
  await createSet(deployment, 'rolling-2', 1, 'rolling')
  await waitFor('the guard to see all', async () => (await groupStatus('minimum')) && (await groupStatus('paused')))
  for (const { machines } of [rolling, paused, minimum]) await failMachine(machines[0].metadata.name)
  const neverActed = async (name: string): Promise<unknown> => (await groupStatus(name))?.neverActed
  await waitFor('the reasons', async () => {
    const found = [await neverActed('rolling'), await neverActed('paused'), await neverActed('minimum')]
    return found.join() === 'rolling-out,paused,at-minimum'
  })
  for (const { name, machines } of [rolling, paused, minimum]) {
    assert.equal(await target(name), 2, name)
    assert.deepEqual(await marked(machines.map(({ metadata }) => metadata.name)), [], name)
  }
  assert.equal((await groupStatus('paused')).backoffUntil, undefined)
  await refused('rolling', 'PATCH')
})

test('machines that are nodes, and those of the control plane, have not failed', async () => {
  const { machines } = await createGroup('nodes', 2)
  const [first, second] = machines.map(({ metadata }) => metadata.name)
  await joinMachine(first)
  await direct(
    'PATCH',
    objects('machines', second),
    { metadata: { labels: { 'cluster.x-k8s.io/control-plane': '' } } },
    MERGE,
  )
  // Seen in order: what comes after them was looked at after them.
  await failMachine(first)
  await failMachine(second)
  const later = await createGroup('later', 1)
  await failMachine(later.machines[0].metadata.name)
  await waitFor('the later one', async () => (await groupStatus('later'))?.backoffUntil !== undefined)
  const status = await groupStatus('nodes')
  assert.equal(status.failedCount, undefined)
  assert.equal(status.backoffUntil, undefined)
  assert.equal(await target('nodes'), 2)
})

test('a raise by a client that had read the target before is taken back', async () => {
  const { machines } = await createGroup('undone', 2)
  await failMachine(machines[0].metadata.name)
  await waitFor('the correction', async () => (await target('undone')) === 1)
  // As the autoscaler writes: absolute, without a version; sent before it could be refused.
  await direct('PATCH', `${objects('machinedeployments', 'undone')}/scale`, { spec: { replicas: 2 } }, MERGE)
  await waitFor('the correction of it', async () => (await target('undone')) === 1)
})

test('silence: a Machine without an instance, and a MachinePool without Nodes', async () => {
  await embedded.apply(guard('silent', { failure: { noProviderIDFor: '1s', noNodeFor: '1s' } }))
  const { machines } = await createGroup('mute', 2, 'silent')
  await joinMachine(machines[0].metadata.name)
  const metadata = { name: 'pool-node' }
  await direct('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata, spec: { providerID: 'test://1' } })
  const key = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group'
  const annotations = { [`${key}-min-size`]: '0', [`${key}-max-size`]: '9' }
  const pool = head('MachinePool', 'pool', { labels: { guarded: 'silent' }, annotations })
  const template = { spec: MACHINE_SPEC }
  // Two instances, one of them a Node; two that the cloud has not made.
  const providerIDList = ['test://1', 'test://2']
  await direct('POST', objects('machinepools'), {
    ...pool,
    spec: { clusterName: 'c', replicas: 4, providerIDList, template },
  })

  await waitFor('the target of the Machines', async () => (await target('mute')) === 1)
  assert.equal((await groupStatus('mute', 'silent')).failed[0].reason, 'NoProviderID')
  const poolTarget = async (): Promise<number> => (await direct('GET', objects('machinepools', 'pool'))).spec.replicas
  await waitFor('the target of the pool', async () => (await poolTarget()) === 2)
  const { groups } = await statusOf('silent')
  assert.equal(groups.find(({ name }: Json) => name === 'MachinePool/default/pool').failed[0].reason, 'NoNode')
})

test('what was ordered, by which user, and that it came', async () => {
  const { machines } = await createGroup('ordered', 1)
  await joinMachine(machines[0].metadata.name)
  await waitFor('the guard to see it', async () => (await groupStatus('ordered')) !== undefined)
  const path = `${objects('machinedeployments', 'ordered')}/scale?fieldManager=cluster-autoscaler`
  assert.equal((await through('autoscaler', 'PATCH', path, { spec: { replicas: 3 } }, MERGE)).status, 200)
  const [request] = await waitFor('the order', async () => (await groupStatus('ordered')).requests)
  assert.deepEqual([request.increase, request.by], [2, 'cluster-autoscaler'])
  assert.ok(Date.parse(request.expectedAdd) - Date.parse(request.at) === 600_000)
  const set = await direct('GET', objects('machinesets', 'ordered-1'))
  for (const name of ['ordered-new-1', 'ordered-new-2']) {
    await createMachine(set, name, 'ordered')
    await joinMachine(name)
  }
  await waitFor('it to be done', async () => (await groupStatus('ordered')).requests === undefined)
})

test('a MachineHealthCheck on the same group is told', async () => {
  await createGroup('checked', 1)
  const check = head('MachineHealthCheck', 'mhc')
  await direct('POST', objects('machinehealthchecks'), {
    ...check,
    spec: { clusterName: 'c', selector: { matchLabels: { group: 'checked' } } },
  })
  await waitFor('the status', async () => (await groupStatus('checked'))?.machineHealthCheck === 'mhc')
})

test('in shadow mode nothing is refused and nothing changed, but everything told', async () => {
  await embedded.apply(guard('shy', { shadow: true }))
  const { machines } = await createGroup('shadowed', 2, 'shy')
  await failMachine(machines[0].metadata.name)
  await waitFor('the status', async () => (await groupStatus('shadowed', 'shy'))?.neverActed === 'shadow')
  const answer = await waitFor('the warning', async () => {
    const written = await scale('autoscaler', 'shadowed', 1, 'PATCH')
    if (written.status !== 200) throw new GiveUp(written.text)
    return written.headers['warning'] !== undefined && written
  })
  assert.match(String(answer.headers['warning']), /scale-up-guard in shadow mode would refuse/)
  assert.deepEqual(await marked(machines.map(({ metadata }) => metadata.name)), [])
})

test('a guard that cannot be used, and one whose cluster is not there, keep no other from its work', async () => {
  await embedded.apply(guard('lost', { clusterRef: { management: 'nowhere' } }))
  await waitFor('its condition', async () => {
    const { conditions = [] } = await statusOf('lost')
    return conditions.some(({ type, status }: Json) => type === 'Ready' && status === 'False')
  })
  const { machines } = await createGroup('works', 2)
  await failMachine(machines[0].metadata.name)
  await waitFor('the correction', async () => (await target('works')) === 1)
})

test('two replicas: both refuse, one acts, and the other goes on when that one ends', async () => {
  const kubeconfig = cluster.kubeconfigFor(await coreUser(cluster, false))
  const serve = (replica: string): Promise<TestGateway> => {
    const control = '--control-listen=127.0.0.1:CONTROL'
    const source = ['--source=kubernetes', `--kubeconfig=${kubeconfig}`, control, `--replica-name=${replica}`]
    return startGateway({ clusters: [], source })
  }
  const replicas = new Map([['one', await serve('one')]])
  try {
    replicas.set('two', await serve('two'))
    await direct('POST', '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters', upstreamClusterFor(cluster))
    await direct('POST', GUARDS, guard('shared'))
    const isRefused = (replica: string, name: string): Promise<unknown> =>
      waitFor(`${replica} to refuse ${name}`, async () => {
        const path = `${objects('machinedeployments', name)}/scale`
        const port = replicas.get(replica)?.port
        return (await through('autoscaler', 'PATCH', path, { spec: { replicas: 9 } }, MERGE, port)).status === 403
      })
    const { machines } = await createGroup('shared', 2, 'shared')
    await failMachine(machines[0].metadata.name)
    await waitFor('the correction', async () => (await target('shared')) === 1)
    await Promise.all([...replicas.keys()].map((replica) => isRefused(replica, 'shared')))

    const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/portcullis-scale-up-guard'
    const leader = String((await direct('GET', lease)).spec.holderIdentity).replace(/_.*/, '')
    const [other = ''] = [...replicas.keys()].filter((replica) => replica !== leader)
    const before = (await direct('GET', `${GUARDS}/shared`)).status.groups[0]
    await replicas.get(leader)?.stop()
    replicas.delete(leader)
    const next = await createGroup('next', 2, 'shared')
    await failMachine(next.machines[0].metadata.name)
    await waitFor('the correction by the other one', async () => (await target('next')) === 1)
    await isRefused(other, 'shared')
    const { groups } = (await direct('GET', `${GUARDS}/shared`)).status
    const now = groups.find(({ name }: Json) => name === before.name)
    assert.deepEqual([now.backoffUntil, now.attempt], [before.backoffUntil, 1], 'the same backoff')
  } finally {
    await Promise.all([...replicas.values()].map((gateway) => gateway.stop()))
  }
})
