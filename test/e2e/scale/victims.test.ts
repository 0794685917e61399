// What `portcullis scale why` and the Warning of a write say about a scale-down, a real kube-controller-manager then does: for each way in
// which a ScaleDownPolicy chooses, and without one, no pod that was said to stay goes, and each that was certain to go goes. The controller
// manager comes through the gateway, which therefore sees each number twice where there is a Deployment.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { SILENT } from '../../../src/kit/api/ports.ts'
import { createKubeClient, type KubeClient } from '../../../src/kube/io/client.ts'
import type { VictimPreference } from '../../../src/scaling/api/scale-down-policy.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import type { KubeResponse } from '../../harness/clusters/kube-request.ts'
import { grant } from '../../harness/clusters/protection-rights.ts'
import { ScaleHistory } from '../../harness/clusters/scale-history.ts'
import { assertTrue, scaleWhySays, warningSays } from '../../harness/clusters/scale-predictions.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, startEmbedded } from '../../harness/gateways/embedded.ts'
import { gatewayCA } from '../../harness/pki.ts'
import { waitFor } from '../../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind, as the server gave them
type Json = any

const STRATEGIES: Readonly<Record<string, readonly VictimPreference[]>> = {
  none: [],
  emptiest: [{ by: 'EmptiestNode' }],
  cordoned: [{ by: 'UnschedulableNode' }],
  topology: [{ by: 'TopologyExcess', topologyKey: 'zone' }],
  annotation: [{ by: 'Annotation', annotation: 'sessions' }],
}
const KINDS = ['Deployment', 'ReplicaSet', 'ReplicationController'] as const
/** Scale-downs of each workload: 3 kinds of 5 strategies, 45 scale-downs. */
const STEPS = 3
/** Nodes of each strategy: what one empties or cordons is not another's. */
const NODES = 4
/** "Possible" is always right and of no use. */
const LEAST_CERTAIN = 0.85
const COST = 'controller.kubernetes.io/pod-deletion-cost'
const OURS = 'scale.portcullis.io/deletion-cost'
const POD_PATH = '/api/v1/namespaces/default/pods'
const MERGE = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const CONTROLLERS = ['deployment', 'replicaset', 'replicationcontroller', 'serviceaccount']
const FLAGS = [`--controllers=${CONTROLLERS.map((name) => `${name}-controller`).join()}`]

let cluster: TestCluster
let embedded: EmbeddedGateway
let client: KubeClient
let history: ScaleHistory

before(async () => {
  cluster = await startCluster({ name: 'prod' })
  embedded = await startEmbedded()
  for (const file of ['scale-down-policy.yaml', 'scale-worker.yaml']) await grant(cluster, file)
  await embedded.apply(upstreamClusterFor(cluster, { spec: { scaleProtection: {} } }))
  await waitFor('the cluster behind the gateway', async () => (await through('GET', POD_PATH)).status === 200)
  const user = cluster.componentUser('kube-controller-manager')
  const kubeconfig = await kubeconfigThrough(embedded.gateway, cluster, user, { path: true })
  await cluster.startControllerManager({ kubeconfig, flags: FLAGS })
  await waitFor('the default service account', async () => {
    return (await cluster.request('/api/v1/namespaces/default/serviceaccounts/default')).status === 200
  })
  client = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log: SILENT })
  history = new ScaleHistory(client)
})
after(async () => {
  await history?.stop()
  await client?.close()
  await embedded?.stop()
  await cluster?.stop()
})

async function direct(method: string, path: string, body?: unknown, type = 'application/json'): Promise<Json> {
  const headers = { 'content-type': type }
  const answer = await cluster.request(path, { method, headers, ...(body !== undefined && { body }) })
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
  return answer.json()
}

function through(method: string, path: string, body?: unknown, type = 'application/json'): Promise<KubeResponse> {
  const server = `https://127.0.0.1:${embedded.gateway.port}/clusters/prod`
  const headers = { 'content-type': type }
  return cluster.request(path, {
    server,
    ca: gatewayCA().certPem,
    method,
    headers,
    ...(body !== undefined && { body }),
  })
}

/** Numerical Recipes' generator: a red run can be run again. */
class Chance {
  #state: number
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * limit)
  }

  oneOf<T>(...choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0]
  }
}

