// The aggregator of a cell that is a real kube-apiserver, as an UpstreamCluster; the PodProtectors are in the embedded store.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, type TestContext, test } from 'node:test'
import { openSqliteStore } from '../../../src/apiserver/io/store/store.ts'
import { createInProcessClient } from '../../../src/apiserver/registry/in-process-client.ts'
import { Registry } from '../../../src/apiserver/registry/registry.ts'
import { compileCluster } from '../../../src/gateway/core/cluster/compile-cluster.ts'
import type { CompiledAggregation } from '../../../src/gateway/core/cluster/compiled-cluster.ts'
import { createUpstreamKubeClient } from '../../../src/gateway/io/upstream/kube-client.ts'
import { ClusterTable } from '../../../src/gateway/state/clusters.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../../src/kit/api/ports.ts'
import { systemClock } from '../../../src/kit/io/world/clock.ts'
import { PODS } from '../../../src/kube/api/kinds/foreign-kinds.ts'
import { NAMESPACES } from '../../../src/kube/api/kinds/namespace-kind.ts'
import { leadAlone } from '../../../src/kube/controllers/kernel/leadership.ts'
import { createKubeClient, type KubeClient } from '../../../src/kube/io/client.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import { DEFAULT_PROTECTION_SETTINGS } from '../../../src/process/api/protection-settings.ts'
import { SCHEME } from '../../../src/program/api/scheme.ts'
import type { AdmissionBucket, PodProtector } from '../../../src/protection/api/pod-protector.ts'
import { POD_PROTECTORS } from '../../../src/protection/api/pod-protector-kind.ts'
import {
  type PodAggregator,
  startPodAggregator,
} from '../../../src/protection/controllers/aggregator/pod-aggregator.ts'
import { formatMicros } from '../../../src/protection/core/history/micro-time.ts'
import { ProtectorTable } from '../../../src/protection/state/protectors.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { agreeingClocks } from '../../harness/objects/cell-clocks.ts'
import { NO_AGGREGATOR_EVENTS } from '../../harness/objects/ignored-events.ts'
import { waitFor } from '../../harness/wait.ts'

const lines: string[] = []
const note = (message: string, fields?: Record<string, unknown>): void => {
  lines.push(`${message} ${JSON.stringify(fields ?? {})}`)
}
const log: Logger = { debug: note, info: note, warn: note, error: note }
const NAMESPACE = 'guarded'
/** As the certificate of the gateway says. */
const GATEWAY_USER = 'portcullis'

let cluster: TestCluster
/** As the gateway, with no more rights than an aggregator needs. */
let worker: KubeClient
let admin: KubeClient
const store = openSqliteStore({ file: ':memory:', key: undefined })
const registry = new Registry({
  store,
  kinds: SCHEME,
  pem: nodePemChecks,
  now: Date.now,
  uuid: randomUUID,
  random: Math.random,
})
const core = createInProcessClient(registry)
const protectors = new ProtectorTable()
const following = core.follow(POD_PROTECTORS, '', {
  onReplace: (objects) => protectors.replace(objects),
  onChange: (type, object) => {
    const { namespace = '', name } = (object as unknown as PodProtector).metadata
    if (type === 'DELETED') protectors.remove(namespace, name)
    else protectors.put(object)
  },
  onState: () => undefined,
})

before(async () => {
  cluster = await startCluster({ name: 'aggregated' })
  const clusters = new ClusterTable()
  const object = upstreamClusterFor(cluster)
  clusters.change([compileCluster({ object, revision: '1' })], [], systemClock.monotonic())
  const live = clusters.get(object.metadata.name)
  assert.ok(live !== undefined)
  const { healthCheck } = live.compiled
  for (const endpoint of live.endpoints.all) {
    for (let i = 0; i < healthCheck.healthyThreshold; i++) {
      live.endpoints.onProbe(endpoint, true, '', healthCheck, systemClock.monotonic())
    }
  }
  worker = createUpstreamKubeClient({ cluster: () => live, guard: undefined, log })
  admin = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log })
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }
  for (const client of [admin, core]) await client.create(NAMESPACES, namespace)
  // It is not made where no kube-controller-manager runs, and no pod is admitted without.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: NAMESPACE } }
  await cluster.apply(JSON.stringify(account))
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: rights() }))
})

