// What a user sees of spec.cache, on a real kube-apiserver: the states of resources in the status, with the mistakes that an operator makes, each of
// them without harm to the others; columns and commands; custom resources; and how old what is answered may be.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAllDocuments, stringify } from 'yaml'
import type { Json } from '../harness/clients/control-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { type KubeResponse, kubeRequest } from '../harness/clusters/kube-request.ts'
import { hostOf, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { type EmbeddedGateway, runCli, startEmbedded, UC_PATH } from '../harness/gateways/embedded.ts'
import { gatewayCA } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const WIDGETS = '/apis/example.com/v1/widgets'
const PODS = '/api/v1/pods'
const CRD = stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { color: { type: 'string' } } } },
          },
        },
        selectableFields: [{ jsonPath: '.spec.color' }],
      },
    ],
  },
})

/** deploy/rbac/read-cache.yaml, with the custom resource named beside pods. */
function rbac(...more: readonly object[]): string {
  const text = readFileSync(join(import.meta.dirname, '../../deploy/rbac/read-cache.yaml'), 'utf8')
  const [role, binding] = parseAllDocuments(text).map((document) => document.toJS())
  return [{ ...role, rules: [...role.rules, ...more] }, binding].map((one) => `---\n${stringify(one)}`).join('')
}
/** A cluster authorizes before it looks whether there is such a resource. */
const FOR_WIDGETS = { apiGroups: ['example.com'], resources: ['widgets', 'gadgets'], verbs: ['list', 'watch'] }
const WIDGET_ENTRY = { group: 'example.com', version: 'v1', resource: 'widgets', maxStaleness: '1h' }
const POD_ENTRY = { version: 'v1', resource: 'pods', maxStaleness: '100ms' }

let cluster: TestCluster
let embedded: EmbeddedGateway

before(async () => {
  cluster = await startCluster({})
  await cluster.apply(`${CRD}---\n${rbac(FOR_WIDGETS)}`)
  await waitFor('the custom resource', async () => (await cluster.request(WIDGETS)).status === 200)
  for (const [name, color] of [
    ['a', 'red'],
    ['b', 'blue'],
  ]) {
    const body = {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name, labels: { color } },
      spec: { color },
    }
    const path = '/apis/example.com/v1/namespaces/default/widgets'
    assert.equal((await cluster.request(path, { method: 'POST', body })).status, 201)
  }
  embedded = await startEmbedded({ args: ['--replica-name=replica-1'] })
  await embedded.apply(upstreamClusterFor(cluster, { spec: { cache: [POD_ENTRY, WIDGET_ENTRY] } }))
  await waitFor('the cache', async () => (await ready()).reason === 'Serving')
})
after(async () => {
  await embedded?.stop()
  await cluster?.stop()
})

async function statusOf(): Promise<Json> {
  return (await embedded.admin.get(`${UC_PATH}/${cluster.name}`)).json.status ?? {}
}

async function condition(type: string): Promise<Json> {
  const conditions: readonly Json[] = (await statusOf()).conditions ?? []
  return conditions.find((one) => one.type === type) ?? {}
}

const ready = (): Promise<Json> => condition('ReadCacheReady')

interface Answer extends KubeResponse {
  /** It came from the cache. */
  readonly hit: boolean
}

async function through(path: string): Promise<Answer> {
  const answer = await kubeRequest({
    server: `https://127.0.0.1:${embedded.gateway.port}`,
    serverName: hostOf(cluster.name),
    ca: gatewayCA().certPem,
    user: cluster.admin,
    path,
  })
  const id = answer.headers['audit-id']
  const [line] = await embedded.gateway.logged(({ auditID }) => auditID === id)
  return { ...answer, hit: answer.status === 200 && (line?.['endpoint'] ?? '') === '' }
}

/** What the status says of a resource. */
async function stateOf(resource: string): Promise<Json> {
  const resources: readonly Json[] = (await statusOf()).cache?.resources ?? []
  return resources.find((one) => one.resource === resource) ?? {}
}

