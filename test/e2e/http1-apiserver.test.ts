// A real kube-apiserver that speaks HTTP/1.1 only: kubectl works through the gateway as it does with HTTP/2.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { kubectl, startKubectl } from '../harness/kubectl/kubectl.ts'

const LARGE_BYTES = 900_000
const LISTS = 20

let cluster: TestCluster
let gateway: TestGateway
let kubeconfig: string

before(async () => {
  cluster = await startCluster({ extraApiserverFlags: ['--disable-http2-serving'] })
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)] })
  kubeconfig = await kubeconfigThrough(gateway, cluster, { cert: cluster.admin.cert })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function run(args: readonly string[], stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await kubectl(args, { kubeconfig, ...(stdin !== undefined && { stdin }) })
  assert.equal(code, 0, stderr)
  return stdout
}

function configMap(name: string, data: Readonly<Record<string, string>>): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })
}

test('it does not negotiate h2', async () => {
  const port = cluster.apiservers[0]?.port ?? 0
  const socket = connect({ host: '127.0.0.1', port, ca: cluster.ca.certPem, ALPNProtocols: ['h2', 'http/1.1'] })
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  assert.equal(socket.alpnProtocol, 'http/1.1')
  socket.destroy()
})

test('writes, large and small, and reads of what was written', async () => {
  await run(['create', '-f', '-'], configMap('small', { a: 'b' }))
  await run(['create', '-f', '-'], configMap('large', { text: 'x'.repeat(LARGE_BYTES) }))
  await run(['patch', 'configmap', 'small', '--type=merge', '-p', '{"data":{"a":"c"}}'])
  assert.equal(await run(['get', 'configmap', 'small', '-o', 'jsonpath={.data.a}']), 'c')
  assert.equal((await run(['get', 'configmap', 'large', '-o', 'jsonpath={.data.text}'])).length, LARGE_BYTES)
})

test('large lists at the same time', async () => {
  const lists = await Promise.all(Array.from({ length: LISTS }, () => run(['get', '--raw', '/api/v1/configmaps'])))
  for (const list of lists) assert.ok(JSON.parse(list).items.length >= 2)
})

test('a watch, beside other requests', async () => {
  const watch = await startKubectl(['get', 'configmaps', '-w', '-o', 'name'], { kubeconfig })
  try {
    await watch.output(/configmap\/small/)
    for (let i = 0; i < 3; i++) {
      await run(['create', 'configmap', `watched-${i}`])
      await watch.output(new RegExp(`configmap/watched-${i}`))
    }
  } finally {
    await watch.stop()
  }
})

test('an error is the error of the API server, and a deletion ends what there was', async () => {
  const missing = await kubectl(['get', 'configmap', 'missing'], { kubeconfig })
  assert.match(missing.stderr, /configmaps "missing" not found/)
  await run(['delete', 'configmap', 'small'])
  const gone = await kubectl(['get', 'configmap', 'small'], { kubeconfig })
  assert.match(gone.stderr, /not found/)
})