function rights(): object[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const apiGroup = 'rbac.authorization.k8s.io'
  const subjects = [{ apiGroup, kind: 'User', name: GATEWAY_USER }]
  const read = { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] }
  const write = { apiGroups: [''], resources: ['pods'], verbs: ['create', 'patch'] }
  const name = 'pod-aggregator'
  const metadata = { name, namespace: NAMESPACE }
  return [
    { apiVersion, kind: 'ClusterRole', metadata: { name }, rules: [read] },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      subjects,
      roleRef: { apiGroup, kind: 'ClusterRole', name },
    },
    { apiVersion, kind: 'Role', metadata, rules: [write] },
    { apiVersion, kind: 'RoleBinding', metadata, subjects, roleRef: { apiGroup, kind: 'Role', name } },
  ]
}

after(async () => {
  await following.stop()
  await worker?.close()
  await admin?.close()
  await cluster?.stop()
  store.close()
})

function aggregate(t: TestContext, more: Partial<CompiledAggregation> = {}): PodAggregator {
  const aggregation: CompiledAggregation = {
    enabled: true,
    syncTime: 'ResourceVersion',
    syncTimeAnnotation: '',
    podSelector: undefined,
    updateTrigger: undefined,
    ...more,
  }
  const aggregator = startPodAggregator({
    cell: 'worker-1',
    clocks: agreeingClocks(systemClock, 'worker-1'),
    core,
    members: () => [{ name: 'worker-1', client: worker, aggregation }],
    protectors,
    leadership: leadAlone(log),
    settings: { ...DEFAULT_PROTECTION_SETTINGS, aggregationRateMs: 50 },
    clock: systemClock,
    random: Math.random,
    log,
    events: NO_AGGREGATOR_EVENTS,
  })
  t.after(() => aggregator.stop())
  return aggregator
}

async function createPod(name: string, app: string): Promise<void> {
  const metadata = { name, namespace: NAMESPACE, labels: { app } }
  const spec = { schedulerName: 'nobody', terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: ':' }] }
  await admin.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec })
}

/** As a kubelet says it. */
async function makeReady(name: string): Promise<void> {
  const at = new Date().toISOString()
  const conditions = ['PodScheduled', 'Ready'].map((type) => ({ type, status: 'True', lastTransitionTime: at }))
  const status = { phase: 'Running', conditions }
  await admin.patch(
    PODS,
    { namespace: NAMESPACE, name },
    'application/merge-patch+json',
    { status },
    {
      fieldManager: 'test',
      subresource: 'status',
    },
  )
}

async function protect(name: string): Promise<void> {
  await core.create(POD_PROTECTORS, {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: { name, namespace: NAMESPACE },
    spec: { minAvailable: 1, minReadySeconds: 0, selector: { matchLabels: { app: name } } },
  })
}

async function read(name: string): Promise<PodProtector> {
  return (await core.get(POD_PROTECTORS, { namespace: NAMESPACE, name })) as unknown as PodProtector
}

async function summed(name: string, ...expected: number[]): Promise<void> {
  await waitFor(`${name} to be ${expected.join(' ')}`, async () => {
    const { summary } = (await read(name)).status ?? {}
    const sums = [summary?.totalReplicas, summary?.aggregatedAvailableReplicas, summary?.estimatedAvailableReplicas]
    if (expected.join() !== sums.join()) throw new Error(`it is ${sums.join(' ')}`)
    return true
  })
}

/** Deletions that were let through, in one compare-and-swap. */
async function admit(name: string, ...buckets: AdmissionBucket[]): Promise<void> {
  await waitFor('the admission', async () => {
    const object = await read(name)
    const cells = (object.status?.cells ?? []).map((cell) => ({ ...cell, admissionHistory: { buckets } }))
    await core.update(
      POD_PROTECTORS,
      { ...object, status: { ...object.status, cells } } as unknown as JsonObject,
      'status',
    )
    return true
  })
}