test('custom resources are answered as the cluster answers them; selectors for their own fields are forwarded', async () => {
  for (const query of ['', '&labelSelector=color%3Dred', '&fieldSelector=metadata.name%3Db']) {
    const path = `${WIDGETS}?resourceVersion=0${query}`
    const answer = await through(path)
    const direct = await cluster.request(path)
    const withoutVersion = (text: string): string => text.replace(/"metadata":\{"resourceVersion":"\d+"/, '')
    assert.equal(answer.hit, true, path)
    assert.equal(withoutVersion(answer.text), withoutVersion(direct.text), path)
  }
  const selected = await through(`${WIDGETS}?resourceVersion=0&fieldSelector=spec.color%3Dred`)
  assert.deepEqual([selected.hit, selected.json().items.length], [false, 1])
})

test('what is kept is in the status, in columns of kubectl and in top', async () => {
  for (let i = 0; i < 20; i++) await through(`${WIDGETS}?resourceVersion=0`)
  await through(`${WIDGETS}?resourceVersion=0&fieldSelector=spec.color%3Dred`)
  const widgets = await waitFor(
    'the numbers',
    async () => {
      const one = await stateOf('widgets.example.com')
      return one.hits >= 20 && one.passes.selector >= 1 ? one : undefined
    },
    { timeoutMs: 90_000 },
  )
  assert.deepEqual(
    [widgets.state, widgets.version, widgets.objects, widgets.age],
    ['Serving', 'v1', 2, '<2m'],
    JSON.stringify(widgets),
  )
  const { cache, gateways } = await statusOf()
  assert.deepEqual([cache.serving, gateways[0].cache.length], ['2/2', 2])
  const wide = await embedded.succeed(['get', 'uc', '-o', 'wide'])
  assert.match(wide, /DEGRADE +CACHE +AGE +CACHE-HITS +CACHE-BYTES +CACHE-AGE/)
  assert.match(wide, / Serving +\S+ +\d+ +\d+(\.\d)?Ki +<2m /)
  const { stdout } = await runCli(['top', '--admin', `http://127.0.0.1:${embedded.gateway.adminPort}`, '--once'])
  assert.match(
    stdout,
    new RegExp(`^read cache of ${cluster.name}: \\d+ hits of \\d+ reads \\(\\d+ %\\), 2 objects, .* old$`, 'm'),
  )
})

test('a resource that the cluster does not have, or does not let be followed, is named with what to do; the others are served', async () => {
  const cache = [
    POD_ENTRY,
    WIDGET_ENTRY,
    { group: 'example.com', version: 'v2', resource: 'gadgets' },
    { version: 'v1', resource: 'configmaps' },
  ]
  await embedded.patch(cluster.name, { spec: { cache } })
  await waitFor('the states', async () => (await stateOf('configmaps')).state === 'Refused')
  const wrong = await waitFor('the condition', async () => {
    const one = await ready()
    return one.reason === 'UnknownResource' && one.message.includes('configmaps') ? one : undefined
  })
  assert.equal(wrong.status, 'False')
  assert.match(
    wrong.message,
    /spec\.cache\[2\]: the cluster has no gadgets\.example\.com of version v2; write group, version and resource/,
  )
  assert.match(
    wrong.message,
    /spec\.cache\[3\]: .*configmaps.*403.*let the user portcullis-cache list and watch it, as in deploy\/rbac/,
  )
  // The rights of that user are checked, too, and lacking them stops no request.
  const credentials = await waitFor('the rights', async () => {
    const one = await condition('CredentialsValid')
    return one.reason === 'Forbidden' ? one : undefined
  })
  assert.match(
    credentials.message,
    /the user portcullis-cache, .* may not list configmaps; may not watch configmaps: name them in deploy\/rbac\/read-cache\.yaml/,
  )
  assert.equal((await condition('Ready')).status, 'True')
  assert.equal((await through(`${WIDGETS}?resourceVersion=0`)).hit, true)
  assert.deepEqual(
    [(await through('/api/v1/configmaps?resourceVersion=0')).status, (await stateOf('pods')).state],
    [200, 'Serving'],
  )

  await cluster.apply(rbac(FOR_WIDGETS, { apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] }))
  await waitFor('configmaps', async () => (await stateOf('configmaps')).state === 'Serving')
  await embedded.patch(cluster.name, { spec: { cache: [POD_ENTRY, WIDGET_ENTRY] } })
  await waitFor('all', async () => (await ready()).reason === 'Serving')
  assert.equal((await statusOf()).cache.serving, '2/2')
})

