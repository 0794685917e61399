// The read cache when history is lost: etcd is compacted, the gateway starts again, etcd goes back to a backup. What clients get is what the cluster
// would tell them, each change once.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { WatchLines } from '../harness/clients/watch-lines.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { EtcdJournal } from '../harness/clusters/etcd-journal.ts'
import { cacheResults, cacheStates, grantCacheUser, through, watchThrough } from '../harness/clusters/read-cache.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { changesSeen, notOnce } from '../harness/informers/each-change.ts'
import { startInformers } from '../harness/informers/informers.ts'
import { PATIENT } from '../harness/patience.ts'
import { freePorts } from '../harness/ports.ts'
import { waitFor } from '../harness/wait.ts'

const CONFIGMAPS = '/api/v1/configmaps'
const IN_DEFAULT = '/api/v1/namespaces/default/configmaps'
const CACHED = [{ version: 'v1', resource: 'configmaps' }]
const MERGE = { 'content-type': 'application/merge-patch+json' }

let cluster: TestCluster
let gateway: TestGateway
let port: number
let folder: string

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-history-'))
  cluster = await startCluster()
  await grantCacheUser(cluster, CACHED)
  for (const name of ['a', 'b']) await create(name)
  const [free = 0] = await freePorts(1)
  port = free
  gateway = await start()
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Always on one port, as a restarted gateway is. */
async function start(): Promise<TestGateway> {
  const clusters = [upstreamClusterFor(cluster, { spec: { cache: CACHED } })]
  const started = await startGateway({ clusters, own: `127.0.0.1:${port}` })
  await waitFor('the cache', async () => (await cacheStates(started)).every(({ resourceVersion }) => resourceVersion))
  return { ...started, port }
}

