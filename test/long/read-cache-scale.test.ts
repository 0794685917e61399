// The read cache with as much as it is for: a thousand writes that are read at once, five hundred informers that begin together, a hundred thousand pods.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ClusterOptions, startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { base64Of } from '../harness/clusters/etcd.ts'
import { cacheResults, cacheStates, grantCacheUser, through } from '../harness/clusters/read-cache.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { startInformers } from '../harness/informers/informers.ts'
import { residentBytes } from '../harness/storms/cpu-seconds.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/pods'
const IN_DEFAULT = '/api/v1/namespaces/default/pods'
const MERGE = { 'content-type': 'application/merge-patch+json' }
const LONG = { timeout: 30 * 60_000 }
const PATIENT_MS = 5 * 60_000
/** The user by which the gateway follows the cluster. */
const CACHE_USER = 'portcullis-cache'

async function clusterOf(t: TestContext, options: ClusterOptions = {}): Promise<TestCluster> {
  const cluster = await startCluster(options)
  t.after(() => cluster.stop())
  await grantCacheUser(cluster)
  await cluster.apply(
    `---\n${JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } })}\n`,
  )
  return cluster
}

async function gatewayOf(t: TestContext, cluster: TestCluster, maxBytes = '1Gi'): Promise<TestGateway> {
  const cache = [{ version: 'v1', resource: 'pods', maxBytes }]
  const gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache } })] })
  t.after(() => gateway.stop())
  return gateway
}

function isKept(gateway: TestGateway): Promise<unknown> {
  const look = async (): Promise<boolean> =>
    (await cacheStates(gateway)).every(({ resourceVersion }) => resourceVersion !== '')
  return waitFor('the cache', look, { timeoutMs: PATIENT_MS })
}

function podOf(name: string, note = ''): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', annotations: { note } },
    spec: { containers: [{ name: 'c', image: 'c' }] },
  }
}

const WRITERS = 20
const WRITES = 1_000
/** All pods together are more than a list that is better sent by the cluster. */
const NOTE = 'x'.repeat(80 * 1024)

for (const busy of [false, true]) {
  test(
    `${WRITES} writes to a ${busy ? 'busy' : 'quiet'} cluster: each is in the list that is begun behind it`,
    LONG,
    async (t) => {
      const cluster = await clusterOf(t, { apiservers: 2 })
      for (let i = 0; i < WRITERS; i++) {
        const { status, text } = await cluster.request(IN_DEFAULT, { method: 'POST', body: podOf(`pod-${i}`, NOTE) })
        assert.equal(status, 201, text)
      }
      const gateway = await gatewayOf(t, cluster)
      await isKept(gateway)
      const end = new AbortController()
      const others = busy ? Array.from({ length: 2 }, (_, at) => writeOthers(cluster, `other-${at}`, end.signal)) : []
      await Promise.all(
        Array.from({ length: WRITERS }, async (_, writer) => {
          for (let i = 0; i < WRITES / WRITERS; i++) await writeAndList(cluster, gateway, writer, i)
        }),
      )
      end.abort()
      const written = await Promise.all(others)
      const results = await cacheResults(gateway)
      t.diagnostic(`${JSON.stringify(results)}; other writes: ${written.reduce((a, b) => a + b, 0)}`)
      assert.ok((results['hit'] ?? 0) > WRITES / 2, 'the cache has answered, and not the cluster')
    },
  )
}

/** The list has what was just written, by whichever server. */
async function writeAndList(cluster: TestCluster, gateway: TestGateway, writer: number, i: number): Promise<void> {
  const name = `pod-${writer}`
  const written = await cluster.request(`${IN_DEFAULT}/${name}`, {
    server: cluster.apiservers[i % 2]?.url ?? '',
    method: 'PATCH',
    headers: MERGE,
    body: { metadata: { labels: { round: `round-${i}` } } },
  })
  assert.equal(written.status, 200, written.text)
  const version = Number(written.json().metadata.resourceVersion)
  const { status, text, json } = await through(gateway, cluster, PODS, { timeoutMs: PATIENT_MS })
  assert.equal(status, 200, text.slice(0, 500))
  const { items, metadata } = json()
  const pod = items.find((item: { metadata: { name: string } }) => item.metadata.name === name)
  assert.equal(pod.metadata.labels.round, `round-${i}`)
  assert.equal(Number(pod.metadata.resourceVersion), version)
  assert.ok(Number(metadata.resourceVersion) >= version)
}