test('bad values are refused by the gateway, with the place and what to write; what was in force stays', async () => {
  const refusals: readonly (readonly [object[], RegExp])[] = [
    [
      [POD_ENTRY, { ...POD_ENTRY, group: '' }],
      /spec\.cache\[1\].*is the same resource as spec\.cache\[0\]; remove one/,
    ],
    [[{ ...POD_ENTRY, maxBytes: '512Ki' }], /spec\.cache\[0\]\.maxBytes.*"512Ki" is too little.*write at least 4Mi/],
    [[{ ...POD_ENTRY, maxStaleness: 'ten seconds' }], /spec\.cache\[0\]\.maxStaleness/],
    [[{ ...POD_ENTRY, resource: 'pods/log' }], /spec\.cache\[0\]\.resource.*subresource/],
  ]
  for (const [cache, text] of refusals) {
    const patch = JSON.stringify({ spec: { cache } })
    const { code, stderr } = await embedded.kubectl(['patch', 'uc', cluster.name, '--type=merge', '-p', patch])
    assert.equal(code, 1)
    assert.match(stderr, text)
  }
  assert.equal((await through(`${WIDGETS}?resourceVersion=0`)).hit, true)
})

test('while it cannot be followed, any age is answered for maxStaleness and no longer', {
  timeout: 180_000,
}, async () => {
  const [apiserver] = cluster.apiservers
  assert.ok(apiserver)
  const refused = { apiGroups: ['none.example.com'], resources: ['none'], verbs: ['list'] }
  const [role, binding] = parseAllDocuments(rbac()).map((document) => document.toJS())
  await cluster.apply([{ ...role, rules: [refused] }, binding].map((one) => `---\n${stringify(one)}`).join(''))
  // Its watches end, and may not begin again.
  await apiserver.restart()
  await waitFor('the refusal', async () => (await stateOf('pods')).state === 'Refused', { timeoutMs: 60_000 })
  await waitFor('pods to be forwarded', async () => {
    const { status, hit } = await through(`${PODS}?resourceVersion=0`)
    return status === 200 && !hit
  })
  const written = await cluster.request('/apis/example.com/v1/namespaces/default/widgets/a', {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { spec: { color: 'green' } },
  })
  assert.equal(written.status, 200)
  const old = await through(`${WIDGETS}?resourceVersion=0`)
  assert.deepEqual([old.hit, old.json().items[0].spec.color], [true, 'red'])
  // A read of what is current gets that, and one that names a later version nothing older.
  const current = await through(WIDGETS)
  assert.deepEqual([current.hit, current.json().items[0].spec.color], [false, 'green'])
  const since = await through(`${WIDGETS}?resourceVersion=${written.json().metadata.resourceVersion}`)
  assert.deepEqual([since.hit, since.json().items[0].spec.color], [false, 'green'])
  await cluster.apply(rbac(FOR_WIDGETS))
  await waitFor(
    'the cache again',
    async () => {
      const { hit, json } = await through(`${WIDGETS}?resourceVersion=0`)
      return hit && json().items[0].spec.color === 'green'
    },
    { timeoutMs: 60_000 },
  )
  await waitFor('the condition', async () => (await ready()).reason === 'Serving')
})

test('explain says that the cache is asked', async () => {
  const { stdout, code } = await runCli([
    'explain',
    '--kubeconfig',
    embedded.kubeconfig,
    '--host',
    hostOf(cluster.name),
    '--user',
    'alice',
    'GET',
    `${PODS}?resourceVersion=0`,
  ])
  assert.equal(code, 0, stdout)
  assert.match(stdout, /read cache/)
})
