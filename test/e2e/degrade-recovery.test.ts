// An incident on real controllers: the switch is thrown for longer than pods tolerate a lost node, and lifted. By steps no pod is lost,
// even when the leader is killed in the middle; at once, pods are: what the steps are for.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { DEGRADE_MODES } from '../../src/gateway/api/upstream-cluster/degrade-modes.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { PODS } from '../../src/kube/api/kinds/foreign-kinds.ts'
import type { Following } from '../../src/kube/api/object-client.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/io/client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { type Kubelets, startKubelets } from '../harness/clusters/kubelets.ts'
import { coreUser, grant } from '../harness/clusters/protection-rights.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type CliResult, runCli } from '../harness/gateways/embedded.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const NODES = 20
const PODS_EACH = 10
/** Without a heartbeat for this long a node is lost. Defaults of Kubernetes: 50, and 300 until its pods are evicted. */
const GRACE_SECONDS = 12
const TOLERATION_SECONDS = 1
const HEARTBEAT_MS = 5_000
const UC = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
const LEADER = '/apis/coordination.k8s.io/v1/namespaces/default/leases/portcullis-leader'
const NODE_LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
/** Its kubelet is beside the apiserver: not every node is lost, so that the controller manager believes in the loss of the others. */
const OWN_NODE = 'control-plane-0'
const SLOW = { timeoutMs: 120_000 }
const VERY_SLOW = { timeoutMs: 420_000 }

let cluster: TestCluster
/** The first leads, the controllers come through the second. */
const gateways: TestGateway[] = []
let client: KubeClient
/** What the gateway may do in the cluster of its objects, as deploy/rbac has it. */
let control = ''
let pods: PodWatch
const kubelets: Kubelets[] = []

before(async () => {
  const tolerate = ['not-ready', 'unreachable'].map(
    (taint) => `--default-${taint}-toleration-seconds=${TOLERATION_SECONDS}`,
  )
  cluster = await startCluster({ name: 'prod', extraApiserverFlags: tolerate })
  client = createKubeClient({ kubeconfigFile: cluster.adminKubeconfig, log: SILENT })
  await grant(cluster, 'degrade-nodes.yaml')
  control = cluster.kubeconfigFor(await coreUser(cluster, false))
  await startReplica('r1')
  const { status, text } = await cluster.request(UC, { method: 'POST', body: upstreamClusterFor(cluster) })
  assert.equal(status, 201, text)
  await leading('r1')
  const second = await startReplica('r2')
  await waitFor('the namespace of the leases', async () => (await cluster.request(NODE_LEASES)).status === 200)
  await cluster.startControllerManager({
    kubeconfig: await kubeconfigThrough(second, cluster, cluster.componentUser('kube-controller-manager'), {
      path: true,
    }),
    flags: [
      `--node-monitor-grace-period=${GRACE_SECONDS}s`,
      // As in a cluster of many zones, of which this one is lost: otherwise a small cluster is spared.
      '--large-cluster-size-threshold=1',
      '--node-eviction-rate=100',
      '--secondary-node-eviction-rate=100',
    ],
  })
  const nodes = Array.from({ length: NODES }, (_, i) => `node-${i}`)
  const user = { cert: cluster.clientCertificate('kubelets', ['system:masters', 'system:nodes']) }
  const through = { server: `https://127.0.0.1:${second.port}/clusters/prod`, ca: gatewayCA().certPem, user }
  kubelets.push(
    await startKubelets({ cluster, nodes: [OWN_NODE] }),
    await startKubelets({ cluster, nodes, through, everyMs: HEARTBEAT_MS }),
  )
  await waitFor('nodes without taints', async () => (await goodNodes()) === NODES + 1)
  await Promise.all(nodes.map(createReplicaSet))
  pods = new PodWatch(client)
  await waitFor(`${NODES * PODS_EACH} pods`, () => pods.alive === NODES * PODS_EACH, SLOW)
})

