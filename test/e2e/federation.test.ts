// Two real clusters read as one: what a list of all has, that a watch goes on at another replica, and what is shown to which user. The numbers are those of the
// checks of the specification.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { compareResourceVersions } from '../../src/kube/core/objects/resource-version.ts'
import type { WatchLines } from '../harness/clients/watch-lines.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import type { KubeRequest, KubeResponse } from '../harness/clusters/kube-request.ts'
import { kubeconfigThrough } from '../harness/clusters/upstream-cluster.ts'
import {
  ALL_PODS,
  alice,
  createPod,
  federatedClusters,
  federatedUsersCA,
  labelPod,
  prepareMember,
  readThrough,
  type ShownItem,
  seenEvents,
  shownNames,
  userNamed,
  watchThrough,
} from '../harness/federation/federated-clusters.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const IN_EAST = '/api/v1/namespaces/east--default/pods'
const ANNOTATION = 'portcullis.io/cluster'
/** May read pods in east, and has no right in west. */
const bob = userNamed('bob')

let east: TestCluster
let west: TestCluster
let gateway: TestGateway
let other: TestGateway

before(async () => {
  const start = (name: string): Promise<TestCluster> => startCluster({ name, clientCA: federatedUsersCA })
  ;[east, west] = await Promise.all([start('east'), start('west')])
  await Promise.all([prepareMember(east, ['alice', 'bob']), prepareMember(west, ['alice'])])
  gateway = await startGateway({ clusters: federatedClusters([east, west]) })
  other = await startGateway({ clusters: federatedClusters([east, west]) })
  for (const one of [gateway, other])
    await waitFor('what is kept of both', async () => (await readThrough(one, ALL_PODS)).status === 200)
})
after(async () => {
  await gateway?.stop()
  await other?.stop()
  await east?.stop()
  await west?.stop()
})

function get(path: string, more: Partial<KubeRequest> = {}): Promise<KubeResponse> {
  return readThrough(gateway, path, more)
}

function grows(versions: readonly string[]): void {
  for (const [index, version] of versions.slice(1).entries())
    assert.ok((compareResourceVersions(versions[index] ?? '', version) ?? 0) < 0, `${versions[index]} -> ${version}`)
}

test('30: a list has the pods of both, in namespaces of their own, with a decimal version', async () => {
  const answer = await get(ALL_PODS)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers['warning'], undefined)
  const { kind, items, metadata } = answer.json()
  assert.equal(kind, 'PodList')
  assert.deepEqual(shownNames(items), [
    'east--default/only-east',
    'east--default/web',
    'west--default/only-west',
    'west--default/web',
  ])
  assert.match(metadata.resourceVersion, /^1[0-9]+$/)
  for (const item of items) {
    assert.match(item.metadata.resourceVersion, /^1[0-9]+$/)
    assert.equal(item.metadata.annotations[ANNOTATION], item.metadata.namespace.split('--')[0])
  }
})

test('30: a list of a namespace, and a get, are those of its member, and nothing else of the object has changed', async () => {
  const { items } = (await get(IN_EAST)).json()
  assert.deepEqual(shownNames(items), ['east--default/only-east', 'east--default/web'])
  const one = (await get(`${IN_EAST}/web`)).json()
  const direct = (await east.request('/api/v1/namespaces/default/pods/web')).json()
  const { namespace, resourceVersion, annotations } = one.metadata
  assert.deepEqual([namespace, annotations], ['east--default', { [ANNOTATION]: 'east' }])
  assert.ok(resourceVersion.includes(direct.metadata.resourceVersion))
  one.metadata.namespace = direct.metadata.namespace
  one.metadata.resourceVersion = direct.metadata.resourceVersion
  delete one.metadata.annotations
  assert.deepEqual(one, direct)
})

test('30: selectors name namespaces as they are called here', async () => {
  const listed = async (query: string): Promise<string[]> =>
    shownNames((await get(`${ALL_PODS}?${query}`)).json().items)
  assert.deepEqual(await listed('labelSelector=of%3Dwest'), ['west--default/only-west', 'west--default/web'])
  const inEast = 'fieldSelector=metadata.namespace%3Deast--default%2Cmetadata.name%3Dweb'
  assert.deepEqual(await listed(inEast), ['east--default/web'])
  assert.deepEqual(await listed('fieldSelector=metadata.namespace%21%3Deast--default'), [
    'west--default/only-west',
    'west--default/web',
  ])
  assert.equal((await get(`${ALL_PODS}?fieldSelector=spec.foo%3Dx`)).status, 400)
})

