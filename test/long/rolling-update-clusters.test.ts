// A rolling update of three replicas in front of real kube-apiservers, behind HAProxy: reads, watches of an object that changes all the
// time, and kubectl with what it does by itself.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBalancer } from '../harness/balancers/haproxy.ts'
import { RestartTraffic, ResumedWatch } from '../harness/clients/restart-traffic.ts'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { hostOf, kubeconfigThrough, upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { type KubectlResult, SPDY } from '../harness/kubectl/kubectl.ts'
import { freePorts } from '../harness/ports.ts'
import { waitFor } from '../harness/wait.ts'

const REPLICAS = 3
const WATCHES = 10
const RATE = 500
const CHANGE_MS = 50
const MAPS = '/api/v1/namespaces/default/configmaps'
const COUNTER = `${MAPS}/counter`

/** An object with a number in it that is one more all the time. */
class Counter {
  readonly #cluster: TestCluster
  number = 0
  since = 0
  #running = true
  #done: Promise<void> | undefined

  constructor(cluster: TestCluster) {
    this.#cluster = cluster
  }

  async start(): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'counter' }, data: { number: '0' } }
    const answer = await this.#cluster.request(MAPS, { method: 'POST', body })
    assert.equal(answer.status, 201, answer.text)
    this.since = Number(answer.json().metadata.resourceVersion)
    this.#done = this.#run()
  }

  async #run(): Promise<void> {
    while (this.#running) {
      const body = { data: { number: String(this.number + 1) } }
      const headers = { 'content-type': 'application/merge-patch+json' }
      const answer = await this.#cluster.request(COUNTER, { method: 'PATCH', headers, body })
      assert.equal(answer.status, 200, answer.text)
      this.number++
      await sleep(CHANGE_MS)
    }
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
  }
}

/** kubectl again and again; a failure counts unless `excused` held at some moment of it. */
class KubectlLoop {
  runs = 0
  excused = 0
  readonly failures: string[] = []
  #running = true
  readonly #done: Promise<void>

  constructor(run: () => Promise<KubectlResult>, isFine: (result: KubectlResult) => boolean, drains: () => number) {
    this.#done = this.#run(run, isFine, drains)
  }

  async #run(
    run: () => Promise<KubectlResult>,
    isFine: (result: KubectlResult) => boolean,
    drains: () => number,
  ): Promise<void> {
    while (this.#running) {
      const before = drains()
      const result = await run()
      this.runs++
      if (isFine(result)) continue
      // Odd while a replica drains.
      if (before % 2 === 1 || drains() !== before) this.excused++
      else this.failures.push(`${new Date().toISOString()} ${result.code} ${result.stdout} ${result.stderr}`)
    }
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
  }
}