after(async () => {
  await Promise.all(kubelets.map((one) => one.stop()))
  await pods?.stop()
  await client?.close()
  await cluster?.stop()
  await Promise.all(gateways.map((gateway) => gateway.stop()))
})

async function startReplica(name: string): Promise<TestGateway> {
  const source = ['--source=kubernetes', `--kubeconfig=${control}`, '--control-listen=127.0.0.1:CONTROL']
  const gateway = await startGateway({ clusters: [], source: [...source, `--replica-name=${name}`] })
  gateways.push(gateway)
  return gateway
}

async function leading(replica: string): Promise<void> {
  await waitFor(`${replica} to lead`, async () => {
    const { spec } = (await cluster.request(LEADER)).json()
    return spec?.holderIdentity?.startsWith(`${replica}_`)
  })
}

async function createReplicaSet(node: string): Promise<void> {
  const labels = { app: node }
  const template = { metadata: { labels }, spec: { nodeName: node, containers: [{ name: 'c', image: 'c:1' }] } }
  const spec = { replicas: PODS_EACH, selector: { matchLabels: labels }, template }
  const body = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: node }, spec }
  const { status, text } = await cluster.request('/apis/apps/v1/namespaces/default/replicasets', {
    method: 'POST',
    body,
  })
  assert.equal(status, 201, text)
}

/** All pods, directly at the apiserver. */
class PodWatch {
  /** UIDs of pods that were deleted. */
  readonly deleted = new Set<string>()
  readonly #known = new Set<string>()
  readonly #following: Following

  constructor(from: KubeClient) {
    this.#following = from.follow(PODS, 'default', {
      onReplace: (all) => {
        const present = new Set(all.map(uidOf))
        for (const uid of this.#known) if (!present.has(uid)) this.deleted.add(uid)
        for (const pod of all) this.#learn(pod)
      },
      onChange: (type, pod) => {
        if (type === 'DELETED') this.deleted.add(uidOf(pod))
        else this.#learn(pod)
      },
      onState: () => undefined,
    })
  }

  /** How many there are that were not deleted. */
  get alive(): number {
    return this.#known.size - this.deleted.size
  }

  stop(): Promise<void> {
    return this.#following.stop()
  }

  #learn(pod: JsonObject): void {
    this.#known.add(uidOf(pod))
    if ((pod['metadata'] as { deletionTimestamp?: string }).deletionTimestamp !== undefined)
      this.deleted.add(uidOf(pod))
  }
}

function uidOf(object: JsonObject): string {
  return (object['metadata'] as { uid: string }).uid
}

// biome-ignore lint/suspicious/noExplicitAny: objects as the server gave them
type Json = any

async function prod(): Promise<Json> {
  return (await cluster.request(`${UC}/prod`)).json()
}

