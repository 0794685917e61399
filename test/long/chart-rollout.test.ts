// A rolling restart of the chart's Deployment: two replicas are replaced, one at a time, as its strategy says, behind a balancer that goes by
// their readiness probes.

import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster, type TestCluster } from '../harness/clusters/cluster.ts'
import { kubeRequest } from '../harness/clusters/kube-request.ts'
import { upstreamClusterFor } from '../harness/clusters/upstream-cluster.ts'
import { startContainer, type TestContainer } from '../harness/install/container.ts'
import { type KubeObject, podOf, render } from '../harness/install/helm.ts'
import { freePorts } from '../harness/ports.ts'
import { waitFor } from '../harness/wait.ts'

const CLIENTS = 4
/** A balancer notices readiness a moment later, and later than the probe here. */
const PROBE_MS = 200

let cluster: TestCluster

before(async () => {
  cluster = await startCluster({ name: 'rollout', controllerManager: true })
})

after(() => cluster.stop())

/** Passes connections on to ready replicas in turn; open ones stay where they are. */
class Balancer {
  readonly #ready = new Set<string>()
  readonly #port: number
  readonly #sockets = new Set<Socket>()
  #turn = 0
  readonly #server = createServer({ allowHalfOpen: true }, (client) => this.#pass(client))

  /** @param port of the replicas */
  constructor(port: number) {
    this.#port = port
  }

  listen(): Promise<number> {
    return new Promise((done) => {
      this.#server.listen(0, '127.0.0.1', () => {
        const address = this.#server.address()
        done(typeof address === 'object' && address !== null ? address.port : 0)
      })
    })
  }

  setReady(ip: string, ready: boolean): void {
    if (ready) this.#ready.add(ip)
    else this.#ready.delete(ip)
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #pass(client: Socket): void {
    const ips = [...this.#ready]
    const ip = ips[this.#turn++ % ips.length]
    if (ip === undefined) {
      client.destroy()
      return
    }
    const server = connect({ host: ip, port: this.#port, allowHalfOpen: true })
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => this.#sockets.delete(from))
      from.pipe(to)
    }
  }
}

interface Replica {
  readonly ip: string
  readonly container: TestContainer
  readonly probing: Promise<void>
}

test('a rolling restart of two replicas under load loses no request', async () => {
  const [gateway = 0, control = 0, health = 0, admin = 0] = await freePorts(4)
  const objects = await render([
    `--set=ports.gateway=${gateway},ports.control=${control},ports.health=${health},ports.admin=${admin}`,
    '--set=shutdown.delaySeconds=2,shutdown.drainSeconds=10',
    // The cluster of this test is on this machine.
    '--set=settings.allowLocalServers[0]=127.0.0.0/8',
  ])
  const isKind = (wanted: RegExp) => (object: KubeObject) => wanted.test(object['kind'])
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portcullis-system' } }
  const needed = objects.filter(isKind(/^(CustomResourceDefinition|ServiceAccount|.*Role|.*RoleBinding)$/))
  await cluster.apply([namespace, ...needed].map((object) => JSON.stringify(object)).join('\n---\n'), ['--server-side'])
  await cluster.apply(JSON.stringify(upstreamClusterFor(cluster)))
  const balancer = new Balancer(gateway)
  const vip = await balancer.listen()
  let started = 0

  /** A pod as kube-apiserver would make it, without a scheduler. */
  const start = async (): Promise<Replica> => {
    const ip = `127.0.1.${++started}`
    const template = podOf(objects)
    const pod = { ...template, metadata: { ...template['metadata'], name: `portcullis-${started}` } }
    const args = ['create', '--dry-run=server', '-o', 'json', '-f', '-']
    const made = await cluster.kubectl(args, { stdin: JSON.stringify(pod) })
    assert.equal(made.code, 0, made.stderr)
    const container = await startContainer({ cluster, pod: JSON.parse(made.stdout), podIp: ip })
    balancer.setReady(ip, true)
    const probing = (async () => {
      while (container.process.running) {
        const answer = await fetch(`http://${ip}:${health}/readyz`).catch(() => undefined)
        balancer.setReady(ip, answer?.ok === true)
        await sleep(PROBE_MS)
      }
      balancer.setReady(ip, false)
    })()
    return { ip, container, probing }
  }

  const replicas = [await start(), await start()]
  let served = 0
  const failures: string[] = []
  let over = false
  const client = async (): Promise<void> => {
    const server = `https://127.0.0.1:${vip}/clusters/${cluster.name}`
    while (!over) {
      await kubeRequest({ server, user: cluster.admin, path: '/api/v1/namespaces/default' }).then(
        ({ status, text }) => {
          if (status === 200) served++
          else failures.push(`${status} ${text}`)
        },
        (error: unknown) => failures.push(String(error)),
      )
    }
  }
  try {
    await waitFor('the first answer', async () => {
      const server = `https://127.0.0.1:${vip}/clusters/${cluster.name}`
      return (await kubeRequest({ server, user: cluster.admin, path: '/api/v1/namespaces/default' })).status === 200
    })
    const clients = Array.from({ length: CLIENTS }, client)
    // maxSurge 1, maxUnavailable 0.
    for (const [i, old] of [...replicas].entries()) {
      replicas[i] = await start()
      const before = served
      await waitFor('requests beside the new replica', () => served >= before + 20)
      assert.equal(await old.container.stop(), 0)
      await old.probing
    }
    over = true
    await Promise.all(clients)
  } finally {
    over = true
    await Promise.all(replicas.map(({ container }) => container.stop()))
    balancer.close()
  }
  assert.deepEqual(failures, [])
  assert.ok(served > 100, `${served} requests`)
})
