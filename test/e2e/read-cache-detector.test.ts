// kube-controller-manager, kube-scheduler and client-go's reflectors with their inconsistency detector through a gateway that caches every resource of the
// cluster, in JSON and in Protobuf: each lists once more, exactly at the version of the state that a watch gave it, and panics if that is another
// state.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { EtcdJournal } from '../harness/clusters/etcd-journal.ts'
import { cacheableResources, cacheResults, cacheStates, grantCacheUser } from '../harness/clusters/read-cache.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { changesSeen, notOnce } from '../harness/informers/each-change.ts'
import { type SeenByInformer, startInformers } from '../harness/informers/informers.ts'
import { PATIENT } from '../harness/patience.ts'
import type { RunningProcess } from '../harness/process.ts'
import { waitFor } from '../harness/wait.ts'

const DETECTOR = { KUBE_WATCHLIST_INCONSISTENCY_DETECTOR: 'true' }
const WATCHED = [
  'v1/pods',
  'v1/nodes',
  'v1/configmaps',
  'v1/serviceaccounts',
  'apps/v1/deployments',
  'apps/v1/replicasets',
]

let cluster: TestCluster
let gateway: TestGateway
let folder: string
const components: RunningProcess[] = []

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-detector-'))
  cluster = await startCluster({ kwok: true, nodes: 3 })
  const resources = await cacheableResources(cluster)
  await grantCacheUser(cluster, resources)
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache: resources } })] })
  await waitFor('the cache', async () => (await cacheStates(gateway)).every(({ resourceVersion }) => resourceVersion))
  const through = (name: 'kube-controller-manager' | 'kube-scheduler'): Promise<string> =>
    kubeconfigThrough(gateway, cluster, cluster.componentUser(name), { path: true })
  // One in Protobuf, as all do by default, and one in JSON.
  components.push(
    await cluster.startControllerManager({ kubeconfig: await through('kube-controller-manager'), env: DETECTOR }),
    await cluster.startScheduler({
      kubeconfig: await through('kube-scheduler'),
      flags: ['--kube-api-content-type=application/json'],
      env: DETECTOR,
    }),
  )
}, PATIENT)
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'no state that the cache gives is another one than the cluster has, while deployments come, grow and go',
  PATIENT,
  async (t) => {
    const journal = await EtcdJournal.start(cluster.etcd)
    t.after(() => journal.stop())
    const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin, { path: true })
    const informers = await startInformers({ kubeconfig, resources: WATCHED, count: 3 })
    t.after(() => informers.kill())
    await informers.command('start')
    const others = await startInformers({ kubeconfig, resources: WATCHED, encoding: 'protobuf' })
    t.after(() => others.kill())
    await others.command('start')
    const pods = async (count: number): Promise<void> => {
      await waitFor(`${count} pods that are ready`, async () => {
        const { items } = (await cluster.request('/api/v1/namespaces/default/pods')).json()
        return (
          items.length === count && items.every((pod: { status: { phase: string } }) => pod.status.phase === 'Running')
        )
      })
    }
    for (let round = 0; round < 3; round++) {
      await cluster.kubectl(['create', 'deployment', `web-${round}`, '--image=c', '--replicas=5'])
      await pods(5)
      // Others begin in the midst of the changes.
      const late = await startInformers({
        kubeconfig,
        resources: WATCHED,
        count: 5,
        encoding: round % 2 === 0 ? 'protobuf' : 'json',
      })
      t.after(() => late.kill())
      await late.command('start')
      await cluster.kubectl(['scale', 'deployment', `web-${round}`, '--replicas=20'])
      await waitFor('all that came late to be synced', async () => {
        const { informers: all, synced } = await late.command('stats')
        return synced === all
      })
      await pods(20)
      await cluster.kubectl(['delete', 'deployment', `web-${round}`])
      await pods(0)
      assert.deepEqual((await late.command('stats')).problems, [])
      await late.kill()
    }
    await journal.upToNow()
    const newest = Math.max(...WATCHED.map((resource) => journal.of(resource).at(-1)?.revision ?? 0))
    const report = async (): Promise<readonly SeenByInformer[]> => [
      ...(await informers.report(join(folder, 'seen.json'))),
      ...(await others.report(join(folder, 'others.json'))),
    ]
    await waitFor('the informers to have all changes', async () => {
      const all = await report()
      return all.every(({ resource, stretches }) => {
        return Number(stretches.at(-1)?.to ?? 0) >= (journal.of(resource).at(-1)?.revision ?? 0)
      })
    })
    const seen = await report()
    assert.deepEqual(notOnce(seen, journal), [])
    for (const component of components) {
      assert.ok(component.running, `${component.name} ended: ${component.log().slice(-3000)}`)
      const log = component.log()
      assert.doesNotMatch(log, /data inconsistency detected|^panic:/m)
      assert.match(log, /data consistency check for .* is enabled/)
    }
    const results = await cacheResults(gateway)
    const kept = JSON.parse((await gateway.admin('/debug/config')).text).readCache
    assert.ok(kept.some((one: { encoding: string; objects: number }) => one.encoding === 'protobuf' && one.objects > 0))
    // Whatever these clients ask for is known here.
    assert.equal(results['parameters'] ?? 0, 0)
    const exact = gateway.accessLog().filter(({ target }) => String(target).includes('resourceVersionMatch=Exact'))
    assert.ok(exact.some(({ code }) => code === 200))
    t.diagnostic(
      `${changesSeen(seen)} changes, the last at ${newest}; ${exact.length} exact lists; ${JSON.stringify(results)}`,
    )
  },
)
