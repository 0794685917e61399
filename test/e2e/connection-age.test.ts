// kubectl and client-go on a real kube-apiserver while the gateway asks for new connections all the time: no client notices.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { startKubectl } from '../harness/kubectl/kubectl.ts'
import { waitFor } from '../harness/wait.ts'

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
/** Pods that a controller makes. */
const REPLICAS = 10
/** New connections of each client until the test has seen enough. */
const MOVES = 5

let cluster: TestCluster
let gateway: TestGateway

before(async () => {
  cluster = await startCluster({ apiservers: 1 })
  const args = ['--max-connection-age=1s', '--goaway-chance=0.02']
  gateway = await startGateway({ clusters: [upstreamClusterFor(cluster)], args })
})
after(async () => {
  await gateway?.stop()
  await cluster?.stop()
})

async function drained(reason: string): Promise<number> {
  const pattern = new RegExp(`portcullis_client_connections_drained_total\\{reason="${reason}"\\} (\\d+)`)
  return Number(pattern.exec(await gateway.metrics())?.[1] ?? 0)
}

test('kubectl get -w sees every event, and writers on ever new connections no error', async () => {
  const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.admin)
  const first = await cluster.kubectl(['create', 'configmap', 'first'], { kubeconfig })
  assert.equal(first.code, 0, first.stderr)
  const watch = await startKubectl(['get', 'configmaps', '-w', '-o', 'name'], { kubeconfig, timeoutMs: 240_000 })
  await watch.output(/first/)
  const connect = (): ReturnType<typeof h2Connect> =>
    h2Connect({ port: gateway.port, serverName: hostOf(cluster.name), certificate: cluster.admin.cert })
  let session = connect()
  let moves = 0
  let usable = true
  const listen = (): void => void session.once('goaway', () => (usable = false))
  listen()
  const written: string[] = []
  while (moves < MOVES || (await drained('age')) < 2) {
    if (!usable) {
      session = connect()
      usable = true
      moves++
      listen()
    }
    const name = `moved-${written.length}`
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }
    const head = [':method', 'POST', ':path', CONFIGMAPS, 'content-type', 'application/json']
    head.push(':authority', `${hostOf(cluster.name)}:${gateway.port}`)
    assert.equal((await h2Request(session, head, Buffer.from(JSON.stringify(object)))).status, 201)
    written.push(`configmap/${name}`)
    assert.ok(written.length < 5_000, 'no client was asked to move')
  }
  session.destroy()
  const last = written.at(-1) ?? ''
  await waitFor('the last event', () => watch.stdout().includes(`${last}\n`))
  const seen = watch
    .stdout()
    .split('\n')
    .filter((line) => line.startsWith('configmap/moved-'))
  assert.deepEqual(seen, written)
  const { stderr } = await watch.stop()
  assert.equal(stderr, '')
})

test('kube-controller-manager works through it, and none of its informers loses a watch', async () => {
  const admin = { kubeconfig: await kubeconfigThrough(gateway, cluster, cluster.admin) }
  const kubeconfig = await kubeconfigThrough(gateway, cluster, cluster.componentUser('kube-controller-manager'))
  const manager = await cluster.startControllerManager({ kubeconfig })
  const pods = async (): Promise<number> => {
    const { stdout } = await cluster.kubectl(['get', 'pods', '-o', 'name'], admin)
    return stdout.split('\n').filter((line) => line.startsWith('pod/web-')).length
  }
  const created = await cluster.kubectl(['create', 'deployment', 'web', '--image=web', `--replicas=${REPLICAS}`], admin)
  assert.equal(created.code, 0, created.stderr)
  for (const replicas of [REPLICAS, 2, REPLICAS]) {
    const before = await drained('age')
    const scaled = await cluster.kubectl(['scale', 'deployment', 'web', `--replicas=${replicas}`], admin)
    assert.equal(scaled.code, 0, scaled.stderr)
    await waitFor(`${replicas} pods`, async () => (await pods()) === replicas)
    await waitFor('connections that move', async () => (await drained('age')) >= before + 3)
  }
  assert.equal(manager.running, true)
  const lost = manager
    .log()
    .split('\n')
    .filter((line) => /reflector.*(ended with|Failed to watch)|leaderelection lost/.test(line))
  assert.deepEqual(lost, [])
})
