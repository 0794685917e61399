// The read cache of custom resources whose definition changes: kube-apiserver then writes objects in other words without a write, with the
// resourceVersion that they had.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { cacheResults, cacheStates, grantCacheUser, through, watchThrough } from '../harness/clusters/read-cache.ts'
import { upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const WIDGETS = '/apis/example.com/v1/widgets'
const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com'
const CACHED = [{ group: 'example.com', version: 'v1', resource: 'widgets' }]
const MERGE = { 'content-type': 'application/merge-patch+json' }

let cluster: TestCluster
let gateway: TestGateway

/** @param scope of its objects @param color the default of a field */
function definition(scope: 'Namespaced' | 'Cluster', color?: string): string {
  const properties = { spec: { type: 'object', properties: { color: { type: 'string', default: color } } } }
  return stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope,
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties } } },
      ],
    },
  })
}

before(async () => {
  cluster = await startCluster()
  await cluster.apply(definition('Namespaced'))
  await grantCacheUser(cluster, CACHED)
  await create('/apis/example.com/v1/namespaces/default/widgets', 'a')
  await create('/apis/example.com/v1/namespaces/default/widgets', 'b')
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster, { spec: { cache: CACHED } })] })
  await waitFor('the cache', async () => (await cacheStates(gateway)).every(({ resourceVersion }) => resourceVersion))
}, PATIENT)
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function create(path: string, name: string): Promise<void> {
  await waitFor(`${path} to be served`, async () => {
    const body = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name }, spec: {} }
    return (await cluster.request(path, { method: 'POST', body })).status === 201
  })
}

const hits = async (): Promise<number> => (await cacheResults(gateway))['hit'] ?? 0
const items = (text: string): unknown => JSON.parse(text).items

/**
 * Until the gateway answers itself, and as the cluster does. Three lists at once: one of a small collection alone is proved only if nothing at all was
 * written since the last event or bookmark, those behind it by a list of the cluster.
 */
async function sameLists(query: string): Promise<void> {
  await waitFor(`lists${query} as the cluster has them`, async () => {
    const before = await hits()
    const answers = await Promise.all([1, 2, 3].map(() => through(gateway, cluster, WIDGETS + query)))
    const direct = items((await cluster.request(WIDGETS + query)).text)
    if (answers.some(({ status }) => status !== 200) || (await hits()) === before) return false
    return answers.every(({ text }) => isDeepStrictEqual(items(text), direct))
  })
}

test('a default that is added is in what the cache answers, too', PATIENT, async () => {
  await sameLists('?resourceVersion=0')
  const [one] = (await cluster.request(WIDGETS)).json().items
  const version = one.metadata.resourceVersion
  const open = watchThrough(gateway, cluster, `${WIDGETS}?watch=1&resourceVersion=${version}`)
  await cluster.apply(definition('Namespaced', 'red'))
  await waitFor('the default', async () => (await cluster.request(WIDGETS)).text.includes('"color":"red"'))
  for (const query of ['?resourceVersion=0', `?resourceVersion=${version}`, '']) await sameLists(query)
  const [now] = (await through(gateway, cluster, `${WIDGETS}?resourceVersion=0`)).json().items
  assert.deepEqual([now.spec.color, now.metadata.resourceVersion], ['red', version])
  // Its client has the old words: it lists again, as it would without a gateway.
  await waitFor('the end of the watch', () => open.ended)
})

test('a definition that is deleted and made again with another scope', PATIENT, async () => {
  assert.equal((await cluster.request(DEFINITION, { method: 'DELETE' })).status, 200)
  await waitFor('the end of the definition', async () => (await cluster.request(DEFINITION)).status === 404)
  await waitFor('404 for lists of any age', async () => {
    return (await through(gateway, cluster, `${WIDGETS}?resourceVersion=0`)).status === 404
  })
  await cluster.apply(definition('Cluster'))
  await create(WIDGETS, 'c')
  await sameLists('?resourceVersion=0')
  const { status } = await through(
    gateway,
    cluster,
    '/apis/example.com/v1/namespaces/default/widgets?resourceVersion=0',
  )
  assert.equal(status, 404)
  const { status: written } = await cluster.request(`${WIDGETS}/c`, {
    method: 'PATCH',
    headers: MERGE,
    body: { metadata: { labels: { x: 'y' } } },
  })
  assert.equal(written, 200)
  await sameLists('')
})
