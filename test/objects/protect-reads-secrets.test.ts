// `protect why` and `scale why` read a pod with the credential of its UpstreamCluster: by the rule for which UpstreamClusters a Secret is
// released to, as the gateway. Otherwise a user who may edit one object had the tokens that the user of the command may read.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { PODS } from '../../src/kube/api/kinds/foreign-kinds.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import { readByDefault } from '../../src/protection/cli/pod.ts'
import { base64 } from '../harness/clusters/kubeconfig.ts'
import { MemoryObjects } from '../harness/objects/memory-objects.ts'
import { type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-1', namespace: 'shop', uid: 'u' } }
const tokens: string[] = []
let stub: StubUpstream
let home: string
const { KUBECONFIG } = process.env

before(async () => {
  home = mkdtempSync(join(tmpdir(), 'portcullis-'))
  // The way of kubectl leads nowhere.
  process.env['KUBECONFIG'] = join(home, 'none')
  stub = await startStub(0, {}, '127.0.0.1', ({ headers }, response) => {
    tokens.push(String(headers.authorization))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(POD))
  })
})
after(async () => {
  if (KUBECONFIG === undefined) delete process.env['KUBECONFIG']
  else process.env['KUBECONFIG'] = KUBECONFIG
  await stub.stop()
  rmSync(home, { recursive: true, force: true })
})

interface Told {
  readonly namespace?: string
  readonly name?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
}

/** The pod by UpstreamCluster `evil`, whose editor has named a Secret and other servers. @returns how, or why not */
async function read({ namespace = 'portcullis-system', name = 'prod', annotations = {}, labels = {} }: Told) {
  tokens.length = 0
  const objects = new MemoryObjects()
  const data = { token: base64('prod-token') }
  objects.put(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, annotations, labels }, data })
  objects.put(UPSTREAM_CLUSTERS, {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'evil' },
    spec: {
      servers: [{ endpoint: stub.url }],
      clientConfig: { insecure: true, bearerTokenRef: { namespace, name, key: 'token' } },
      dispatchPolicies: [],
    },
  })
  const reading = { what: 'pod shop/web-1', upstream: 'evil', through: [], kubeconfig: join(home, 'none') }
  return await readByDefault(objects, reading, (client) => client.get(PODS, { namespace: 'shop', name: 'web-1' })).then(
    ({ by }) => by,
    (error: Error) => error.message,
  )
}

const named = (names: string): Told => ({ annotations: { 'portcullis.io/usable-by': names } })
const LABELLED = { labels: { 'portcullis.io/usable-by-gateway': 'true' } }

test('a Secret of another cluster is not sent to servers of the one that names it', async () => {
  const refused: readonly Told[] = [
    named('prod'),
    named(''),
    named('*'),
    { ...named('prod'), ...LABELLED },
    { ...named('prod'), ...LABELLED, namespace: 'team-a' },
    { namespace: 'kube-system' },
    { ...named('evil'), name: 'portcullis-control-ca' },
  ]
  for (const told of refused) {
    const message = await read(told)
    assert.match(message, /as the gateway, at https:\S+: Secret [\w/-]+ may not be used/, JSON.stringify(told))
    assert.deepEqual(tokens, [])
  }
})

test('one that is released to it is, also as long as it is released to all', async () => {
  for (const told of [
    named('prod,evil'),
    { ...named('evil'), namespace: 'team-a' },
    {},
    { ...LABELLED, namespace: 'b' },
  ]) {
    assert.equal(await read(told), `as the gateway, at ${stub.url}`, JSON.stringify(told))
    assert.deepEqual(tokens, ['Bearer prod-token'])
  }
})
