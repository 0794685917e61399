// A member that is lost, comes back, joins or leaves: what is known of it stays until it is known to be gone. The numbers are those of the checks of the
// specification.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { WatchLines } from '../harness/clients/watch-lines.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import {
  ALL_PODS,
  createPod,
  deletePod,
  federatedClusters,
  federatedUsersCA,
  labelPod,
  prepareMember,
  readThrough,
  seenEvents,
  shownNames,
  userNamed,
  watchThrough,
} from '../harness/federation/federated-clusters.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { waitFor } from '../harness/wait.ts'

const EAST = ['east--default/only-east', 'east--default/web']
const WEST = ['west--default/only-west', 'west--default/web']
/** May read in both, and has read nothing yet. */
const carol = userNamed('carol')
/** May read in east. */
const bob = userNamed('bob')

let east: TestCluster
let west: TestCluster
let gateway: TestGateway
let omitting: TestGateway

before(async () => {
  const start = (name: string): Promise<TestCluster> => startCluster({ name, clientCA: federatedUsersCA })
  ;[east, west] = await Promise.all([start('east'), start('west')])
  await Promise.all([prepareMember(east, ['alice', 'bob', 'carol']), prepareMember(west, ['alice', 'carol'])])
  gateway = await startGateway({ clusters: federatedClusters([east, west]) })
  omitting = await startGateway({ clusters: federatedClusters([east, west], { partial: 'Omit', denied: 'Omit' }) })
  for (const one of [gateway, omitting])
    await waitFor('what is kept of both', async () => {
      const { status, headers } = await readThrough(one, ALL_PODS)
      return status === 200 && headers['warning'] === undefined
    })
})
after(async () => {
  await gateway?.stop()
  await omitting?.stop()
  await east?.stop()
  await west?.stop()
})

async function listed(one: TestGateway, query = '', user = undefined as Parameters<typeof watchThrough>[2]) {
  const { status, headers, text, json } = await readThrough(
    one,
    `${ALL_PODS}${query}`,
    user === undefined ? {} : { user },
  )
  return {
    status,
    text,
    warning: String(headers['warning'] ?? ''),
    names: status === 200 ? shownNames(json().items) : [],
  }
}

test('37: with Omit, bob is shown east, told that west is left out, and nothing of west', async () => {
  const { names, warning, text } = await listed(omitting, '', bob)
  assert.deepEqual(names, EAST)
  assert.match(warning, /west is left out/)
  assert.doesNotMatch(text, /only-west/)
  const watch = watchThrough(omitting, `${ALL_PODS}?watch=1`, bob)
  await waitFor('its state', () => watch.lines.length === 2)
  await labelPod(west, 'web', 'hidden')
  await labelPod(east, 'web', 'shown')
  await waitFor('the change', () => watch.lines.length === 3)
  assert.doesNotMatch(watch.lines.join(''), /west/)
  watch.stop()
})