test('30: names in a selector are looked for in each member: too many are refused before anyone is asked for rights', async () => {
  const listed = (terms: number): Promise<KubeResponse> => {
    const selector = Array.from({ length: terms }, () => 'metadata.name!=x').join(',')
    return get(`${ALL_PODS}?fieldSelector=${encodeURIComponent(selector)}`, { user: bob })
  }
  assert.equal((await listed(32)).status, 403)
  const many = await listed(33)
  assert.equal(many.status, 400, many.text)
  assert.match(many.json().message, /more than 32 requirements/)
})

test('30: what is not there is 404', async () => {
  assert.equal((await get(`${IN_EAST}/none`)).json().reason, 'NotFound')
  assert.match((await get('/api/v1/namespaces/default/pods')).json().message, /MEMBER--NAMESPACE/)
  assert.match((await get('/apis/apps/v1/deployments')).json().message, /\/clusters\/MEMBER/)
})

test('37: who has rights in east only is refused all, and given what is of east', async () => {
  const all = await get(ALL_PODS, { user: bob })
  assert.equal(all.status, 403, all.text)
  assert.doesNotMatch(all.text, /only-/)
  assert.equal((await get(IN_EAST, { user: bob })).status, 200)
  assert.equal((await get('/api/v1/namespaces/west--default/pods', { user: bob })).status, 403)
  assert.equal((await get('/api/v1/namespaces/west--default/pods/web', { user: bob })).status, 403)
  assert.equal((await get('/api/v1/namespaces/west--none/pods/web', { user: bob })).status, 403)
})

test('37: what is shown of east says nothing of west, its version neither', async () => {
  const version = (await get(IN_EAST, { user: bob })).json().metadata.resourceVersion
  const ofWest = (await get('/api/v1/namespaces/west--default/pods')).json().metadata.resourceVersion
  assert.match(version, /00$/)
  assert.match(ofWest, /^1\d{4}00\d/)
})

test('38: service accounts, nodes and super users are nobody in a member', async () => {
  for (const [commonName, organization] of [
    ['system:serviceaccount:default:default', 'system:serviceaccounts'],
    ['system:node:n1', 'system:nodes'],
    ['admin', 'system:masters'],
  ] as const) {
    const user = userNamed(commonName, [organization])
    const answer = await get(ALL_PODS, { user })
    assert.equal(answer.status, 403, `${commonName}: ${answer.text}`)
  }
})

test('39: a write is for the member to decide, and one that is not handed over is told where it belongs', async () => {
  const answer = await get(`${IN_EAST}/web`, { method: 'DELETE' })
  assert.equal(answer.status, 403, answer.text)
  assert.match(answer.json().message, /User "alice" cannot delete .* in the namespace "default"/)
  const binding = await get(`${IN_EAST}/web/binding`, { method: 'POST', body: {} })
  assert.equal(binding.status, 405, binding.text)
  assert.match(binding.json().message, /\/clusters\/east/)
  assert.equal((await east.request('/api/v1/namespaces/default/pods/web')).status, 200)
})