interface Workload {
  readonly strategy: string
  readonly kind: (typeof KINDS)[number]
  readonly app: string
  readonly chance: Chance
}

function pathOf({ kind, app }: Pick<Workload, 'kind' | 'app'>): string {
  const base = kind === 'ReplicationController' ? '/api/v1' : '/apis/apps/v1'
  return `${base}/namespaces/default/${kind.toLowerCase()}s/${app}`
}

async function podsOf(app: string): Promise<Json[]> {
  const { items } = await direct('GET', `${POD_PATH}?labelSelector=app%3D${app}`)
  return items.filter(({ metadata }: Json) => metadata.deletionTimestamp === undefined)
}

function left(app: string, count: number): Promise<Json[]> {
  return waitFor(`${app} to have ${count} pods`, async () => {
    const pods = await podsOf(app)
    return pods.length === count && pods
  })
}

async function create({ kind, app }: Workload, replicas: number, more: object = {}): Promise<Json[]> {
  const selector = kind === 'ReplicationController' ? { app } : { matchLabels: { app } }
  const template = { metadata: { labels: { app } }, spec: { containers: [{ name: 'main', image: 'none' }] } }
  const apiVersion = kind === 'ReplicationController' ? 'v1' : 'apps/v1'
  const path = pathOf({ kind, app }).slice(0, -app.length - 1)
  await direct('POST', path, {
    apiVersion,
    kind,
    metadata: { name: app },
    spec: { replicas, selector, template, ...more },
  })
  return await left(app, replicas)
}

/** As a scheduler would, with the annotations of another controller. Some are left without a node. */
async function place({ strategy, app, chance }: Workload, pod: Json): Promise<void> {
  if (chance.below(20) === 0) return
  // A cost that a gateway has left behind is taken back wherever a policy is, at any time.
  const own = JSON.stringify({ id: 'before', workload: `deployments/${app}`, to: 99, at: '2026-01-01T00:00:00Z' })
  const stale = strategy === 'none' ? {} : { [COST]: '-1', [OURS]: own }
  const cost = chance.oneOf<object>({}, {}, {}, {}, {}, { [COST]: '5' }, { [COST]: '-3' }, stale)
  await bind(pod, `${strategy}-${chance.below(NODES)}`, { sessions: String(chance.below(6)), ...cost })
}

async function bind({ metadata: { name } }: Json, node: string, annotations: object): Promise<void> {
  const metadata = { name, annotations }
  const target = { kind: 'Node', name: node }
  await direct('POST', `${POD_PATH}/${name}/binding`, { apiVersion: 'v1', kind: 'Binding', metadata, target })
}

/** As a kubelet would. Often equal; now and then with an age that is about to pass 2^43 ns (2.44 h), where places change. */
async function run({ chance }: Workload, pod: Json): Promise<void> {
  const age = chance.oneOf(600, 600, 600, 5_000, 30_000, 30_000, 86_000, 8_770 + chance.below(40))
  const phase = chance.below(20) === 0 ? 'Pending' : 'Running'
  await setStatus(pod, phase, chance.below(15) > 0, age, chance.oneOf(0, 0, 0, 2))
}

async function setStatus(
  { metadata }: Json,
  phase: string,
  ready: boolean,
  age: number,
  restartCount = 0,
): Promise<void> {
  const lastTransitionTime = new Date(Date.now() - age * 1000).toISOString().replace(/\.\d+Z/, 'Z')
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime }]
  const containerStatuses = [{ name: 'main', image: 'none', imageID: '', ready, restartCount }]
  await direct(
    'PATCH',
    `${POD_PATH}/${metadata.name}/status`,
    { status: { phase, conditions, containerStatuses } },
    MERGE,
  )
}

/**
 * Until the controller knows what the pods are like, which it hears of by another watch than of the workload: one pod changes for a moment, which shows
 * in what the controller counts, and a watch that has seen it has seen all before it.
 */