async function create(name: string): Promise<string> {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } }
  const answer = await cluster.request(IN_DEFAULT, { method: 'POST', body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json().metadata.resourceVersion
}

async function write(name: string, value: string): Promise<string> {
  const answer = await cluster.request(`${IN_DEFAULT}/${name}`, {
    method: 'PATCH',
    headers: MERGE,
    body: { data: { value } },
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.json().metadata.resourceVersion
}

async function remove(name: string): Promise<void> {
  assert.equal((await cluster.request(`${IN_DEFAULT}/${name}`, { method: 'DELETE' })).status, 200)
}

/** Changes of all kinds. @returns how many there are */
async function change(round: string): Promise<number> {
  for (let i = 0; i < 5; i++) await write('a', `${round} ${i}`)
  await create(`new-${round}`)
  await write('b', round)
  await remove(`new-${round}`)
  return 8
}

test('after a compaction a watch from its history, and one from before all history, are as the cluster has them', async () => {
  const version = await write('a', 'before')
  await change('compacted')
  const exact = `${CONFIGMAPS}?resourceVersionMatch=Exact&resourceVersion=${version}`
  assert.equal((await through(gateway, cluster, exact)).status, 200)
  await cluster.etcd.compact(await cluster.etcd.revision())
  await bothWatch(version, 8)
  // kube-apiserver's own cache has all of this resource's history, which is longer than what is left in etcd.
  await bothWatch('1', 8)
})

/** Direct and through the gateway, in which `least` lines are awaited. @returns the first event */
async function bothWatch(version: string, least: number): Promise<WatchLines['events'][number] | undefined> {
  const path = `${CONFIGMAPS}?watch=1&resourceVersion=${version}`
  const direct = new WatchLines({ server: cluster.apiservers[0]?.url ?? '', path, user: cluster.admin })
  const both = [watchThrough(gateway, cluster, path), direct] as const
  await waitFor('what the cluster sends', () => {
    return both.every(({ lines }) => lines.length >= least && lines.length === direct.lines.length)
  })
  for (const one of both) one.stop()
  assert.deepEqual(both[0].lines, both[1].lines)
  assert.deepEqual([both[0].status, both[1].status], [200, 200])
  return direct.events[0]
}

test(
  'after a restart of kube-apiserver, too, whose history begins anew, and lists of what is gone',
  PATIENT,
  async () => {
    const version = await write('a', 'before the restart')
    const page = await through(gateway, cluster, `${CONFIGMAPS}?limit=1`)
    await change('restarted')
    await cluster.etcd.compact(await cluster.etcd.revision())
    await cluster.apiservers[0]?.restart()
    const later = await write('a', 'after the restart')
    await waitFor('the cache to be current', async () => {
      const { status, json } = await through(gateway, cluster, `${CONFIGMAPS}?resourceVersion=${later}`)
      return status === 200 && Number(json().metadata.resourceVersion) >= Number(later)
    })
    for (const path of [
      `${CONFIGMAPS}?resourceVersionMatch=Exact&resourceVersion=${version}`,
      `${CONFIGMAPS}?limit=1&continue=${page.json().metadata.continue}`,
    ]) {
      const [answer, direct] = [await through(gateway, cluster, path), await cluster.request(path)]
      assert.deepEqual([answer.status, direct.status], [410, 410], answer.text)
    }
    const first = await bothWatch('1', 1)
    assert.deepEqual([first?.type, first?.object.code, first?.object.reason], ['ERROR', 410, 'Expired'])
  },
)

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test(
    `after a restart of the gateway by ${signal} watches go on where they were: no 410, no list, each change once`,
    PATIENT,
    async (t) => {
      const journal = await EtcdJournal.start(cluster.etcd)
      t.after(() => journal.stop())
      const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin, { path: true })
      const informers = await startInformers({ kubeconfig, resources: ['v1/configmaps'], count: 10, detector: false })
      t.after(() => informers.kill())
      await informers.command('start')
      await waitFor('all to be synced', async () => (await informers.command('stats')).synced === 10)
      const version = await write('a', `before ${signal}`)
      const open = watchThrough(gateway, cluster, `${CONFIGMAPS}?watch=1&resourceVersion=${version}`)
      let changes = await change(`watched-${signal.toLowerCase()}`)
      await waitFor('the first changes', () => open.lines.length >= changes)
      const last = open.events.at(-1)?.object.metadata.resourceVersion
      await gateway.stop(signal)
      changes = await change(`away-${signal.toLowerCase()}`)
      gateway = await start()
      const resumed = watchThrough(gateway, cluster, `${CONFIGMAPS}?watch=1&resourceVersion=${last}`)
      t.after(() => resumed.stop())
      changes += await change(`back-${signal.toLowerCase()}`)
      await waitFor('the other changes', () => resumed.lines.length >= changes)
      await journal.upToNow()
      const seen = journal.of('configmaps').filter(({ revision }) => revision > Number(last))
      assert.deepEqual(
        resumed.events.map(({ object }) => Number(object.metadata.resourceVersion)),
        seen.map(({ revision }) => revision),
      )
      const newest = seen.at(-1)?.revision ?? 0
      const stats = await waitFor('the informers', async () => {
        const now = await informers.command('stats')
        return Object.values(now.oldest).every((version) => Number(version) >= newest) && now
      })
      assert.equal(stats.lists, 0)
      const all = await informers.report(join(folder, `${signal}.json`))
      assert.deepEqual(notOnce(all, journal), [])
      assert.deepEqual(
        all.map(({ stretches }) => stretches.length),
        all.map(() => 1),
      )
      t.diagnostic(`${changesSeen(all)} changes seen by 10 informers; ${JSON.stringify(await cacheResults(gateway))}`)
    },
  )
}

test('etcd goes back to a backup: watches end, and nothing that is gone is read any more', PATIENT, async (t) => {
  await cluster.etcd.backUp()
  await waitFor('etcd and kube-apiserver', async () => (await cluster.request('/readyz')).status === 200)
  const version = await write('a', 'will be gone')
  await create('gone')
  for (let i = 0; i < 20; i++) await write('b', `will be gone ${i}`)
  await waitFor('the cache to have it', async () => {
    return (await through(gateway, cluster, `${IN_DEFAULT}/gone?resourceVersion=0`)).status === 200
  })
  const open = watchThrough(gateway, cluster, `${CONFIGMAPS}?watch=1&resourceVersion=${version}`)
  await waitFor('its changes', () => open.lines.length >= 21)
  // As the documentation of Kubernetes has it: all API servers are stopped first, and are started again.
  await cluster.apiservers[0]?.kill()
  await cluster.etcd.restore()
  await cluster.apiservers[0]?.restart()
  const begun = performance.now()
  await waitFor('the end of the watch', () => open.ended)
  await waitFor('lists of any age without what is gone', async () => {
    const { status, text } = await through(gateway, cluster, `${CONFIGMAPS}?resourceVersion=0`)
    return status === 200 && !text.includes('will be gone') && !text.includes('"name":"gone"')
  })
  t.diagnostic(`nothing old ${Math.round(performance.now() - begun)} ms after kube-apiserver was ready`)
  const path = `${IN_DEFAULT}/gone?resourceVersion=0`
  assert.equal((await through(gateway, cluster, path)).status, 404)
  const written = await write('a', 'new')
  const { status, text } = await through(gateway, cluster, `${CONFIGMAPS}?resourceVersion=${written}`)
  assert.equal(status, 200)
  assert.match(text, /"value":"new"/)
  await waitFor('hits', async () => {
    const before = (await cacheResults(gateway))['hit'] ?? 0
    const list = await through(gateway, cluster, `${CONFIGMAPS}?resourceVersion=0`)
    assert.ok(!list.text.includes('will be gone'))
    return ((await cacheResults(gateway))['hit'] ?? 0) > before
  })
})