async function buckets(name: string): Promise<number> {
  const { cells = [] } = (await read(name)).status ?? {}
  return cells.reduce((sum, cell) => sum + (cell.admissionHistory?.buckets?.length ?? 0), 0)
}

test('pods of the cell are counted as they come, become ready, and go; a deletion that was seen leaves the history', async (t) => {
  const aggregator = aggregate(t)
  await protect('counted')
  for (let i = 0; i < 4; i++) await createPod(`counted-${i}`, 'counted')
  await summed('counted', 4, 0, 0)
  for (let i = 0; i < 3; i++) await makeReady(`counted-${i}`)
  await summed('counted', 4, 3, 3)
  const at = { namespace: NAMESPACE, name: 'counted-0' }
  const { uid, resourceVersion } = (await admin.get(PODS, at))['metadata'] as { uid: string; resourceVersion: string }
  await admit('counted', { startTime: formatMicros(Date.now() * 1000), podUID: uid, resourceVersion })
  await summed('counted', 4, 3, 2)
  await admin.delete(PODS, at)
  await summed('counted', 3, 2, 2)
  assert.equal(await buckets('counted'), 0)
  const { resourceVersion: seen, current, message, pods } = aggregator.describe()
  assert.deepEqual([/^\d+$/.test(seen), current, message, pods], [true, true, '', 3])
})

test('the trigger pod is made, heals, and lets unknown deletions vanish', async (t) => {
  const updateTrigger = { namespace: NAMESPACE, name: 'trigger', intervalMs: 100 }
  aggregate(t, { updateTrigger })
  await protect('triggered')
  await createPod('triggered-0', 'triggered')
  await makeReady('triggered-0')
  await summed('triggered', 1, 1, 1)
  const [now, later] = [formatMicros(Date.now() * 1000), formatMicros(Date.now() * 1000 + 1)]
  await admit('triggered', { startTime: now, podUID: 'unknown-1' }, { startTime: later, podUID: 'unknown-2' })
  await waitFor('the history to be empty', async () => (await buckets('triggered')) === 0)
  const at = { namespace: NAMESPACE, name: 'trigger' }
  const uidNow = async (): Promise<unknown> => ((await admin.get(PODS, at))['metadata'] as { uid: string }).uid
  const uid = await uidNow()
  await admin.delete(PODS, at)
  await waitFor('another pod', async () => (await uidNow()) !== uid)
  const gone = { metadata: { annotations: { 'podseidon.kubewharf.io/update-trigger-time': null } } }
  await admin.patch(PODS, at, 'application/merge-patch+json', gone, { fieldManager: 'test' })
  await waitFor('the annotation', async () => JSON.stringify(await admin.get(PODS, at)).includes('update-trigger-time'))
  assert.ok(lines.every((line) => !line.includes('update trigger')))
})

test('an idle cell sends bookmarks, by which time passes all the same (long)', async (t) => {
  const aggregator = aggregate(t)
  await protect('idle')
  await summed('idle', 0, 0, 0)
  const { resourceVersion } = aggregator.describe()
  // The cell is newer than what its pods have told.
  const change = { metadata: { annotations: { touched: 'yes' } } }
  const at = { namespace: '', name: NAMESPACE }
  await admin.patch(NAMESPACES, at, 'application/merge-patch+json', change, { fieldManager: 'test' })
  await admit('idle', { startTime: formatMicros(Date.now() * 1000), podUID: 'unknown' })
  await waitFor('it waits for the stream', () => aggregator.describe().waiting === 1)
  // They come every minute.
  await waitFor('the history to be empty', async () => (await buckets('idle')) === 0, { timeoutMs: 150_000 })
  assert.ok(BigInt(aggregator.describe().resourceVersion) > BigInt(resourceVersion))
  assert.ok(aggregator.describe().streamTime !== undefined)
})