async function seen(workload: Workload): Promise<void> {
  const path = pathOf(workload)
  const isReady = ({ status }: Json): boolean =>
    status.conditions.some(({ type, status }: Json) => type === 'Ready' && status === 'True')
  const living = await podsOf(workload.app)
  const last = living.at(-1)
  if (last === undefined) return
  const { conditions } = last.status
  const other = [{ type: 'Ready', status: isReady(last) ? 'False' : 'True' }]
  for (const now of [conditions, other, conditions]) {
    await direct('PATCH', `${POD_PATH}/${last.metadata.name}/status`, { status: { conditions: now } }, MERGE)
    await waitFor(`${workload.app} to count its ready pods`, async () => {
      const ready = (await podsOf(workload.app)).filter(isReady).length
      return ((await direct('GET', path)).status.readyReplicas ?? 0) === ready
    })
  }
}

const costs = new Map<string, number>()
const totals = { scaleDowns: 0, victims: 0, certain: 0 }

/** @param living pods afterwards: in a rollout there are more than replicas */
async function scaleDown(workload: Workload, pods: readonly Json[], to: number, living = to): Promise<Json[]> {
  const { kind, app, chance } = workload
  const what = `${kind} ${app}: ${pods.length} -> ${to}`
  const path = pathOf(workload)
  const podKubeconfig = cluster.adminKubeconfig
  const asked = { kubeconfig: embedded.kubeconfig, podKubeconfig, cluster: 'prod', target: `${kind}/${app}` }
  const why = await scaleWhySays({ ...asked, replicas: to })
  const atMs = Date.now()
  const replace = [{ op: 'replace', path: '/spec/replicas', value: to }]
  const answer = await chance.oneOf(
    () => through('PATCH', `${path}/scale`, { spec: { replicas: to } }, MERGE),
    () => through('PATCH', path, { spec: { replicas: to } }, MERGE),
    () => through('PATCH', path, replace, JSON_PATCH),
  )()
  assert.equal(answer.status, 200, `${what}: ${answer.text}`)
  const staying = await left(app, living)
  const stayed = new Set(staying.map(({ metadata }) => metadata.uid))
  const gone = pods.filter(({ metadata }) => !stayed.has(metadata.uid)).map(({ metadata }) => metadata.name)
  assertTrue(what, warningSays(answer, atMs), gone)
  assertTrue(what, why.said, gone)
  await assertCosts(what, answer.json().metadata.uid, pods, to, why.chosen)
  costs.set(workload.strategy, (costs.get(workload.strategy) ?? 0) + why.chosen.length)
  totals.scaleDowns++
  totals.victims += gone.length
  totals.certain += why.said.certain.length
  return staying
}

/** The pods that were chosen, and no others, had their cost before the workload had its new number, and went after that. */
async function assertCosts(
  what: string,
  uid: string,
  pods: readonly Json[],
  to: number,
  chosen: readonly string[],
): Promise<void> {
  const scaled = await waitFor(`the history of ${what}`, () => history.scaled.get(uid)?.get(to))
  for (const { metadata } of pods) {
    if (!chosen.includes(metadata.name)) {
      assert.equal(history.costs.get(metadata.uid)?.get(to), undefined, `${what}: ${metadata.name} was not chosen`)
      continue
    }
    const deleted = await waitFor(`the deletion of ${metadata.name}`, () => history.deleted.get(metadata.uid))
    const cost = history.costs.get(metadata.uid)?.get(to)
    assert.ok(
      cost !== undefined && cost < scaled && scaled < deleted,
      `${what}: ${metadata.name} at ${cost}, ${scaled}, ${deleted}`,
    )
  }
}

