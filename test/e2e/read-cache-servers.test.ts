// The read cache in front of two real kube-apiservers with the node authorizer: kubelets get what is theirs, what was just written is seen, many
// clients cost one watch, and watches go on when one of the servers is killed.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { WatchLines } from '../harness/clients/watch-lines.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import type { Credentials } from '../harness/clusters/kubeconfig.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const RBAC = readFileSync(join(import.meta.dirname, '../../deploy/rbac/read-cache.yaml'), 'utf8')
const PODS = '/api/v1/pods'
const IN_DEFAULT = '/api/v1/namespaces/default/pods'

let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  cluster = await startCluster({ apiservers: 2, extraApiserverFlags: ['--authorization-mode=Node'] })
  await cluster.apply(RBAC)
  await cluster.apply(
    `---\n${JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } })}\n`,
  )
  for (const node of ['n1', 'n2']) {
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `on-${node}` },
      spec: { nodeName: node, containers: [{ name: 'c', image: 'c' }] },
    }
    assert.equal((await cluster.request(IN_DEFAULT, { method: 'POST', body })).status, 201)
  }
  gateway = await startGateway({
    clusters: [
      upstreamClusterFor(cluster, {
        spec: {
          cache: [{ version: 'v1', resource: 'pods' }],
          healthCheck: { intervalSeconds: 1, timeoutSeconds: 1 },
        },
      }),
    ],
  })
  await waitFor('the cache', async () => {
    await through(`${PODS}?resourceVersion=0`)
    return (await results())['hit'] !== undefined
  })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

function through(path: string, user: Credentials = cluster.admin): Promise<KubeResponse> {
  return kubeRequest({
    server: `https://127.0.0.1:${gateway.port}`,
    serverName: hostOf(cluster.name),
    ca: gatewayCA().certPem,
    user,
    path,
  })
}

function watching(path: string): WatchLines {
  const server = `https://127.0.0.1:${gateway.port}`
  return new WatchLines({ server, serverName: hostOf(cluster.name), path, user: cluster.admin })
}