test('33: while west is away, its objects stay, no event says otherwise, and a Warning says since when', {
  timeout: 180_000,
}, async () => {
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1`)
  await waitFor('its state', () => watch.lines.length === 4)
  for (const apiserver of west.apiservers) await apiserver.kill()
  await waitFor('the loss to be known', async () => (await listed(gateway)).warning.includes('as of'))
  const away = await listed(gateway)
  assert.equal(away.status, 200, away.text)
  assert.deepEqual(away.names, [...EAST, ...WEST])
  assert.match(away.warning, /west as of [0-2]\d:[0-5]\d:[0-5]\d/)
  // As an informer begins again.
  const again = watchThrough(
    gateway,
    `${ALL_PODS}?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1`,
  )
  await waitFor('its state', () => again.lines.length === 5)
  again.stop()
  await labelPod(east, 'web', 'alone')
  await waitFor('the change of east', () => watch.lines.length === 5)
  assert.ok(!seenEvents(watch).some(({ type }) => type === 'DELETED'))
  assert.equal(watch.ended, false)
  watch.stop()
})

test('33: who was not allowed before is not while west cannot be asked', async () => {
  assert.equal((await listed(gateway, '', carol)).status, 503)
  assert.equal((await listed(gateway, '', bob)).status, 503)
  const east = await readThrough(gateway, '/api/v1/namespaces/east--default/pods', { user: carol })
  assert.equal(east.status, 200)
  assert.equal((await readThrough(gateway, '/api/v1/namespaces/west--default/pods/web', { user: carol })).status, 503)
})

test('35: a replica that has never seen west refuses all, or leaves west out with a Warning, as is said', {
  timeout: 180_000,
}, async () => {
  const [refusing, leaving] = [
    await startGateway({ clusters: federatedClusters([east, west]) }),
    await startGateway({ clusters: federatedClusters([east, west], { partial: 'Omit' }) }),
  ]
  try {
    await waitFor('east', async () => (await listed(leaving)).names.length === 2)
    const { names, warning } = await listed(leaving)
    assert.deepEqual(names, EAST)
    assert.match(warning, /west is left out/)
    const refused = await listed(refusing)
    assert.equal(refused.status, 503)
    assert.match(refused.text, /west/)
  } finally {
    await refusing.stop()
    await leaving.stop()
  }
})

test('34: what has happened in west meanwhile is told when it is back', { timeout: 180_000 }, async () => {
  const before = (await readThrough(gateway, ALL_PODS)).json().metadata.resourceVersion
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1&resourceVersion=${before}`)
  await waitFor('its beginning', () => watch.status === 200)
  for (const apiserver of west.apiservers) await apiserver.restart()
  await deletePod(west, 'only-west')
  await createPod(west, 'later')
  await waitFor('the news of west', () => seenEvents(watch).some(({ name }) => name === 'west--default/later'))
  assert.deepEqual(
    seenEvents(watch)
      .filter(({ name }) => name.startsWith('west--'))
      .map(({ type, name }) => `${type} ${name}`)
      .filter((text) => !text.startsWith('MODIFIED')),
    ['DELETED west--default/only-west', 'ADDED west--default/later'],
  )
  watch.stop()
  await waitFor('no Warning', async () => (await listed(gateway)).warning === '')
  assert.deepEqual((await listed(gateway)).names, [...EAST, 'west--default/later', 'west--default/web'])
})