test('no request fails, no event is lost or comes twice; kubectl notices nothing, exec only a drain', async (t) => {
  const components = { controllerManager: true, kwok: true, kubelet: true }
  const cluster = await startCluster({ apiservers: 2, nodes: 1, ...components })
  const container = { name: 'c', image: 'c:1' }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'target' } }
  await cluster.apply(JSON.stringify({ ...pod, spec: { nodeName: 'node-0', containers: [container] } }))
  const ready = await cluster.kubectl(['wait', 'pod/target', '--for=condition=Ready'])
  assert.equal(ready.code, 0, ready.stderr)

  const ports = await freePorts(2 * REPLICAS)
  const servers = Array.from({ length: REPLICAS }, (_, i) => {
    return { name: `replica-${i}`, port: ports[2 * i] ?? 0, healthPort: ports[2 * i + 1] ?? 0 }
  })
  const start = ({ port, healthPort }: { port: number; healthPort: number }): Promise<TestGateway> => {
    const args = [`--health-listen=127.0.0.1:${healthPort}`, '--shutdown-delay=1h']
    const clusters = [upstreamClusterFor(cluster, { spec: { logging: { mode: 'off' } } })]
    return startGateway({ clusters, own: `127.0.0.1:${port}`, args, drainTimeout: '5s', readyTimeoutMs: 120_000 })
  }
  const running = await Promise.all(servers.map(start))
  const balancer = await startBalancer(servers)
  const counter = new Counter(cluster)
  t.after(async () => {
    await counter.stop()
    await balancer.stop()
    await Promise.all(running.map((gateway) => gateway.stop('SIGKILL')))
    await cluster.stop()
  })
  const isUp = (name: string) => async () => (await balancer.stateOf(name)).startsWith('UP')
  for (const { name } of servers) await waitFor(`${name} to be up`, isUp(name))
  await counter.start()

  const { cert: certificate } = cluster.admin
  const at = { port: balancer.port, serverName: hostOf(cluster.name), certificate }
  const traffic = new RestartTraffic({
    ...at,
    requestsPerSecond: RATE,
    sessions: 9,
    freshEvery: 20,
    path: COUNTER,
    authority: `${hostOf(cluster.name)}:${balancer.port}`,
  })
  const path = `${MAPS}?fieldSelector=metadata.name%3Dcounter&watch=1&resourceVersion=`
  const watches = Array.from({ length: WATCHES }, () => {
    return new ResumedWatch({
      ...at,
      path,
      since: counter.since,
      authority: `${hostOf(cluster.name)}:${balancer.port}`,
    })
  })
  const kubeconfig = await kubeconfigThrough(balancer, cluster, cluster.admin)
  let drains = 0
  const get = () => cluster.kubectl(['get', 'configmap', 'counter', '-o', 'name'], { kubeconfig })
  const shell = ['exec', 'target', '--', 'sh', '-c', 'echo out; exit 4']
  const isAnswered = ({ code, stdout }: KubectlResult): boolean => code === 4 && stdout === 'out\n'
  traffic.start()
  for (const watch of watches) watch.start()
  const gets = new KubectlLoop(
    get,
    ({ code }) => code === 0,
    () => 0,
  )
  const execs = [{}, SPDY].map(
    (env) =>
      new KubectlLoop(
        () => cluster.kubectl(shell, { kubeconfig, env }),
        isAnswered,
        () => drains,
      ),
  )
  for (const [i, server] of servers.entries()) {
    const before = traffic.counted.served
    await waitFor('traffic', () => traffic.counted.served > before + RATE)
    const gateway = running[i]
    assert.ok(gateway)
    gateway.signal('SIGTERM')
    await waitFor(`${server.name} to be down`, async () => (await balancer.stateOf(server.name)) === 'DOWN')
    drains++
    gateway.signal('SIGTERM')
    assert.equal(await gateway.exited, 0)
    await gateway.stop()
    drains++
    running[i] = await start(server)
    await waitFor(`${server.name} to be up`, isUp(server.name))
  }
  const last = counter.number
  await waitFor('all events', () => watches.every(({ seen }) => (seen.at(-1) ?? 0) >= last))
  await Promise.all([gets, ...execs].map((loop) => loop.stop()))
  for (const watch of watches) await watch.stop()
  const { served, repeated, moved, failures } = await traffic.stop()
  const resumed = watches.reduce((sum, watch) => sum + watch.resumed, 0)
  t.diagnostic(
    `requests: ${served} served, ${repeated} repeated, ${failures.length} failed; ${moved} connections moved`,
  )
  t.diagnostic(`${last} events for each of ${WATCHES} watches, ${resumed} resumed`)
  t.diagnostic(`kubectl: ${gets.runs} gets, ${execs.map(({ runs, excused }) => `${runs} execs (${excused} cut off)`)}`)
  assert.deepEqual(failures, [])
  for (const { failures: failed } of [gets, ...execs]) assert.deepEqual(failed, [])
  assert.ok(moved > 0 && resumed > 0, 'the update was noticed')
  for (const { seen, failures: broken } of watches) {
    assert.deepEqual(broken, [])
    assert.deepEqual(
      seen,
      seen.map((_, i) => i + 1),
      'each event once, in order',
    )
  }
})