async function degrade(...args: string[]): Promise<CliResult> {
  const result = await runCli(['degrade', 'prod', `--kubeconfig=${cluster.adminKubeconfig}`, ...args])
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`)
  return result
}

/** Until no node behind the gateway has been heard of for longer than its pods tolerate that. */
async function freeze(silentMs = 1_200 * (GRACE_SECONDS + TOLERATION_SECONDS)): Promise<void> {
  await degrade('--mode', 'Freeze', '--reason', 'etcd is being restored', '--force')
  await waitFor(
    'nodes that are silent',
    async () => {
      const { items } = (await cluster.request(NODE_LEASES)).json()
      const renewed = items
        .filter(({ metadata }: Json) => metadata.name !== OWN_NODE)
        .map(({ spec }: Json) => Date.parse(spec.renewTime))
      return renewed.length === NODES && Date.now() - Math.max(...renewed) > silentMs
    },
    VERY_SLOW,
  )
}

/** Nodes that are Ready, and that nothing keeps pods from. */
async function goodNodes(): Promise<number> {
  const { items } = (await cluster.request('/api/v1/nodes')).json()
  return items.filter(({ spec, status }: Json) => {
    const ready = status.conditions?.find(({ type }: Json) => type === 'Ready')
    return ready?.status === 'True' && (spec.taints ?? []).length === 0
  }).length
}

/** Modes of the object in the order in which it has had them, until it is Off. */
async function modesUntilOff(onMode: (mode: string) => Promise<void> = async () => undefined): Promise<string[]> {
  const modes: string[] = []
  await waitFor(
    'Off',
    async () => {
      const { spec } = await prod()
      const { mode = 'Off', recovery } = spec.degrade
      if (modes.at(-1) !== mode) {
        modes.push(mode)
        await onMode(mode)
      }
      return mode === 'Off' && recovery === undefined
    },
    VERY_SLOW,
  )
  return modes
}

describe('an incident', () => {
  test('lifted by steps: no pod is deleted, though the leader is killed in the middle', async () => {
    await freeze()
    const begun = await degrade('--recover', '--hold', '2s', '--ramp', '3s')
    assert.match(begun.stdout, /^prod: recovery from Freeze: a mode at a time, each when its checks have held for 2s/)
    const watching = runCli(['degrade', 'prod', `--kubeconfig=${cluster.adminKubeconfig}`, '--status', '--watch'])
    const modes = await modesUntilOff(async (mode) => {
      if (mode !== 'ReadOnly') return
      // Not r2: the controllers come through it.
      await leading('r1')
      gateways[0]?.signal('SIGKILL')
    })
    // The ladder's own order: none is skipped.
    assert.deepEqual(modes, DEGRADE_MODES.toReversed())
    await leading('r2')
    assert.equal(await goodNodes(), NODES + 1)
    assert.equal(pods.deleted.size, 0)
    assert.equal(pods.alive, NODES * PODS_EACH)
    const { spec, status } = await prod()
    assert.deepEqual(spec.degrade, { mode: 'Off' })
    assert.equal(status.degrade?.recovery, undefined)
    const watched = await watching
    assert.equal(watched.code, 0, watched.stderr)
    assert.match(watched.stdout, /recovery: HeartbeatsOnly since \S+, step 2 of 6, started from Freeze\n/)
    assert.match(watched.stdout, /Nodes +no +\d+ of 21 nodes are Ready/)
    assert.match(watched.stdout, /recovery complete, the degrade mode is Off\n$/)
  })

  test('lifted at once: the controller manager finds nodes that are silent, and evicts their pods', async () => {
    await freeze()
    assert.equal(pods.deleted.size, 0)
    await degrade('--mode', 'Off')
    await waitFor('pods to be lost', () => pods.deleted.size > 0)
  })

  test('nodes that are lost again during a recovery send it back, and still no pod is deleted (long)', async () => {
    const lost = pods.deleted.size
    await freeze(30_000)
    await degrade('--recover', '--hold', '20s', '--ramp', '20s')
    let again = false
    const modes = await modesUntilOff(async (mode) => {
      const [, behind] = kubelets
      if (mode === 'NoDisruption' && !again) {
        again = true
        behind?.silence(true)
      } else if (again) behind?.silence(false)
    })
    const back = modes.indexOf('NoDisruption') + 1
    assert.deepEqual(modes.slice(0, back), ['Freeze', 'HeartbeatsOnly', 'ReadOnly', 'NoDisruption'])
    assert.equal(modes[back], 'ReadOnly', modes.join())
    const ladder: readonly string[] = DEGRADE_MODES
    const rungs = modes.map((mode) => ladder.indexOf(mode))
    for (const [i, rung] of rungs.entries()) {
      if (i > 0) assert.equal(Math.abs(rung - (rungs[i - 1] ?? 0)), 1, modes.join())
    }
    // kube-controller-manager does not try again to take a taint away that it could not: the next status of the kubelet makes it look.
    await waitFor('nodes without taints', async () => (await goodNodes()) === NODES + 1, SLOW)
    assert.equal(pods.deleted.size, lost)
  })
})
