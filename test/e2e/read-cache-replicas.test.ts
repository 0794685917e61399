// Two gateways with read caches of their own in front of one cluster with two API servers, as replicas behind a balancer: clients that go from one to the
// other miss nothing, get nothing twice, and never see a version fall.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { KubeResponse } from '../harness/clusters/kube-request.ts'
import { cacheResults, cacheStates, grantCacheUser, through, watchThrough } from '../harness/clusters/read-cache.ts'
import { upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const CONFIGMAPS = '/api/v1/configmaps'
const IN_DEFAULT = '/api/v1/namespaces/default/configmaps'
const CACHED = [{ version: 'v1', resource: 'configmaps' }]
const MERGE = { 'content-type': 'application/merge-patch+json' }

let cluster: TestCluster
let gateways: readonly TestGateway[] = []

before(async () => {
  cluster = await startCluster({ apiservers: 2 })
  await grantCacheUser(cluster, CACHED)
  await create('a')
  const clusters = [upstreamClusterFor(cluster, { spec: { cache: CACHED } })]
  gateways = await Promise.all([startGateway({ clusters }), startGateway({ clusters })])
  for (const gateway of gateways)
    await waitFor('the cache', async () => (await cacheStates(gateway)).every(({ resourceVersion }) => resourceVersion))
}, PATIENT)
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await cluster?.stop()
})

/** The replicas in turn. */
function replica(at: number): TestGateway {
  return gateways[at % gateways.length] ?? assert.fail()
}

async function create(name: string): Promise<string> {
  const answer = await cluster.request(IN_DEFAULT, { method: 'POST', body: { metadata: { name } } })
  assert.equal(answer.status, 201, answer.text)
  return answer.json().metadata.resourceVersion
}

async function write(name: string, value: string): Promise<string> {
  const path = `${IN_DEFAULT}/${name}`
  const answer = await cluster.request(path, { method: 'PATCH', headers: MERGE, body: { data: { value } } })
  assert.equal(answer.status, 200, answer.text)
  return answer.json().metadata.resourceVersion
}

/** Changes of all kinds. @returns their versions, of deletions too */
async function change(round: string): Promise<readonly string[]> {
  const versions = [await write('a', `${round} 1`), await create(`new-${round}`), await write(`new-${round}`, 'x')]
  const watch = `${CONFIGMAPS}?watch=1&resourceVersion=${versions.at(-1)}&timeoutSeconds=1`
  assert.equal((await cluster.request(`${IN_DEFAULT}/new-${round}`, { method: 'DELETE' })).status, 200)
  const deleted = JSON.parse((await cluster.request(watch)).text.split('\n')[0] ?? '').object.metadata.resourceVersion
  return [...versions, deleted, await write('a', `${round} 2`)]
}

const hitsOf = async (gateway: TestGateway): Promise<number> => (await cacheResults(gateway))['hit'] ?? 0

async function hits(): Promise<number> {
  const all = await Promise.all(gateways.map(hitsOf))
  return all.reduce((sum, one) => sum + one, 0)
}

const versionOf = (answer: KubeResponse): number => Number(answer.json().metadata.resourceVersion)

test('a watch goes on at the other replica from each of its events', PATIENT, async (t) => {
  const from = await write('a', 'begin')
  const first = watchThrough(replica(0), cluster, `${CONFIGMAPS}?watch=1&resourceVersion=${from}`)
  const expected = [...(await change('one')), ...(await change('two'))]
  await waitFor('all changes', () => first.lines.length === expected.length)
  first.stop()
  assert.deepEqual(
    first.events.map(({ object }) => object.metadata.resourceVersion),
    expected,
  )
  const before = await hits()
  for (const [at, version] of expected.entries()) {
    const path = `${CONFIGMAPS}?watch=1&resourceVersion=${version}`
    const both = gateways.map((gateway) => watchThrough(gateway, cluster, path))
    t.after(() => {
      for (const one of both) one.stop()
    })
    const rest = first.lines.slice(at + 1)
    await waitFor(`the changes after ${version}`, () => both.every(({ lines }) => lines.length >= rest.length))
    for (const { lines } of both) assert.deepEqual(lines, rest)
    // Those of the last one have got nothing yet.
    await waitFor('the heads of both', () => both.every(({ status }) => status === 200))
    if (at < expected.length - 1) for (const one of both) one.stop()
  }
  assert.equal((await hits()) - before, 2 * expected.length)
})