async function createNodes(strategy: string): Promise<void> {
  for (let at = 0; at < NODES; at++) {
    const metadata = { name: `${strategy}-${at}`, labels: at === 3 ? {} : { zone: at === 0 ? 'a' : 'b' } }
    await direct('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata })
    // Until a kubelet says that they are ready, nodes are tainted.
    const spec = { taints: null, unschedulable: strategy === 'cordoned' && at === 0 }
    await direct('PATCH', `/api/v1/nodes/${metadata.name}`, { spec }, MERGE)
  }
}

async function applyPolicy(strategy: string, prefer: readonly VictimPreference[]): Promise<void> {
  if (prefer.length === 0) return
  const selector = {
    matchExpressions: [{ key: 'app', operator: 'In', values: KINDS.map((kind) => appOf(strategy, kind)) }],
  }
  const metadata = { name: strategy, namespace: 'default' }
  // On a busy machine it may take longer than a client would wait for a scale-down.
  const spec = { selector, prefer, maxDelayMillis: 10_000, settleMillis: 500 }
  await embedded.apply({ apiVersion: 'scale.portcullis.io/v1alpha1', kind: 'ScaleDownPolicy', metadata, spec })
  await waitFor(`${strategy} to be in force`, async () => {
    const args = ['get', 'scaledownpolicies', strategy, '-n', 'default', '-o', 'json']
    const { conditions = [] } = JSON.parse(await embedded.succeed(args)).status ?? {}
    return conditions.some(({ type, status }: Json) => type === 'Ready' && status === 'True')
  })
}

function appOf(strategy: string, kind: string): string {
  return `${strategy}-${kind.toLowerCase()}`
}

describe('no pod that was said to stay goes, and every pod that was certain to go goes', {
  concurrency: Object.keys(STRATEGIES).length,
}, () => {
  for (const [index, [strategy, prefer]] of Object.entries(STRATEGIES).entries()) {
    test(strategy, async () => {
      const chance = new Chance(Number(process.env['PROPERTY_SEED'] ?? 20_261_124) + index)
      await createNodes(strategy)
      await applyPolicy(strategy, prefer)
      for (const kind of KINDS) {
        const workload: Workload = { strategy, kind, app: appOf(strategy, kind), chance }
        let pods = await create(workload, 10 + chance.below(5))
        for (const pod of pods) await place(workload, pod)
        for (const pod of pods) await run(workload, pod)
        for (let step = 1; step <= STEPS; step++) {
          await seen(workload)
          const to = Math.max(0, pods.length - 1 - chance.below(step === STEPS ? pods.length : 4))
          pods = await scaleDown(workload, await podsOf(workload.app), to)
          // What decides is another thing for the next one.
          for (const pod of pods) if (chance.below(3) === 0) await run(workload, pod)
        }
      }
      assert.equal((costs.get(strategy) ?? 0) > 0, prefer.length > 0, 'some were chosen')
    })
  }
})

test('in a rollout no policy chooses, and it is said which pods go by scaling', async () => {
  const strategy = 'rollout'
  const workload: Workload = { strategy, kind: 'Deployment', app: appOf(strategy, 'Deployment'), chance: new Chance(1) }
  await applyPolicy(strategy, [{ by: 'Annotation', annotation: 'sessions' }])
  const path = pathOf(workload)
  const rollingUpdate = { maxSurge: 3, maxUnavailable: 2 }
  const old = await create(workload, 10, { strategy: { type: 'RollingUpdate', rollingUpdate } })
  for (const [at, pod] of old.entries()) {
    // The policy would choose others than the controller, which takes those that became ready last.
    await bind(pod, `rollout-${at}`, { sessions: String(20 - at) })
    await setStatus(pod, 'Running', true, 600 * 2 ** at)
  }
  await waitFor(
    'the Deployment to be available',
    async () => (await direct('GET', path)).status.availableReplicas === 10,
  )
  const containers = [{ name: 'main', image: 'other' }]
  await direct('PATCH', path, { spec: { template: { spec: { containers } } } }, MERGE)
  // 8 old pods stay available, and 5 new ones, which stay unready, fill it up to 13. There are 13 once before, too: 10 and 3.
  const pods = await waitFor('8 old pods and 5 new ones', async () => {
    const all = await podsOf(workload.app)
    return all.length === 13 && all.filter(({ spec }) => spec.containers[0].image === 'other').length === 5 && all
  })
  // Without more of the rollout: only what scaling does.
  await direct('PATCH', path, { spec: { paused: true } }, MERGE)
  await scaleDown(workload, pods, 4, 7)
  for (const { metadata } of old) assert.equal(history.costs.get(metadata.uid), undefined, metadata.name)
})

test('most victims were certain before', () => {
  assert.equal(totals.scaleDowns, Object.keys(STRATEGIES).length * KINDS.length * STEPS + 1)
  assert.ok(totals.certain >= LEAST_CERTAIN * totals.victims, JSON.stringify(totals))
  console.log(JSON.stringify({ ...totals, costs: Object.fromEntries(costs) }))
})