test('33: while one of three is frozen, the others are read and watched; then watches go on, and each change was told once', {
  timeout: 240_000,
}, async () => {
  const north = await startCluster({ name: 'north', clientCA: federatedUsersCA })
  const frozen = north.apiservers[0]
  let stop: (() => Promise<unknown>) | undefined
  const members = [east, west, north]
  const made = new Map<string, string[]>(members.map(({ name }) => [name, []]))
  const change = async (cluster: TestCluster): Promise<void> => {
    const values = made.get(cluster.name) ?? []
    values.push(`${cluster.name}-${values.length}`)
    await labelPod(cluster, 'web', values.at(-1) ?? '')
  }
  const told = (watch: WatchLines, { name }: TestCluster): string[] =>
    watch.events
      .filter(({ type, object: { metadata } }) => type === 'MODIFIED' && metadata.namespace === `${name}--default`)
      .map(({ object: { metadata } }) => metadata.labels.value)
  const ofNorth = '/api/v1/namespaces/north--default/pods/web'
  const late = /^299 - "north (as of [0-2]\d:[0-5]\d:[0-5]\d|could not be proved to be current)"$/
  try {
    await prepareMember(north, ['alice'])
    const one = await startGateway({ clusters: federatedClusters(members) })
    stop = () => one.stop()
    await waitFor('what is kept of all', async () => (await listed(one)).status === 200)
    const { names } = await listed(one)
    const watch = watchThrough(one, `${ALL_PODS}?watch=1`)
    await waitFor('its state', () => watch.lines.length === names.length)
    assert.equal((await readThrough(one, ofNorth)).status, 200)
    for (const cluster of members) await change(cluster)
    await waitFor('all changes', () => watch.lines.length === names.length + members.length)
    await frozen?.kill('SIGSTOP')
    const list = await waitFor('a list with a Warning', async () => {
      const answer = await listed(one)
      return late.test(answer.warning) ? answer : undefined
    })
    assert.deepEqual(list.names, names)
    const got = await waitFor('a get with a Warning', async () => {
      const answer = await readThrough(one, ofNorth)
      return late.test(String(answer.headers['warning'])) ? answer : undefined
    })
    assert.equal(got.json().metadata.labels.value, made.get('north')?.at(-1))
    await waitFor('a get without', async () => {
      const { status, headers } = await readThrough(one, '/api/v1/namespaces/east--default/pods/web')
      return status === 200 && headers['warning'] === undefined
    })
    const again = watchThrough(one, `${ALL_PODS}?watch=1`)
    await waitFor('its state', () => again.lines.length === names.length)
    for (const cluster of [east, west]) await change(cluster)
    for (const each of [watch, again])
      await waitFor('the changes of the others', () => {
        return [east, west].every((cluster) => told(each, cluster).at(-1) === made.get(cluster.name)?.at(-1))
      })
    await frozen?.kill('SIGCONT')
    for (const cluster of members) await change(cluster)
    for (const cluster of members) {
      const all = made.get(cluster.name) ?? []
      await waitFor(`the last change of ${cluster.name}`, () => told(watch, cluster).includes(all.at(-1) ?? ''))
      assert.deepEqual(told(watch, cluster), all)
      await waitFor('the same', () => told(again, cluster).includes(all.at(-1) ?? ''))
      assert.deepEqual(told(again, cluster), all.slice(1))
    }
    for (const each of [watch, again]) {
      assert.equal(each.ended, false)
      assert.ok(seenEvents(each).every(({ type }) => type === 'ADDED' || type === 'MODIFIED'))
      each.stop()
    }
    await waitFor('no Warning', async () => (await listed(one)).warning === '')
  } finally {
    await frozen?.kill('SIGCONT')
    await stop?.()
    await north.stop()
  }
})

test('42: objects of a member that joins are added, and versions from before one has left are gone', {
  timeout: 240_000,
}, async () => {
  const one = await startGateway({
    clusters: federatedClusters([east, west]).filter(({ metadata }) => metadata.name !== 'all'),
  })
  const apply = (members: readonly TestCluster[]): void => {
    const all = federatedClusters(members).find(({ metadata }) => metadata.name === 'all')
    if (all !== undefined) one.write(all)
  }
  try {
    apply([east])
    await waitFor('east alone', async () => (await listed(one).catch(() => undefined))?.names.length === 2)
    const alone = (await readThrough(one, ALL_PODS)).json().metadata.resourceVersion
    const watch = watchThrough(one, `${ALL_PODS}?watch=1&resourceVersion=${alone}`)
    await waitFor('its beginning', () => watch.status === 200)
    apply([east, west])
    await waitFor('the end of what was watched', () => watch.ended)
    await waitFor('both', async () => (await listed(one)).names.length === 4)
    // As clients do, which go on with the last version that they know.
    const joined = watchThrough(one, `${ALL_PODS}?watch=1&resourceVersion=${alone}`)
    await waitFor('the objects of west', () => joined.lines.length === 2)
    assert.deepEqual(
      seenEvents(joined)
        .map(({ type, name }) => `${type} ${name}`)
        .sort(),
      ['ADDED west--default/later', 'ADDED west--default/web'],
    )
    const both = (await readThrough(one, ALL_PODS)).json().metadata.resourceVersion
    apply([east])
    await waitFor('the end', () => joined.ended)
    await waitFor('east alone', async () => (await listed(one)).names.length === 2)
    assert.equal((await listed(one, `?resourceVersion=${both}`)).status, 410)
    const gone = watchThrough(one, `${ALL_PODS}?watch=1&resourceVersion=${both}`)
    await waitFor('the end', () => gone.ended)
    assert.equal(gone.events[0]?.object.code, 410)
  } finally {
    await one.stop()
  }
})