/** Other objects, whose versions are of the same store. @returns how many writes */
async function writeOthers(cluster: TestCluster, name: string, signal: AbortSignal): Promise<number> {
  const path = '/api/v1/namespaces/default/configmaps'
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }
  await cluster.request(path, { method: 'POST', body: object })
  let writes = 0
  for (; !signal.aborted; writes++) {
    await cluster.request(`${path}/${name}`, {
      method: 'PATCH',
      headers: MERGE,
      body: { data: { at: String(writes) } },
    })
  }
  return writes
}

const INFORMERS = 500

interface AuditLine {
  readonly verb: string
  readonly requestURI: string
  readonly user: { readonly username: string }
  readonly impersonatedUser?: { readonly username: string }
  readonly requestReceivedTimestamp: string
  readonly stageTimestamp: string
  readonly stage: string
}

test(`${INFORMERS} informers that begin together cost one watch, no list, and one probe at a time`, LONG, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-audit-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const policy = join(folder, 'policy.yaml')
  const log = join(folder, 'audit.log')
  writeFileSync(
    policy,
    JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      rules: [{ level: 'Metadata', resources: [{ group: '', resources: ['pods'] }] }, { level: 'None' }],
    }),
  )
  const flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`]
  const cluster = await clusterOf(t, { extraApiserverFlags: flags })
  for (let i = 0; i < 200; i++) await cluster.request(IN_DEFAULT, { method: 'POST', body: podOf(`pod-${i}`) })
  const gateway = await gatewayOf(t, cluster)
  await isKept(gateway)
  const audited = (): readonly AuditLine[] => {
    const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as AuditLine)
  }
  await waitFor("the cache's watch in the audit log", () => audited().some(isFollowing))
  const before = audited().length
  const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin, { path: true })
  const informers = await startInformers({ kubeconfig, resources: ['v1/pods'], count: INFORMERS, detector: false })
  t.after(() => informers.kill())
  await informers.command('start')
  const synced = async (): Promise<boolean> => (await informers.command('stats')).synced === INFORMERS
  await waitFor('all to be synced', synced, { timeoutMs: PATIENT_MS })
  const written = await cluster.request(`${IN_DEFAULT}/pod-7`, {
    method: 'PATCH',
    headers: MERGE,
    body: { metadata: { labels: { seen: 'by-all' } } },
  })
  const version = Number(written.json().metadata.resourceVersion)
  const stats = await waitFor(
    'the change in each',
    async () => {
      const now = await informers.command('stats')
      return Number(now.oldest['v1/pods'] ?? 0) >= version && now
    },
    { timeoutMs: PATIENT_MS },
  )
  assert.deepEqual(stats.problems, [])
  const lines = audited().slice(before)
  const ofClients = lines.filter(({ impersonatedUser, verb }) => {
    return impersonatedUser?.username === 'admin' && (verb === 'list' || verb === 'watch')
  })
  assert.deepEqual(ofClients, [])
  assert.deepEqual(lines.filter(isFollowing), [])
  const probes = lines.filter(
    ({ verb, impersonatedUser, stage }) =>
      verb === 'list' && impersonatedUser?.username === CACHE_USER && stage === 'ResponseComplete',
  )
  const sorted = probes.toSorted((a, b) => (a.requestReceivedTimestamp < b.requestReceivedTimestamp ? -1 : 1))
  for (const [at, probe] of sorted.entries()) {
    const next = sorted[at + 1]
    if (next !== undefined) assert.ok(next.requestReceivedTimestamp >= probe.stageTimestamp, 'two probes at once')
  }
  t.diagnostic(
    `${probes.length} probes; ${stats.watches} watches and ${stats.lists} lists at the gateway: ${JSON.stringify(await cacheResults(gateway))}`,
  )
})

/** The cache's own watch, beside which there are short ones that prove that it is current. */
function isFollowing({ verb, impersonatedUser, requestURI, stage }: AuditLine): boolean {
  const isWatch = verb === 'watch' && impersonatedUser?.username === CACHE_USER && stage === 'ResponseStarted'
  return isWatch && !requestURI.includes('timeoutSeconds=3&') && !requestURI.endsWith('timeoutSeconds=3')
}

const MANY = 100_000
const MANY_AT_ONCE = 100

test(
  `${MANY} pods: their bytes are in memory once, and beyond the budget they are the cluster's to list`,
  LONG,
  async (t) => {
    const cluster = await clusterOf(t)
    const { text } = await cluster.request(IN_DEFAULT, { method: 'POST', body: podOf('like-all') })
    await putMany(cluster, JSON.parse(text))
    const last = `${IN_DEFAULT}/${nameOf(MANY - 1)}?resourceVersion=0`
    const isSeen = async (): Promise<boolean> => (await cluster.request(last)).status === 200
    await waitFor('kube-apiserver to have seen them all', isSeen, { timeoutMs: PATIENT_MS })
    const direct = await cluster.request(`${PODS}?resourceVersion=0`, { timeoutMs: PATIENT_MS })
    assert.equal(direct.status, 200, direct.text.slice(0, 500))
    assert.equal(direct.json().items.length, MANY + 1)
    const rawBytes = direct.bytes.length
    const gateway = await gatewayOf(t, cluster)
    await isKept(gateway)
    const [state] = await cacheStates(gateway)
    assert.equal(state?.objects, MANY + 1)
    const factor = (state?.bytes ?? 0) / rawBytes
    t.diagnostic(
      `${rawBytes} bytes as a list, ${state?.bytes} in the cache: ${factor.toFixed(3)} x; process: ${residentMiB(gateway)} MiB`,
    )
    assert.ok(factor <= 1.3, `${factor}`)
    const list = await through(gateway, cluster, `${PODS}?resourceVersion=0`, { timeoutMs: PATIENT_MS })
    assert.equal(list.bytes.length, rawBytes)
    assert.equal(list.json().items.length, MANY + 1)
    assert.equal((await cacheResults(gateway))['hit'], 1)
    t.diagnostic(`process: ${residentMiB(gateway)} MiB after a list`)
    await gateway.stop()

    const small = await gatewayOf(t, cluster, '64Mi')
    await waitFor('it to be given up', async () => (await cacheStates(small))[0]?.message.includes('maxBytes'), {
      timeoutMs: PATIENT_MS,
    })
    const forwarded = await through(small, cluster, `${PODS}?resourceVersion=0`, { timeoutMs: PATIENT_MS })
    assert.equal(forwarded.json().items.length, MANY + 1)
    const results = await cacheResults(small)
    assert.deepEqual([results['hit'] ?? 0, results['unavailable']], [0, 1])
    t.diagnostic(`process: ${residentMiB(small)} MiB beyond its budget`)
  },
)

function nameOf(index: number): string {
  return `pod-${String(index).padStart(6, '0')}`
}

/** As kube-apiserver itself would store them; through it they would take minutes. */
async function putMany(cluster: TestCluster, like: { readonly metadata: object }): Promise<void> {
  const put = async (from: number): Promise<void> => {
    const success = Array.from({ length: MANY_AT_ONCE }, (_, at) => {
      const name = nameOf(from + at)
      const object = { ...like, metadata: { ...like.metadata, name, uid: `uid-${name}`, resourceVersion: undefined } }
      return {
        request_put: { key: base64Of(`/registry/pods/default/${name}`), value: base64Of(JSON.stringify(object)) },
      }
    })
    const answer = await fetch(`${cluster.etcd.url}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success }) })
    assert.equal(answer.status, 200, await answer.text())
  }
  for (let from = 0; from < MANY; from += MANY_AT_ONCE) await put(from)
}

function residentMiB({ pid }: TestGateway): number {
  return Math.round(residentBytes(pid) / 1024 / 1024)
}