test('40: versions of other members are 410, and what is none is 400', async () => {
  const version: string = (await get(ALL_PODS)).json().metadata.resourceVersion
  const epoch = Number(version.slice(1, 5))
  const old = `1${String((epoch + 1) % 10_000).padStart(4, '0')}${version.slice(5)}`
  const gone = await get(`${ALL_PODS}?resourceVersion=${old}`)
  assert.deepEqual([gone.status, gone.json().reason], [410, 'Expired'])
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1&resourceVersion=${old}`)
  await waitFor('the end', () => watch.ended)
  assert.deepEqual([watch.events[0]?.type, watch.events[0]?.object.code], ['ERROR', 410])
  for (const bad of ['abc', `1${'0'.repeat(4_000)}`, '-1', `0${version}`])
    assert.equal((await get(`${ALL_PODS}?resourceVersion=${bad}`)).status, 400, bad)
})

test('31: a watch has the changes of both, in order for each, with versions that grow', async () => {
  const version: string = (await get(ALL_PODS)).json().metadata.resourceVersion
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1&resourceVersion=${version}`)
  await waitFor('its beginning', () => watch.status === 200)
  for (let round = 0; round < 20; round++) {
    await Promise.all([labelPod(east, 'web', `e${round}`), labelPod(west, 'web', `w${round}`)])
  }
  await waitFor('all changes', () => watch.lines.length === 40)
  const valuesOf = (namespace: string): string[] =>
    watch.events.flatMap(({ object: { metadata } }) =>
      metadata.namespace === namespace ? [metadata.labels.value] : [],
    )
  assert.deepEqual(
    valuesOf('east--default'),
    Array.from({ length: 20 }, (_, round) => `e${round}`),
  )
  assert.deepEqual(
    valuesOf('west--default'),
    Array.from({ length: 20 }, (_, round) => `w${round}`),
  )
  grows([version, ...seenEvents(watch).map((one) => one.version)])
  watch.stop()
})

test('31: an object has one version, in a watch, in a list and in a get', async () => {
  const watch = watchThrough(
    gateway,
    `${ALL_PODS}?watch=1&resourceVersion=${(await get(ALL_PODS)).json().metadata.resourceVersion}`,
  )
  await waitFor('its beginning', () => watch.status === 200)
  await labelPod(east, 'web', 'one-version')
  await waitFor('the change', () => watch.lines.length === 1)
  const [told] = seenEvents(watch)
  const { items, metadata } = (await get(ALL_PODS)).json()
  assert.equal(items[1].metadata.resourceVersion, told?.version)
  assert.ok((compareResourceVersions(told?.version ?? '', metadata.resourceVersion) ?? 1) <= 0)
  watch.stop()
})

test('31: a watch of a selection is told what enters and leaves it', async () => {
  const path = `${ALL_PODS}?watch=1&labelSelector=value%3Dpicked&resourceVersion=${(await get(ALL_PODS)).json().metadata.resourceVersion}`
  const watch = watchThrough(gateway, path)
  await waitFor('its beginning', () => watch.status === 200)
  await labelPod(east, 'web', 'picked')
  await labelPod(west, 'only-west', 'picked')
  await labelPod(east, 'web', 'no-more')
  await waitFor('three events', () => watch.lines.length === 3)
  const events = seenEvents(watch)
  const of = (name: string): string[] => events.flatMap((one) => (one.name === name ? [one.type] : []))
  assert.deepEqual(of('east--default/web'), ['ADDED', 'DELETED'])
  assert.deepEqual(of('west--default/only-west'), ['ADDED'])
  grows(events.map((one) => one.version))
  watch.stop()
})