test('a state of one replica goes on at the other', PATIENT, async () => {
  for (const at of [0, 1]) {
    const path = `${CONFIGMAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`
    const state = watchThrough(replica(at), cluster, path)
    const end = await waitFor('the end of the state', () => state.events.find(({ type }) => type === 'BOOKMARK'))
    state.stop()
    const expected = await change(`state-${at}`)
    const from = end.object.metadata.resourceVersion
    const rest = watchThrough(replica(at + 1), cluster, `${CONFIGMAPS}?watch=1&resourceVersion=${from}`)
    await waitFor('what follows it', () => rest.lines.length >= expected.length)
    rest.stop()
    assert.deepEqual(
      rest.events.map(({ object }) => object.metadata.resourceVersion),
      expected,
    )
  }
})

test(
  'versions never fall for a client that asks the replicas in turn, and it reads what it wrote',
  PATIENT,
  async (t) => {
    const before = await hits()
    let seen = 0
    for (let round = 0; round < 30; round++) {
      const written = Number(await write('a', `round ${round}`))
      const next = replica(round)
      // As new as the request; not older than what was seen.
      for (const isCurrent of [true, false]) {
        const query = isCurrent ? '' : `?resourceVersion=${Math.max(seen, written)}`
        const answer = await through(next, cluster, CONFIGMAPS + query)
        assert.equal(answer.status, 200, answer.text)
        assert.ok(versionOf(answer) >= Math.max(seen, written), `${versionOf(answer)} after ${seen} and ${written}`)
        seen = versionOf(answer)
        assert.ok(answer.text.includes(`"value":"round ${round}"`))
      }
      const path = `${IN_DEFAULT}/a?resourceVersion=${written}`
      const other = await through(replica(round + 1), cluster, path)
      assert.equal(versionOf(other), written)
    }
    t.diagnostic(`${(await hits()) - before} of 90 reads were answered from the caches`)
    assert.ok((await hits()) - before >= 30)
  },
)

test(
  'a replica that starts again has a history that begins later: older watches go on from the cluster, each change once',
  PATIENT,
  async () => {
    const from = await write('a', 'before the restart')
    const open = watchThrough(replica(0), cluster, `${CONFIGMAPS}?watch=1&resourceVersion=${from}`)
    const early = await change('early')
    await waitFor('the first changes', () => open.lines.length === early.length)
    await replica(0).stop('SIGKILL')
    const late = await change('late')
    const again = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache: CACHED } })] })
    gateways = [again, replica(1)]
    await waitFor('the cache', async () => (await cacheStates(again)).every(({ resourceVersion }) => resourceVersion))
    // Its history begins with the version of its first list, which other objects may have moved beyond the last change.
    const known = await change('known')
    await waitFor('the last change', async () => {
      return (await cacheStates(again)).every(({ resourceVersion }) => Number(resourceVersion) >= Number(known.at(-1)))
    })
    // From before its history, from the middle of what it was away for, and from now.
    for (const version of [from, early.at(-1), late[1], known[0]]) {
      const path = `${CONFIGMAPS}?watch=1&resourceVersion=${version}`
      const rest = [...early, ...late, ...known].filter((one) => Number(one) > Number(version))
      for (const gateway of gateways) {
        const resumed = watchThrough(gateway, cluster, path)
        await waitFor(
          `the changes after ${version}`,
          () => resumed.status === 200 && resumed.lines.length >= rest.length,
        )
        resumed.stop()
        assert.deepEqual(
          resumed.events.map(({ object }) => object.metadata.resourceVersion),
          rest,
        )
      }
    }
    const results = await cacheResults(again)
    assert.deepEqual([results['history'], results['hit']], [3, 1])
  },
)