/** portcullis_cache_requests_total by result. */
async function results(): Promise<Readonly<Record<string, number>>> {
  const text = await gateway.metrics()
  const rows = text.matchAll(/^portcullis_cache_requests_total\{.*result="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries(Array.from(rows, ([, result = '', count]) => [result, Number(count)]))
}

async function annotate(name: string, value: string, apiserver = 0): Promise<string> {
  const answer = await kubeRequest({
    server: cluster.apiservers[apiserver]?.url ?? '',
    user: cluster.admin,
    method: 'PATCH',
    path: `${IN_DEFAULT}/${name}`,
    body: { metadata: { annotations: { value } } },
    headers: { 'content-type': 'application/merge-patch+json' },
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.json().metadata.resourceVersion
}

test('a kubelet lists the pods of its node, and neither those of another nor all', async () => {
  const kubelet = { cert: cluster.clientCertificate('system:node:n1', ['system:nodes']) }
  const before = (await results())['hit'] ?? 0
  for (const [query, status] of [
    ['&fieldSelector=spec.nodeName%3Dn1', 200],
    ['&fieldSelector=spec.nodeName%3Dn2', 403],
    ['', 403],
  ] as const) {
    const path = `${PODS}?resourceVersion=0${query}`
    const [answer, direct] = [await through(path, kubelet), await cluster.request(path, { user: kubelet })]
    assert.deepEqual([answer.status, direct.status], [status, status], answer.text)
    if (status === 403) assert.equal(answer.text, direct.text)
    else assert.deepEqual(answer.json().items, direct.json().items)
  }
  assert.equal((await results())['hit'], before + 1)
})

test('a list without a version has what was written before it, whichever server took it', async () => {
  for (let i = 0; i < 100; i++) {
    const version = await annotate('on-n1', `round ${i}`, i % 2)
    const { status, json } = await through(PODS)
    assert.equal(status, 200)
    const { items, metadata } = json()
    assert.equal(items[0].metadata.annotations.value, `round ${i}`)
    assert.ok(Number(metadata.resourceVersion) >= Number(version))
  }
})

test('many clients that begin at once cost no list and no watch of the cluster', async () => {
  const before = (await results())['hit'] ?? 0
  const all = Array.from({ length: 100 }, () => watching(`${PODS}?watch=1&allowWatchBookmarks=true`))
  await waitFor('each to have its state and the mark of its end', () => all.every(({ lines }) => lines.length >= 3))
  assert.equal((await results())['hit'], before + 100)
  const version = await annotate('on-n2', 'for all')
  await waitFor('the change in each', () =>
    all.every(({ lines }) => lines.some((line) => line.includes(`"${version}"`))),
  )
  assert.equal(new Set(all.map(({ lines }) => lines.find((line) => line.includes('for all')))).size, 1)
  for (const one of all) one.stop()
})

test('watches stay when one of two servers is killed, without a gap', { timeout: 120_000 }, async () => {
  const { json } = await through(`${PODS}?resourceVersion=0`)
  const watches = Array.from({ length: 4 }, () =>
    watching(`${PODS}?watch=1&resourceVersion=${json().metadata.resourceVersion}`),
  )
  await waitFor('their beginning', () => watches.every(({ status }) => status === 200))
  const versions: string[] = []
  versions.push(await annotate('on-n1', 'before'))
  // The one that the gateway follows: it stays with the first that it has chosen.
  await cluster.apiservers[0]?.kill()
  for (let i = 0; i < 20; i++) versions.push(await annotate('on-n1', `without it ${i}`, 1))
  for (const one of watches) {
    await waitFor('all changes', () => one.lines.length >= versions.length)
    assert.deepEqual(
      one.events.map(({ object }) => object.metadata.resourceVersion),
      versions,
    )
    assert.equal(one.ended, false)
  }
  for (const one of watches) one.stop()
})

/** A gateway with little memory for what it follows. */
test('what is beyond the memory for followed objects is forwarded, and nothing else changes', async (t) => {
  // The test before has killed it.
  await cluster.apiservers[0]?.restart()
  const small = await startGateway({
    clusters: [upstreamClusterFor(cluster, { spec: { cache: [{ version: 'v1', resource: 'pods' }] } })],
    args: ['--max-followed-bytes=1Mi', '--threads=1'],
  })
  t.after(() => small.stop())
  const server = `https://127.0.0.1:${small.port}`
  const read = (path: string): Promise<KubeResponse> =>
    kubeRequest({ server, serverName: hostOf(cluster.name), ca: gatewayCA().certPem, user: cluster.admin, path })
  const counted = async (result: string): Promise<boolean> =>
    (await small.metrics()).includes(
      `portcullis_cache_requests_total{cluster="test",resource="pods",result="${result}"}`,
    )
  const kept = async (): Promise<number> =>
    Number(/^portcullis_cache_bytes\{.*\} (\d+)$/m.exec(await small.metrics())?.[1] ?? 0)
  await waitFor('a hit', async () => (await read(`${PODS}?resourceVersion=0`)).status === 200 && (await counted('hit')))
  const watch = new WatchLines({
    server,
    serverName: hostOf(cluster.name),
    path: `${PODS}?watch=1&resourceVersion=0`,
    user: cluster.admin,
  })
  t.after(() => watch.stop())
  for (let at = 0; !small.logs().includes('the read cache drops a resource'); at++) {
    assert.ok(at < 30, 'it is dropped')
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `large-${at}`, annotations: { note: 'x'.repeat(100_000) } },
      spec: { containers: [{ name: 'c', image: 'c' }] },
    }
    const written = await cluster.request(IN_DEFAULT, { method: 'POST', body })
    assert.equal(written.status, 201)
    assert.ok((await kept()) <= 1.125 * 1024 * 1024)
    const { status, json } = await read(`${IN_DEFAULT}?resourceVersion=${written.json().metadata.resourceVersion}`)
    assert.equal(status, 200)
    assert.ok(json().items.some((pod: { metadata: { name: string } }) => pod.metadata.name === `large-${at}`))
  }
  await waitFor('the end of the watch', () => watch.ended)
  assert.match((await small.admin('/debug/config')).text, /followed-bytes/)
  await waitFor('a read that is forwarded', async () => {
    const [cached, direct] = await Promise.all([read(`${PODS}?resourceVersion=0`), cluster.request(PODS)])
    assert.equal(cached.json().items.length, direct.json().items.length)
    return await counted('unavailable')
  })
})