test('32: who watched at one replica goes on at another, at any event, and has each later one once', async () => {
  const version: string = (await get(ALL_PODS)).json().metadata.resourceVersion
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1&resourceVersion=${version}`)
  await waitFor('its beginning', () => watch.status === 200)
  for (let round = 0; round < 5; round++)
    await Promise.all([labelPod(east, 'web', `r${round}`), labelPod(west, 'web', `r${round}`)])
  await waitFor('all changes', () => watch.lines.length === 10)
  const key = ({ object: { metadata } }: WatchLines['events'][number]): string =>
    `${metadata.namespace} ${metadata.labels.value}`
  const all = watch.events.map(key)
  for (const [index, event] of watch.events.entries()) {
    const resumed = watchThrough(
      other,
      `${ALL_PODS}?watch=1&resourceVersion=${event.object.metadata.resourceVersion}`,
      alice,
    )
    await waitFor('the rest', () => resumed.lines.length >= all.length - index - 1 && resumed.status === 200)
    assert.deepEqual(resumed.events.map(key).sort(), all.slice(index + 1).sort(), `after ${index}`)
    grows([event.object.metadata.resourceVersion, ...seenEvents(resumed).map((one) => one.version)])
    resumed.stop()
  }
  watch.stop()
})

test('32: a watch that begins with the state has one mark of its end, and goes on', async () => {
  const query = 'watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan'
  const written = await labelPod(west, 'web', 'just-now')
  const watch = watchThrough(gateway, `${ALL_PODS}?${query}`)
  await waitFor('the mark', () => seenEvents(watch).some(({ type }) => type === 'BOOKMARK'))
  const events = watch.events
  assert.deepEqual(
    events.map(({ type }) => type),
    ['ADDED', 'ADDED', 'ADDED', 'ADDED', 'BOOKMARK'],
  )
  assert.equal(events[3]?.object.metadata.labels.value, 'just-now')
  assert.ok(events[3]?.object.metadata.resourceVersion.includes(written))
  assert.equal(events[4]?.object.metadata.annotations['k8s.io/initial-events-end'], 'true')
  await labelPod(east, 'web', 'later')
  await waitFor('the change', () => watch.lines.length === 6)
  grows([events[4]?.object.metadata.resourceVersion, seenEvents(watch)[5]?.version ?? ''])
  watch.stop()
})

test('37: bob watches what is of east, and is shown nothing of west', async () => {
  const refused = watchThrough(gateway, `${ALL_PODS}?watch=1`, bob)
  await waitFor('the refusal', () => refused.status === 403)
  const { metadata } = (await get(IN_EAST, { user: bob })).json()
  const watch = watchThrough(
    gateway,
    `${IN_EAST}?watch=1&allowWatchBookmarks=1&resourceVersion=${metadata.resourceVersion}`,
    bob,
  )
  await waitFor('its beginning', () => watch.status === 200)
  await labelPod(west, 'web', 'hidden')
  await labelPod(east, 'web', 'shown')
  await waitFor('the change', () => watch.lines.length === 1)
  const [line = ''] = watch.lines
  assert.match(line, /shown/)
  assert.match(seenEvents(watch)[0]?.version ?? '', /00$/)
  grows([metadata.resourceVersion, seenEvents(watch)[0]?.version ?? ''])
  watch.stop()
})

test('30: kubectl lists, gets and describes what is of all', async () => {
  const kubeconfig = await kubeconfigThrough(gateway, east, alice, { name: 'all' })
  const run = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await east.kubectl(args, { kubeconfig })
    assert.equal(code, 0, stderr)
    return stdout
  }
  const all = await run('get', 'po', '-A')
  for (const row of [
    /east--default +only-east/,
    /east--default +web/,
    /west--default +only-west/,
    /west--default +web/,
  ])
    assert.match(all, row)
  assert.equal(await run('get', 'pods', '-n', 'west--default', '-o', 'name'), 'pod/only-west\npod/web\n')
  assert.match(await run('describe', 'pod', 'web', '-n', 'east--default'), /portcullis\.io\/cluster: east/)
  assert.match(await run('api-resources'), /pods +po +v1 +true +Pod/)
  const { code, stderr } = await east.kubectl(['delete', 'pod', 'web', '-n', 'east--default'], { kubeconfig })
  assert.equal(code, 1)
  assert.match(stderr, /User "alice" cannot delete resource "pods"/)
})

test('41: pages of a list have each pod once, all of one state, whatever is written in between', async () => {
  const many = (cluster: TestCluster): Promise<string[]> =>
    Promise.all(Array.from({ length: 60 }, (_, at) => createPod(cluster, `page-${String(at).padStart(2, '0')}`)))
  await Promise.all([many(east), many(west)])
  const whole = (await get(ALL_PODS)).json()
  const names = shownNames(whole.items)
  assert.equal(names.length, 124)
  const listed: ShownItem[] = []
  const versions = new Set<string>()
  for (let next = '', page = 0; page === 0 || next !== ''; page++) {
    const answer = await get(`${ALL_PODS}?limit=50${next === '' ? '' : `&continue=${next}`}`)
    assert.equal(answer.status, 200, answer.text)
    const { items, metadata } = answer.json()
    assert.ok(items.length <= 50)
    listed.push(...items)
    versions.add(metadata.resourceVersion)
    next = metadata.continue ?? ''
    await labelPod(east, `page-${String(page + 50).padStart(2, '0')}`, 'meanwhile')
    await labelPod(west, `page-${String(page + 50).padStart(2, '0')}`, 'meanwhile')
    await createPod(west, `new-${page}`)
  }
  assert.deepEqual(shownNames(listed), names)
  assert.equal(versions.size, 1)
  assert.doesNotMatch(JSON.stringify(listed.slice(50)), /meanwhile/)
  const [version = ''] = versions
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1&resourceVersion=${version}`)
  await waitFor('what was written in between', () => watch.lines.length === 9)
  watch.stop()
  const exact = (await get(`${ALL_PODS}?resourceVersionMatch=Exact&resourceVersion=${version}`)).json()
  assert.deepEqual(shownNames(exact.items), names)
  assert.equal(exact.metadata.resourceVersion, version)
  for (const bad of ['x', 'eyJ2IjoxfQ']) assert.equal((await get(`${ALL_PODS}?limit=50&continue=${bad}`)).status, 400)
})

test(
  '36: merged, two pods of one name are both listed, with a Warning, and a get of them is refused',
  PATIENT,
  async () => {
    const one = await startGateway({ clusters: federatedClusters([east, west], { mode: 'merged' }) })
    try {
      await waitFor('what is kept of both', async () => (await readThrough(one, ALL_PODS)).status === 200)
      const listed = await readThrough(one, ALL_PODS)
      const names = shownNames(listed.json().items)
      assert.equal(names.filter((name) => name === 'default/web').length, 2)
      assert.match(String(listed.headers['warning']), /have the same name as an object of another member/)
      const twice = await readThrough(one, '/api/v1/namespaces/default/pods/web')
      assert.deepEqual([twice.status, twice.json().reason], [409, 'Conflict'])
      assert.match(twice.json().message, /"east" and "west"/)
      const single = await readThrough(one, '/api/v1/namespaces/default/pods/only-west')
      assert.equal(single.json().metadata.annotations[ANNOTATION], 'west')
      assert.equal((await readThrough(one, `${ALL_PODS}?watch=1`)).status, 422)
      assert.equal((await readThrough(one, '/api/v1/namespaces/default/pods', { user: bob })).status, 403)
    } finally {
      await one.stop()
    }
  },
)

test('39: a HEAD is refused', async () => {
  assert.equal((await get(ALL_PODS, { method: 'HEAD' })).status, 405)
})

test('37: what the UpstreamCluster of a member would refuse is refused here', PATIENT, async () => {
  const clusters = federatedClusters([east, west])
  const westObject = clusters.find(({ metadata }) => metadata.name === 'west')
  assert.ok(westObject !== undefined)
  const one = await startGateway({ clusters })
  const allowed = (): Promise<unknown> =>
    waitFor('what is kept of both', async () => (await readThrough(one, ALL_PODS)).status === 200)
  const refuses = async (spec: Partial<UpstreamClusterSpec>): Promise<void> => {
    one.write(westObject)
    await allowed()
    one.write({ ...westObject, spec: { ...westObject.spec, ...spec } })
    await waitFor('the refusal', async () => (await readThrough(one, ALL_PODS)).status === 403)
    assert.equal((await readThrough(one, '/api/v1/namespaces/east--default/pods')).status, 200)
  }
  try {
    await allowed()
    await refuses({ degrade: { mode: 'Freeze', reason: 'an incident' } })
    await refuses({ authentication: { revoked: [{ user: 'alice', reason: 'left' }] } } as Partial<UpstreamClusterSpec>)
    await refuses({ dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['nodes'] }] }] })
    one.write(westObject)
    await allowed()
    const watch = watchThrough(one, `${ALL_PODS}?watch=1`)
    await waitFor('its state', () => watch.lines.length > 0)
    await refuses({ accessControl: { deny: [{ name: 'no-alice', users: ['alice'] }] } })
    await waitFor('the end of the watch', () => watch.ended)
  } finally {
    await one.stop()
  }
})

test('37: a right that is taken away in one member ends reads, and open watches', PATIENT, async () => {
  const watch = watchThrough(gateway, `${ALL_PODS}?watch=1`)
  await waitFor('its state', () => watch.lines.length > 0)
  const { code, stderr } = await west.kubectl(['delete', 'clusterrolebinding', 'pod-reader'])
  assert.equal(code, 0, stderr)
  await waitFor('the refusal', async () => (await get(ALL_PODS)).status === 403)
  await waitFor('the end of the watch', () => watch.ended)
  assert.equal((await get(IN_EAST)).status, 200)
})
